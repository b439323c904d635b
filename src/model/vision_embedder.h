// SPDX-License-Identifier: Apache-2.0
// The 12B's way to see, without an encoder (reference.md 3.7): each block of 48 pixels becomes a
// soft token by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aligned_vector.h"
#include "base/status.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "media/media_item.h"
#include "model/media_checkpoint.h"
#include "model/picture_patches.h"
#include "model/tap.h"

namespace facet {

struct NormWeights {
  std::vector<float> weight;
  std::vector<float> bias;
};

struct VisionEmbedderWeights {
  NormWeights patch_norm;      // [6912]
  WeightMatrix patch;          // [n_embd, 6912]
  std::vector<float> bias;     // [n_embd]
  NormWeights embedding_norm;  // [n_embd]
  WeightMatrix positions;      // [2 * n_positions, n_embd]: of x, then of y
  NormWeights position_norm;   // [n_embd]
  WeightMatrix projection;     // [n_embd_text, n_embd]
};

class VisionEmbedder {
 public:
  /// Binds the tensors: each missing or misshapen one is refused by name. The checkpoint has such
  /// an embedder (is_unified), and outlives it.
  static Result<std::unique_ptr<VisionEmbedder>> Make(const MediaCheckpoint& checkpoint,
                                                      const ComputeContext& context);
  VisionEmbedder(const VisionEmbedder&) = delete;
  VisionEmbedder& operator=(const VisionEmbedder&) = delete;

  /// Whether Encode can take it (picture_patches.h).
  [[nodiscard]] Status Check(const MediaItem& item) const;

  /// soft [sum of n_tokens, n_embd_text] of pictures that passed Check, one picture after the
  /// other. For one thread; the work inside uses the pool.
  void Encode(std::span<const MediaItem* const> pictures, float* soft);

  /// "patch_ln1", "patch_dense", "patch_ln2", "pos_norm", "soft_tokens": of one picture.
  void SetTap(Tap tap) { tap_ = std::move(tap); }

 private:
  VisionEmbedder(int n_positions, VisionEmbedderWeights weights, ComputeContext context);

  void EncodeOne(const MediaItem& picture, float* soft);
  void AddPositions(const MediaItem& picture, float* x);
  void Norm(const NormWeights& w, int64_t n_rows, float* x) const;
  void EmitTap(std::string_view name, const float* values, int64_t n_rows, int64_t n) const;

  int n_positions_;
  VisionEmbedderWeights weights_;
  ComputeContext context_;
  ByteValues byte_values_;
  Tap tap_;
  AlignedVector<float> patches_;   // [n_rows, 6912]
  AlignedVector<float> x_;         // [n_rows, n_embd]
  AlignedVector<float> position_;  // [n_embd]
  Activations activations_;
};

}  // namespace facet
