// SPDX-License-Identifier: Apache-2.0
// The encoder of sound of the 12B: 640 samples become a soft token by a norm and a linear
// (reference.md 4.6). Silence becomes exact zeros.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/aligned_vector.h"
#include "base/status.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "media/media_item.h"
#include "model/media_checkpoint.h"

namespace facet {

class AudioEmbedder {
 public:
  static constexpr int kSamplesPerToken = 640;
  /// Most tokens of one clip: an hour.
  static constexpr int kMostTokens = 90000;

  /// Binds the tensor (refused by name when it is missing or misshapen), which must outlive the
  /// embedder. The checkpoint has an audio encoder that is raw.
  static Result<std::unique_ptr<AudioEmbedder>> Make(const MediaCheckpoint& checkpoint,
                                                     const ComputeContext& context);

  /// Whether Encode can take it: raw sound, as much as its tokens say and at most kMostTokens.
  static Status Check(const MediaItem& item);

  /// soft [sum of n_tokens, n_embd_text] of clips that passed Check. For one thread.
  void Encode(std::span<const MediaItem* const> clips, float* soft);

 private:
  AudioEmbedder(const WeightMatrix& projection, ComputeContext context)
      : projection_(projection), context_(context) {}

  WeightMatrix projection_;  // [n_embd_text, kSamplesPerToken]
  ComputeContext context_;
  AlignedVector<float> normed_;  // [rows of a piece, kSamplesPerToken]
  Activations activations_;
};

}  // namespace facet
