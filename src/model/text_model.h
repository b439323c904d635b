// SPDX-License-Identifier: Apache-2.0
// The forward pass of the text model, reading as the layer does (reference.md 1.4; the steps have
// its names). One path for every size and every mix of rows. A row's numbers depend on that row's
// own history only: each operation treats rows separately, and attention reads a row's keys in
// tiles of absolute positions.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_vector.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "compute/ops.h"
#include "model/config.h"
#include "model/kv_store.h"
#include "model/runner.h"
#include "model/tap.h"
#include "model/weights.h"

namespace facet {

/// Whether the rows of a picture see those that follow (reference.md 1.10).
enum class SpanSight {
  kNone,           ///< the small sizes
  kSlidingLayers,  ///< on sliding layers, which keep their bound to the left
  /// On every layer, the whole picture: so does the reference (transformers 5.24) with the 12B, the
  /// size without an encoder of pictures.
  kEveryLayer
};

class TextModel final : public Runner {
 public:
  /// `config` must outlive the model. `info` holds the numbers of blocks that `kv` was made for.
  TextModel(const Config* config, Weights weights, ComputeContext context, KvStore kv,
            const RunnerInfo& info, SpanSight spans);

  [[nodiscard]] const RunnerInfo& info() const override { return info_; }
  Result<std::span<const float>> Run(const Batch& batch) override;
  /// Refuses: the encoders stand beside it (model.cc).
  Result<std::vector<float>> Encode(std::span<const MediaItem* const> items) override;
  [[nodiscard]] std::span<const float> hidden() const override;
  /// Refuses: the drafter stands beside it (model.cc).
  Result<std::vector<int32_t>> Draft(std::span<const DraftTask> tasks) override;
  std::span<std::byte> block(KvGroup group, BlockId id) override;

  void SetTap(Tap tap) { tap_ = std::move(tap); }

 private:
  /// A row that is still being computed.
  struct ActiveRow {
    const Row* row;
    int index;  ///< in the batch
  };
  /// The blocks of the batch's sequences as addresses, per group.
  struct BlockAddresses {
    std::vector<std::vector<std::byte*>> sliding;
    std::vector<std::vector<std::byte*>> full;
  };

  /// Positions [begin, end).
  struct Visible {
    int32_t begin;
    int32_t end;
  };

  [[nodiscard]] Visible VisibleTo(const Row& row, bool is_full) const;
  void CheckBatch(const Batch& batch) const;
  void Begin(const Batch& batch);
  void Embed(const Batch& batch);
  void Layer(int l);
  void StoreKeysAndValues(int l, Activations* h);
  void StoreRows(int l, const float* k, const float* v);
  void KeepRowsThatWantLogits();
  void Attend(int l);
  void FeedForward(int l);
  void Experts(int l);
  void Route(const MixtureWeights& w);
  void Expert(const ExpertWeights& w, int e);
  void PerLayerInput(int l);
  void Logits();

  [[nodiscard]] int64_t n_rows() const { return static_cast<int64_t>(rows_.size()); }
  void EmitTap(std::string_view name, int layer, const AlignedVector<float>& values,
               int64_t n_columns) const;

  const Config& config_;
  Weights weights_;
  ComputeContext context_;
  KvStore kv_;
  RunnerInfo info_;
  SpanSight spans_;
  Tap tap_;
  int last_kv_layer_ = 0;  ///< after its K and V are stored, rows without logits are done

  // State of the running batch; buffers are kept between batches.
  std::vector<ActiveRow> rows_;
  BlockAddresses blocks_;
  RopeTable rope_sliding_;
  RopeTable rope_full_;
  AlignedVector<float> x_;  // [n_rows, n_embd] the residual stream
  AlignedVector<float>
      embedded_;            // [n_rows, n_embd] x before the first layer, for the per-layer inputs
  AlignedVector<float> h_;  // [n_rows, n_embd]
  AlignedVector<float> branch_;         // [n_rows, n_embd]
  AlignedVector<float> q_;              // [n_rows, n_heads * d_head]
  AlignedVector<float> heads_;          // [n_rows, n_heads * d_head]
  AlignedVector<float> k_;              // [n_rows, n_kv_heads * d_head]
  AlignedVector<float> v_;              // [n_rows, n_kv_heads * d_head]
  AlignedVector<float> gate_;           // [n_rows, n_ff]
  AlignedVector<float> up_;             // [n_rows, n_ff]
  AlignedVector<float> ple_;            // [n_rows, n_embd_per_layer]
  AlignedVector<float> ple_token_;      // [n_rows, n_embd_per_layer]
  AlignedVector<float> router_;         // [n_rows, n_experts]
  AlignedVector<float> expert_weight_;  // [n_rows, n_experts]: 0 where the expert is not used
  AlignedVector<float> expert_sum_;     // [n_rows, n_embd]
  std::vector<int64_t> expert_rows_;    // that use the running expert
  AlignedVector<float> expert_out_;     // [rows of one expert, n_embd]
  AlignedVector<float> logits_;         // [rows that want logits, n_vocab]
  Activations embedded_activations_;
  Activations activations_;
  Activations expert_activations_;
  Activations inner_activations_;
};

/// A text model on kernels and threads of the caller's (tests tap it); MakeRunner is what programs
/// use.
Result<std::unique_ptr<TextModel>> MakeTextModel(const Checkpoint& checkpoint,
                                                 const RunnerOptions& options,
                                                 const ComputeContext& context);

}  // namespace facet
