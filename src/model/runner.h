// SPDX-License-Identifier: Apache-2.0
// The seam between what decides (engine) and what computes (text_model): everything above it is
// tested with a scripted fake, without a model.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "kv/block_pool.h"
#include "media/media_item.h"
#include "model/batch.h"

namespace facet {

/// What the engine needs to know of a model.
struct RunnerInfo {
  int n_vocab = 0;
  int n_context = 0;  ///< most positions of one sequence
  int sliding_window =
      0;  ///< a sliding layer's row at q sees k > q - window; 0: there are no sliding layers
  int n_sliding_blocks = 0;  ///< blocks in the pool of the sliding group
  int n_full_blocks = 0;
  int n_embd = 0;  ///< width of a soft token and of a hidden row
  MediaTraits media = {};
  bool drafts = false;  ///< a drafter stands beside the model (Draft)
};

/// One sequence that wants drafts.
struct DraftTask {
  int32_t token = 0;              ///< its newest, whose keys and values are not computed yet
  int32_t pos = 0;                ///< where that stands; the drafter sees what is before it
  std::span<const float> hidden;  ///< [n_embd] of the row that the token was drawn from
  SequenceBlocks blocks;          ///< as for a row at `pos`
  int n_drafts = 0;               ///< at least 1
};

/// Runs batches; used by one thread.
class Runner {
 public:
  virtual ~Runner() = default;
  [[nodiscard]] virtual const RunnerInfo& info() const = 0;

  /// Writes the rows' keys and values into their blocks and returns the logits [rows that want
  /// them, n_vocab] in the order of the rows, valid until the next call. The logits of a row are a
  /// function of that row's own history and nothing else. An Error means that the batch was refused
  /// whole and nothing of the sequences changed that matters.
  virtual Result<std::span<const float>> Run(const Batch& batch) = 0;

  /// The hidden rows [rows that wanted logits, n_embd] of the last Run, after the final norm, in
  /// the order of the logits; valid as long as these.
  [[nodiscard]] virtual std::span<const float> hidden() const = 0;

  /// What the drafter expects to follow each task's token: n_drafts tokens of the first task, then
  /// those of the second, and so on. Guesses: nothing of the sequences changes. Only where
  /// info().drafts.
  virtual Result<std::vector<int32_t>> Draft(std::span<const DraftTask> tasks) = 0;

  /// Soft tokens [sum of n_tokens, n_embd] of media, for Batch::soft; the same whatever is encoded
  /// together. An Error means that one of them cannot be taken.
  virtual Result<std::vector<float>> Encode(std::span<const MediaItem* const> items) = 0;

  /// The memory of a block, kBlockPositions positions of all layers of the group: to be copied into
  /// another block, or to a file and back. The format is the runner's own.
  virtual std::span<std::byte> block(KvGroup group, BlockId id) = 0;
};

}  // namespace facet
