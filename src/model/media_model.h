// SPDX-License-Identifier: Apache-2.0
// The encoders of pictures and sound, bound and ready: media items in, soft tokens out. On the
// kernels and threads of the text model.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "compute/context.h"
#include "media/media_item.h"
#include "model/media_checkpoint.h"

namespace facet {

/// Used by one thread.
class MediaModel {
 public:
  /// Binds the tensors (each missing or misshapen one is refused by name). The checkpoint must
  /// outlive the model: weights are used where they lie.
  static Result<std::unique_ptr<MediaModel>> Make(const MediaCheckpoint& checkpoint,
                                                  const ComputeContext& context);
  ~MediaModel();

  [[nodiscard]] const MediaConfig& config() const;

  /// Soft tokens [sum of n_tokens, n_embd_text] of the items, in their order; an item's are the
  /// same bits whatever is encoded beside it. Refused: a kind that the model has no encoder for, a
  /// picture larger than its position table.
  Result<std::vector<float>> Encode(std::span<const MediaItem* const> items);

 private:
  struct State;
  explicit MediaModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace facet
