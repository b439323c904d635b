// SPDX-License-Identifier: Apache-2.0
#include "model/vision_embedder.h"

#include "compute/ops.h"
#include "model/media_config.h"
#include "model/tensor_binder.h"

namespace facet {
namespace {

constexpr int64_t kBlockValues = int64_t{kTokenSide} * kTokenSide * 3;
constexpr float kLayerNormEps = 1e-5F;

void BindNorm(const std::string& stem, int64_t n, TensorBinder* binder, NormWeights* norm) {
  binder->Vector(stem + ".weight", n, &norm->weight);
  binder->Vector(stem + ".bias", n, &norm->bias);
}

}  // namespace

Result<std::unique_ptr<VisionEmbedder>> VisionEmbedder::Make(const MediaCheckpoint& checkpoint,
                                                             const ComputeContext& context) {
  const VisionConfig& c = *checkpoint.config().vision;
  TensorBinder binder(checkpoint.path(),
                      [&checkpoint](std::string_view name) { return checkpoint.Find(name); });
  VisionEmbedderWeights w;
  BindNorm("v.patch_norm.1", kBlockValues, &binder, &w.patch_norm);
  binder.Matrix("v.patch_embd.weight", c.n_embd, kBlockValues, &w.patch);
  binder.Vector("v.patch_embd.bias", c.n_embd, &w.bias);
  BindNorm("v.patch_norm.2", c.n_embd, &binder, &w.embedding_norm);
  binder.Table("v.position_embd.weight", {2, c.n_positions, c.n_embd}, &w.positions);
  BindNorm("v.patch_norm.3", c.n_embd, &binder, &w.position_norm);
  binder.Matrix("mm.input_projection.weight", checkpoint.config().n_embd_text, c.n_embd,
                &w.projection);
  FACET_RETURN_IF_ERROR(binder.status());
  return std::unique_ptr<VisionEmbedder>(new VisionEmbedder(c.n_positions, std::move(w), context));
}

VisionEmbedder::VisionEmbedder(int n_positions, VisionEmbedderWeights weights,
                               ComputeContext context)
    : n_positions_(n_positions),
      weights_(std::move(weights)),
      context_(context),
      byte_values_(UnitBytes()) {}

Status VisionEmbedder::Check(const MediaItem& item) const {
  return CheckPicture(item, kTokenSide, n_positions_);
}

void VisionEmbedder::EmitTap(std::string_view name, const float* values, int64_t n_rows,
                             int64_t n) const {
  if (tap_) {
    tap_(name, {values, static_cast<size_t>(n_rows * n)}, n_rows);
  }
}

void VisionEmbedder::Encode(std::span<const MediaItem* const> pictures, float* soft) {
  for (const MediaItem* picture : pictures) {
    EncodeOne(*picture, soft);
    soft += picture->n_tokens * weights_.projection.n_out;
  }
}

void VisionEmbedder::Norm(const NormWeights& w, int64_t n_rows, float* x) const {
  LayerNorm(context_, x, {w.weight.data(), w.bias.data(), kLayerNormEps}, n_rows,
            static_cast<int64_t>(w.weight.size()), x);
}

void VisionEmbedder::EncodeOne(const MediaItem& picture, float* soft) {
  const int64_t n_rows = picture.n_tokens;
  const int64_t n = weights_.patch.n_out;
  float* patches = Reserve(&patches_, n_rows * kBlockValues);
  float* x = Reserve(&x_, n_rows * n);
  CutPatches(picture, kTokenSide, byte_values_, patches);
  Norm(weights_.patch_norm, n_rows, patches);
  EmitTap("patch_ln1", patches, n_rows, kBlockValues);
  activations_.Set(patches, n_rows, kBlockValues);
  MatMul(context_, weights_.patch, activations_, x);
  for (int64_t r = 0; r < n_rows; ++r) {
    Add(context_, weights_.bias.data(), n, x + r * n);
  }
  EmitTap("patch_dense", x, n_rows, n);
  Norm(weights_.embedding_norm, n_rows, x);
  EmitTap("patch_ln2", x, n_rows, n);
  AddPositions(picture, x);
  Norm(weights_.position_norm, n_rows, x);
  EmitTap("pos_norm", x, n_rows, n);
  RmsNorm(context_, x, {nullptr, kEncoderNormEps}, n_rows, n, x);
  activations_.Set(x, n_rows, n);
  MatMul(context_, weights_.projection, activations_, soft);
  EmitTap("soft_tokens", soft, n_rows, weights_.projection.n_out);
}

void VisionEmbedder::AddPositions(const MediaItem& picture, float* x) {
  const int64_t n = weights_.patch.n_out;
  const int columns = picture.width / kTokenSide;
  float* position = Reserve(&position_, n);
  for (int t = 0; t < picture.n_tokens; ++t) {
    RowOf(weights_.positions, t % columns, position);
    Add(context_, position, n, x + t * n);
    RowOf(weights_.positions, n_positions_ + t / columns, position);
    Add(context_, position, n, x + t * n);
  }
}

}  // namespace facet
