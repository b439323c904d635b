// SPDX-License-Identifier: Apache-2.0
// The forward pass of the text model: embeddings, the layers (decoder_layers.h), logits. One path
// for every size and every mix of rows.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/aligned_vector.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "model/config.h"
#include "model/decoder_layers.h"
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
  TextModel(const Config* config, Weights weights, const ComputeContext& context, KvStore kv,
            const RunnerInfo& info, SpanSight spans);
  TextModel(const TextModel&) = delete;
  TextModel& operator=(const TextModel&) = delete;

  [[nodiscard]] const RunnerInfo& info() const override { return info_; }
  Result<std::span<const float>> Run(const Batch& batch) override;
  /// Refuses: the encoders stand beside it (model.cc).
  Result<std::vector<float>> Encode(std::span<const MediaItem* const> items) override;
  [[nodiscard]] std::span<const float> hidden() const override;
  /// Refuses: the drafter stands beside it (model.cc).
  Result<std::vector<int32_t>> Draft(std::span<const DraftTask> tasks) override;
  std::span<std::byte> block(KvGroup group, BlockId id) override;

  /// What a drafter shares with it.
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const Weights& weights() const { return weights_; }
  [[nodiscard]] const KvStore& kv() const { return kv_; }

  void SetTap(const Tap& tap);

 private:
  [[nodiscard]] PositionRange VisibleTo(const Row& row, bool is_full) const;
  void CheckBatch(const Batch& batch) const;
  void Begin(const Batch& batch);
  void Embed(const Batch& batch);
  void Logits();

  const Config& config_;
  Weights weights_;
  ComputeContext context_;
  KvStore kv_;
  RunnerInfo info_;
  SpanSight spans_;
  Tap tap_;
  DecoderLayers layers_;

  // Of the running batch; buffers are kept between batches.
  AlignedVector<float> hidden_;  // [rows that want logits, n_embd]
  AlignedVector<float> logits_;  // [rows that want logits, n_vocab]
  Activations hidden_activations_;
};

/// A text model on kernels and threads of the caller's (tests tap it); MakeRunner is what programs
/// use.
Result<std::unique_ptr<TextModel>> MakeTextModel(const Checkpoint& checkpoint,
                                                 const RunnerOptions& options,
                                                 const ComputeContext& context);

}  // namespace facet
