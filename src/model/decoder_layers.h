// SPDX-License-Identifier: Apache-2.0
// The stack of decoder layers, reading as the layer does (reference.md 1.4; the steps have its
// names). A text model's, and a drafter's, whose layers only read the keys and values of its
// target. One path for every size and every mix of rows. A row's numbers depend on that row's own
// history only: each operation treats rows separately, and attention reads a row's keys in tiles of
// absolute positions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aligned_vector.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "compute/ops.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/kv_store.h"
#include "model/tap.h"
#include "model/weights.h"

namespace facet {

/// Positions [begin, end).
struct PositionRange {
  int32_t begin = 0;
  int32_t end = 0;
};

/// What the layers ask of a row.
struct LayerRow {
  int32_t sequence = 0;         ///< whose blocks it writes and reads
  int32_t pos = 0;              ///< by which its queries and keys turn, and where its K and V go
  PositionRange sliding;        ///< what it sees on sliding layers, never empty
  PositionRange full;           ///< on full layers
  int32_t per_layer_token = 0;  ///< its row of the per-layer embeddings, where the model has them
  /// Whether its output is asked for. Others end where the last K and V are written.
  bool is_wanted = true;
};

/// Used by one thread, one pass after the other: Begin, the caller writes x, Run.
class DecoderLayers {
 public:
  /// All must outlive the layers. LayerDesc::kv_layer of the layers that share keys and values is a
  /// layer of `kv`, which for a drafter is the target's.
  DecoderLayers(const Config* config, const Weights* weights, const ComputeContext& context,
                const KvStore* kv);

  /// `sequences` are what LayerRow::sequence counts; blocks that the rows write or see are there.
  void Begin(std::vector<LayerRow> rows, std::span<const SequenceBlocks> sequences);
  /// Afterwards x holds the rows whose output is wanted, in their order, and n_rows counts these.
  /// May be run again after x is written anew, for the rows that are left.
  void Run();

  [[nodiscard]] int64_t n_rows() const { return static_cast<int64_t>(rows_.size()); }
  /// [n_rows, n_embd], the residual stream: the caller's to write after Begin, and to read after
  /// Run.
  [[nodiscard]] float* x() { return x_.data(); }

  void SetTap(Tap tap) { tap_ = std::move(tap); }

 private:
  /// The blocks of each sequence as addresses, per group.
  struct BlockAddresses {
    std::vector<std::vector<std::byte*>> sliding;
    std::vector<std::vector<std::byte*>> full;
  };

  [[nodiscard]] std::vector<std::byte*> AddressesOf(LayerKind group,
                                                    std::span<const BlockId> ids) const;
  [[nodiscard]] const std::vector<std::byte*>& BlocksOf(const LayerRow& row, bool is_full) const;
  void Layer(int l);
  void StoreKeysAndValues(int l, Activations* h);
  void StoreRows(int l, const float* k, const float* v);
  void KeepWantedRows();
  void Attend(int l);
  void FeedForward(int l);
  void Experts(int l);
  void Route(const MixtureWeights& w);
  void Expert(const ExpertWeights& w, int e);
  void PerLayerInput(int l);
  void EmitTap(std::string_view name, int layer, const AlignedVector<float>& values,
               int64_t n_columns) const;

  const Config& config_;
  const Weights& weights_;
  ComputeContext context_;
  const KvStore& kv_;
  Tap tap_;

  // State of the running pass; buffers are kept between passes.
  std::vector<LayerRow> rows_;
  BlockAddresses blocks_;
  RopeTable rope_sliding_;
  RopeTable rope_full_;
  AlignedVector<float> x_;          // [n_rows, n_embd] the residual stream
  AlignedVector<float> embedded_;   // [n_rows, n_embd] x before the first layer, for the per-layer
                                    // inputs
  AlignedVector<float> h_;          // [n_rows, n_embd]
  AlignedVector<float> branch_;     // [n_rows, n_embd]
  AlignedVector<float> q_;          // [n_rows, n_heads * d_head]
  AlignedVector<float> heads_;      // [n_rows, n_heads * d_head]
  AlignedVector<float> k_;          // [n_rows, n_kv_heads * d_head]
  AlignedVector<float> v_;          // [n_rows, n_kv_heads * d_head]
  AlignedVector<float> gate_;       // [n_rows, n_ff]
  AlignedVector<float> up_;         // [n_rows, n_ff]
  AlignedVector<float> ple_;        // [n_rows, n_embd_per_layer]
  AlignedVector<float> ple_token_;  // [n_rows, n_embd_per_layer]
  AlignedVector<float> router_;     // [n_rows, n_experts]
  AlignedVector<float> expert_weight_;  // [n_rows, n_experts]: 0 where the expert is not used
  AlignedVector<float> expert_sum_;     // [n_rows, n_embd]
  std::vector<int64_t> expert_rows_;    // that use the running expert
  AlignedVector<float> expert_out_;     // [rows of one expert, n_embd]
  Activations embedded_activations_;
  Activations activations_;
  Activations expert_activations_;
  Activations inner_activations_;
};

}  // namespace facet
