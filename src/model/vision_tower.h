// SPDX-License-Identifier: Apache-2.0
// The vision tower, reading as the layer does (reference.md 3.3-3.6): patches of 16 pixels see all
// patches of their own picture; 3x3 of them become a soft token. Pictures are computed together;
// each operation treats rows separately and attention reads the rows of one picture, so a picture's
// soft tokens are the same bits whatever stands beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_vector.h"
#include "base/status.h"
#include "compute/attention.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "compute/ops.h"
#include "media/media_item.h"
#include "model/clipped_linear.h"
#include "model/media_checkpoint.h"
#include "model/picture_patches.h"
#include "model/tap.h"

namespace facet {

struct VisionLayerWeights {
  std::vector<float> attn_norm;  // [n_embd]
  ClippedLinear q;               // [n_heads * d_head, n_embd]
  ClippedLinear k;
  ClippedLinear v;
  ClippedLinear o;                    // [n_embd, n_heads * d_head]
  std::vector<float> q_norm;          // [d_head]
  std::vector<float> k_norm;          // [d_head]
  std::vector<float> post_attn_norm;  // [n_embd]
  std::vector<float> ffn_norm;        // [n_embd]
  ClippedLinear gate;                 // [n_ff, n_embd]
  ClippedLinear up;                   // [n_ff, n_embd]
  ClippedLinear down;                 // [n_embd, n_ff]
  std::vector<float> post_ffn_norm;   // [n_embd]
};

struct VisionTowerWeights {
  WeightMatrix patch;                    // [n_embd, 768]
  WeightMatrix positions;                // [2 * n_positions, n_embd]: of x, then of y
  std::vector<float> std_bias;           // [n_embd]; empty where nothing is standardised
  std::vector<float> std_scale;          // [n_embd]
  WeightMatrix projection;               // [n_embd_text, n_embd]
  std::vector<float> inverse_frequency;  // [d_head / 4]
  std::vector<VisionLayerWeights> layers;
};

class VisionTower {
 public:
  static constexpr int kPatchSide = 16;

  /// Binds the tensors: each missing or misshapen one is refused by name. The checkpoint has a
  /// vision tower, and outlives it.
  static Result<std::unique_ptr<VisionTower>> Make(const MediaCheckpoint& checkpoint,
                                                   const ComputeContext& context);
  VisionTower(const VisionTower&) = delete;
  VisionTower& operator=(const VisionTower&) = delete;

  /// Whether Encode can take it (picture_patches.h).
  [[nodiscard]] Status Check(const MediaItem& item) const;

  /// soft [sum of n_tokens, n_embd_text] of pictures that passed Check. Memory is bounded by
  /// kMostRows patches or the largest picture. For one thread; the work inside uses the pool.
  void Encode(std::span<const MediaItem* const> pictures, float* soft);

  /// "patch_embedder", "q_norm0" (before rotation), "attention0" and "mlp0" (before their post
  /// norms), "layer0", ..., "pooled", "tower_output", "soft_tokens": of the pictures that are
  /// computed together.
  void SetTap(Tap tap) { tap_ = std::move(tap); }

 private:
  static constexpr int64_t kMostRows = 4096;

  VisionTower(const VisionConfig& config, VisionTowerWeights weights, ComputeContext context);

  void EncodeTogether(std::span<const MediaItem* const> pictures, float* soft);
  void Begin(std::span<const MediaItem* const> pictures);
  void EmbedPatches(std::span<const MediaItem* const> pictures);
  void Layer(int l);
  void Attend(int l);
  void StoreKeysAndValues(const float* k, const float* v);
  const float* PadHeads(const float* x, AlignedVector<float>* padded) const;
  void DropPadding(float* x) const;
  void FeedForward(const VisionLayerWeights& w);
  void Pool(std::span<const MediaItem* const> pictures);
  void Standardise();

  [[nodiscard]] int64_t n_rows() const { return static_cast<int64_t>(positions_.x.size()); }
  [[nodiscard]] int64_t n_vectors() const { return n_rows() * config_.n_heads; }
  void EmitTap(std::string_view name, int layer, const float* values, int64_t n_columns) const;

  VisionConfig config_;
  VisionTowerWeights weights_;
  ComputeContext context_;
  ByteValues byte_values_;
  KvLayout kv_layout_;
  Tap tap_;

  // State of the pictures that are being computed; buffers are kept between calls.
  PatchPositions positions_;
  std::vector<int64_t> first_rows_;  // of each picture, and their number
  std::vector<std::byte*> blocks_;   // keys and values, pictures one after the other
  std::vector<int64_t> first_blocks_;
  RopeTable2d rope_;
  int64_t n_tokens_ = 0;
  AlignedVector<std::byte> kv_;
  AlignedVector<float> patches_;  // [n_rows, 768]
  AlignedVector<float> x_;        // [n_rows, n_embd] the residual stream
  AlignedVector<float> h_;        // [n_rows, n_embd]
  AlignedVector<float> branch_;   // [n_rows, n_embd]
  AlignedVector<float> q_;        // [n_rows, n_heads * d_head], as k_ and v_
  AlignedVector<float> k_;
  AlignedVector<float> v_;
  AlignedVector<float> padded_q_;  // with heads of kv_layout_'s size
  AlignedVector<float> padded_k_;
  AlignedVector<float> padded_v_;
  AlignedVector<float> heads_;   // [n_rows, heads of kv_layout_'s size]
  AlignedVector<float> gate_;    // [rows of a piece, n_ff]
  AlignedVector<float> up_;      // [rows of a piece, n_ff]
  AlignedVector<float> pooled_;  // [n_tokens, n_embd]
  ClippedInput input_;
  Activations activations_;
};

}  // namespace facet
