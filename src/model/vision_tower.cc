// SPDX-License-Identifier: Apache-2.0
#include "model/vision_tower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "compute/thread_pool.h"
#include "model/media_config.h"
#include "model/tensor_binder.h"

namespace facet {
namespace {

constexpr int64_t kPatchValues = int64_t{VisionTower::kPatchSide} * VisionTower::kPatchSide * 3;
constexpr int kCellSide = kTokenSide / VisionTower::kPatchSide;  // patches of a soft token
constexpr double kRopeTheta = 100;

// Rows that pass the feed-forward part together: its wide rows stay in a cache.
constexpr int64_t kFeedForwardRows = 256;

void BindLayer(const VisionConfig& c, int l, TensorBinder* binder, VisionLayerWeights* w) {
  const auto name = [l](std::string_view n) { return fmt::format("v.blk.{}.{}", l, n); };
  const int64_t width = int64_t{c.n_heads} * c.d_head;
  binder->Vector(name("ln1.weight"), c.n_embd, &w->attn_norm);
  BindClippedLinear(name("attn_q"), width, c.n_embd, binder, &w->q);
  BindClippedLinear(name("attn_k"), width, c.n_embd, binder, &w->k);
  BindClippedLinear(name("attn_v"), width, c.n_embd, binder, &w->v);
  BindClippedLinear(name("attn_out"), c.n_embd, width, binder, &w->o);
  binder->Vector(name("attn_q_norm.weight"), c.d_head, &w->q_norm);
  binder->Vector(name("attn_k_norm.weight"), c.d_head, &w->k_norm);
  binder->Vector(name("attn_post_norm.weight"), c.n_embd, &w->post_attn_norm);
  binder->Vector(name("ln2.weight"), c.n_embd, &w->ffn_norm);
  BindClippedLinear(name("ffn_gate"), c.n_ff, c.n_embd, binder, &w->gate);
  BindClippedLinear(name("ffn_up"), c.n_ff, c.n_embd, binder, &w->up);
  BindClippedLinear(name("ffn_down"), c.n_embd, c.n_ff, binder, &w->down);
  binder->Vector(name("ffn_post_norm.weight"), c.n_embd, &w->post_ffn_norm);
}

Result<VisionTowerWeights> BindTower(const MediaCheckpoint& checkpoint) {
  const VisionConfig& c = *checkpoint.config().vision;
  TensorBinder binder(checkpoint.path(),
                      [&checkpoint](std::string_view name) { return checkpoint.Find(name); });
  VisionTowerWeights w;
  binder.Matrix("v.patch_embd.weight", c.n_embd, kPatchValues, &w.patch);
  binder.Table("v.position_embd.weight", {2, c.n_positions, c.n_embd}, &w.positions);
  if (c.is_standardised) {
    binder.Vector("v.std_bias", c.n_embd, &w.std_bias);
    binder.Vector("v.std_scale", c.n_embd, &w.std_scale);
  }
  binder.Matrix("mm.input_projection.weight", checkpoint.config().n_embd_text, c.n_embd,
                &w.projection);
  w.layers.resize(static_cast<size_t>(c.n_layers));
  for (int l = 0; l < c.n_layers; ++l) {
    BindLayer(c, l, &binder, &w.layers[static_cast<size_t>(l)]);
  }
  FACET_RETURN_IF_ERROR(binder.status());
  const int half = c.d_head / 2;
  w.inverse_frequency.reserve(static_cast<size_t>(half / 2));
  for (int i = 0; i < half / 2; ++i) {
    w.inverse_frequency.push_back(static_cast<float>(std::pow(kRopeTheta, -2.0 * i / half)));
  }
  return w;
}

}  // namespace

Result<std::unique_ptr<VisionTower>> VisionTower::Make(const MediaCheckpoint& checkpoint,
                                                       const ComputeContext& context) {
  FACET_ASSIGN(VisionTowerWeights weights, BindTower(checkpoint));
  return std::unique_ptr<VisionTower>(
      new VisionTower(*checkpoint.config().vision, std::move(weights), context));
}

VisionTower::VisionTower(const VisionConfig& config, VisionTowerWeights weights,
                         ComputeContext context)
    : config_(config), weights_(std::move(weights)), context_(context), byte_values_(UnitBytes()) {
  for (float& value : byte_values_) {
    value = 2 * (value - 0.5F);
  }
  const int d_head = (config.d_head + 7) / 8 * 8;  // Attention's steps
  kv_layout_ = {KvType::kF32, {config.n_heads, d_head}, 0, 0};
  kv_layout_.v_offset = KvHalfBlockBytes(kv_layout_.type, kv_layout_.shape);
}

Status VisionTower::Check(const MediaItem& item) const {
  return CheckPicture(item, kPatchSide, config_.n_positions);
}

void VisionTower::EmitTap(std::string_view name, int layer, const float* values,
                          int64_t n_columns) const {
  if (tap_) {
    const std::string full = layer < 0 ? std::string(name) : fmt::format("{}{}", name, layer);
    const bool is_of_tokens = name == "pooled" || name == "tower_output" || name == "soft_tokens";
    const int64_t n = is_of_tokens ? n_tokens_ : n_rows();
    tap_(full, {values, static_cast<size_t>(n * n_columns)}, n);
  }
}

void VisionTower::Encode(std::span<const MediaItem* const> pictures, float* soft) {
  constexpr int64_t kPatchesOfToken = kCellSide * kCellSide;
  while (!pictures.empty()) {
    size_t n = 0;
    int64_t n_tokens = 0;
    for (; n < pictures.size(); ++n) {
      if (n > 0 && (n_tokens + pictures[n]->n_tokens) * kPatchesOfToken > kMostRows) {
        break;
      }
      n_tokens += pictures[n]->n_tokens;
    }
    EncodeTogether(pictures.first(n), soft);
    soft += n_tokens * weights_.projection.n_out;
    pictures = pictures.subspan(n);
  }
}

void VisionTower::EncodeTogether(std::span<const MediaItem* const> pictures, float* soft) {
  Begin(pictures);
  EmbedPatches(pictures);
  for (int l = 0; l < config_.n_layers; ++l) {
    Layer(l);
  }
  Pool(pictures);
  Standardise();
  float* pooled = pooled_.data();
  RmsNorm(context_, pooled, {nullptr, kEncoderNormEps}, n_tokens_, config_.n_embd, pooled);
  activations_.Set(pooled, n_tokens_, config_.n_embd);
  MatMul(context_, weights_.projection, activations_, soft);
  EmitTap("soft_tokens", -1, soft, weights_.projection.n_out);
}

void VisionTower::Begin(std::span<const MediaItem* const> pictures) {
  positions_ = {};
  first_rows_ = {0};
  first_blocks_ = {0};
  n_tokens_ = 0;
  for (const MediaItem* picture : pictures) {
    AppendPositions(*picture, kPatchSide, &positions_);
    const int64_t n = n_rows() - first_rows_.back();
    first_rows_.push_back(n_rows());
    first_blocks_.push_back(first_blocks_.back() + (n + kKvBlockPositions - 1) / kKvBlockPositions);
    n_tokens_ += picture->n_tokens;
  }
  const size_t block_bytes = 2 * kv_layout_.v_offset;
  std::byte* kv = Reserve(&kv_, first_blocks_.back() * static_cast<int64_t>(block_bytes));
  blocks_.clear();
  for (int64_t b = 0; b < first_blocks_.back(); ++b) {
    blocks_.push_back(kv + static_cast<size_t>(b) * block_bytes);
  }
  rope_.x = MakeRopeTable(context_, weights_.inverse_frequency, positions_.x);
  rope_.y = MakeRopeTable(context_, weights_.inverse_frequency, positions_.y);
}

/// x = input_proj(2 · (pixel − 0.5)) + T[0][x] + T[1][y]
void VisionTower::EmbedPatches(std::span<const MediaItem* const> pictures) {
  const int64_t n = config_.n_embd;
  float* patches = Reserve(&patches_, n_rows() * kPatchValues);
  for (size_t p = 0; p < pictures.size(); ++p) {
    CutPatches(*pictures[p], kPatchSide, byte_values_, patches + first_rows_[p] * kPatchValues);
  }
  float* x = Reserve(&x_, n_rows() * n);
  float* of_x = Reserve(&h_, n_rows() * n);
  float* of_y = Reserve(&branch_, n_rows() * n);
  activations_.Set(patches, n_rows(), kPatchValues);
  MatMul(context_, weights_.patch, activations_, x);
  for (int64_t r = 0; r < n_rows(); ++r) {
    const auto row = static_cast<size_t>(r);
    RowOf(weights_.positions, positions_.x[row], of_x + r * n);
    RowOf(weights_.positions, config_.n_positions + positions_.y[row], of_y + r * n);
  }
  Add(context_, of_x, n_rows() * n, x);
  Add(context_, of_y, n_rows() * n, x);
  EmitTap("patch_embedder", -1, x, n);
}

void VisionTower::Layer(int l) {
  const VisionLayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  const int64_t n = config_.n_embd;
  float* x = x_.data();
  float* h = Reserve(&h_, n_rows() * n);
  float* branch = Reserve(&branch_, n_rows() * n);

  RmsNorm(context_, x, {w.attn_norm.data(), kEncoderNormEps}, n_rows(), n, h);
  Attend(l);
  EmitTap("attention", l, branch, n);
  RmsNorm(context_, branch, {w.post_attn_norm.data(), kEncoderNormEps}, n_rows(), n, branch);
  Add(context_, branch, n_rows() * n, x);

  RmsNorm(context_, x, {w.ffn_norm.data(), kEncoderNormEps}, n_rows(), n, h);
  FeedForward(w);
  EmitTap("mlp", l, branch, n);
  RmsNorm(context_, branch, {w.post_ffn_norm.data(), kEncoderNormEps}, n_rows(), n, branch);
  Add(context_, branch, n_rows() * n, x);
  EmitTap("layer", l, x, n);
}

/// branch = o_proj(attention(rope(rms(q_proj h)), rope(rms(k_proj h)), rms0(v_proj h)))
void VisionTower::Attend(int l) {
  const VisionLayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  const int d_head = config_.d_head;
  const int64_t width = int64_t{config_.n_heads} * d_head;
  float* q = Reserve(&q_, n_rows() * width);
  float* k = Reserve(&k_, n_rows() * width);
  float* v = Reserve(&v_, n_rows() * width);
  input_.Set(h_.data(), n_rows(), config_.n_embd);
  input_.Apply(context_, w.q, q);
  input_.Apply(context_, w.k, k);
  input_.Apply(context_, w.v, v);
  RmsNorm(context_, q, {w.q_norm.data(), kEncoderNormEps}, n_vectors(), d_head, q);
  RmsNorm(context_, k, {w.k_norm.data(), kEncoderNormEps}, n_vectors(), d_head, k);
  RmsNorm(context_, v, {nullptr, kEncoderNormEps}, n_vectors(), d_head, v);
  EmitTap("q_norm", l, q, width);
  Rope2d(context_, rope_, n_rows(), config_.n_heads, d_head, q);
  Rope2d(context_, rope_, n_rows(), config_.n_heads, d_head, k);
  StoreKeysAndValues(PadHeads(k, &padded_k_), PadHeads(v, &padded_v_));

  const int64_t padded_width = int64_t{config_.n_heads} * kv_layout_.shape.d_head;
  const float* queries = PadHeads(q, &padded_q_);
  float* heads = Reserve(&heads_, n_rows() * padded_width);
  std::vector<AttentionRow> rows;
  rows.reserve(static_cast<size_t>(n_rows()));
  for (size_t p = 0; p + 1 < first_rows_.size(); ++p) {
    const auto blocks =
        std::span(blocks_).subspan(static_cast<size_t>(first_blocks_[p]),
                                   static_cast<size_t>(first_blocks_[p + 1] - first_blocks_[p]));
    const auto end = static_cast<int32_t>(first_rows_[p + 1] - first_rows_[p]);
    for (int64_t r = first_rows_[p]; r < first_rows_[p + 1]; ++r) {
      rows.push_back({queries + r * padded_width, heads + r * padded_width, 0, end, blocks});
    }
  }
  Attention(context_, kv_layout_, config_.n_heads, rows);
  DropPadding(heads);
  input_.Set(heads, n_rows(), width);
  input_.Apply(context_, w.o, branch_.data());
}

void VisionTower::StoreKeysAndValues(const float* k, const float* v) {
  const int64_t width = int64_t{config_.n_heads} * kv_layout_.shape.d_head;
  constexpr int64_t kRowsPerThread = 32;
  for (size_t p = 0; p + 1 < first_rows_.size(); ++p) {
    const int64_t first = first_rows_[p];
    std::byte* const* blocks = blocks_.data() + first_blocks_[p];
    context_.pool->RunRanges(
        first_rows_[p + 1] - first, kRowsPerThread, [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            StoreKv(kv_layout_, k + (first + r) * width, v + (first + r) * width,
                    static_cast<int>(r % kKvBlockPositions), blocks[r / kKvBlockPositions]);
          }
        });
  }
}

/// Zeros behind each head change no product: they are for sizes that Attention has no steps for.
const float* VisionTower::PadHeads(const float* x, AlignedVector<float>* padded) const {
  const int64_t d_head = config_.d_head;
  const int64_t d_padded = kv_layout_.shape.d_head;
  if (d_padded == d_head) {
    return x;
  }
  float* out = Reserve(padded, n_vectors() * d_padded);
  for (int64_t i = 0; i < n_vectors(); ++i) {
    std::copy_n(x + i * d_head, d_head, out + i * d_padded);
    std::fill_n(out + i * d_padded + d_head, d_padded - d_head, 0.0F);
  }
  return out;
}

void VisionTower::DropPadding(float* x) const {
  const int64_t d_head = config_.d_head;
  const int64_t d_padded = kv_layout_.shape.d_head;
  for (int64_t i = 1; d_padded != d_head && i < n_vectors(); ++i) {
    std::copy_n(x + i * d_padded, d_head, x + i * d_head);
  }
}

/// branch = down(gelu_tanh(gate h) · up h)
void VisionTower::FeedForward(const VisionLayerWeights& w) {
  const int64_t n = config_.n_embd;
  const int64_t n_ff = config_.n_ff;
  for (int64_t begin = 0; begin < n_rows(); begin += kFeedForwardRows) {
    const int64_t rows = std::min(kFeedForwardRows, n_rows() - begin);
    float* gate = Reserve(&gate_, rows * n_ff);
    float* up = Reserve(&up_, rows * n_ff);
    input_.Set(h_.data() + begin * n, rows, n);
    input_.Apply(context_, w.gate, gate);
    input_.Apply(context_, w.up, up);
    GeluMul(context_, gate, up, rows * n_ff, gate);
    input_.Set(gate, rows, n_ff);
    input_.Apply(context_, w.down, branch_.data() + begin * n);
  }
}

/// A soft token is the mean of its 3x3 patches, times sqrt(n_embd).
void VisionTower::Pool(std::span<const MediaItem* const> pictures) {
  const int64_t n = config_.n_embd;
  float* out = Reserve(&pooled_, n_tokens_ * n);
  const float root = std::sqrt(static_cast<float>(n));
  constexpr float kShare = 1.0F / (kCellSide * kCellSide);
  for (size_t p = 0; p < pictures.size(); ++p) {
    const int64_t columns = pictures[p]->width / kTokenSide;
    const int64_t line = columns * kCellSide * n;
    for (int64_t t = 0; t < pictures[p]->n_tokens; ++t) {
      const float* cell = x_.data() + first_rows_[p] * n + t / columns * kCellSide * line +
                          t % columns * kCellSide * n;
      std::fill_n(out, n, 0.0F);
      for (int64_t i = 0; i < kCellSide * kCellSide; ++i) {
        const float* patch = cell + i / kCellSide * line + i % kCellSide * n;
        for (int64_t j = 0; j < n; ++j) {
          out[j] += patch[j];
        }
      }
      for (int64_t j = 0; j < n; ++j) {
        out[j] = out[j] * kShare * root;
      }
      out += n;
    }
  }
  EmitTap("pooled", -1, pooled_.data(), n);
}

void VisionTower::Standardise() {
  const int64_t n = config_.n_embd;
  for (int64_t i = 0; config_.is_standardised && i < n_tokens_ * n; ++i) {
    const auto column = static_cast<size_t>(i % n);
    float& value = pooled_[static_cast<size_t>(i)];
    value = (value - weights_.std_bias[column]) * weights_.std_scale[column];
  }
  EmitTap("tower_output", -1, pooled_.data(), n);
}

}  // namespace facet
