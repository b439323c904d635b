// SPDX-License-Identifier: Apache-2.0
// The encoder of sound of the small sizes: a conformer over log-mel frames (reference.md 4.2-4.5;
// the steps have its names). Clips are computed together, and each token from its own clip alone.
//
// Memory: four times the inner width and once the output's for each token that is computed together
// (E2B: 22 KB, so 17 MB for 30 s), and about 20 MB beside. Time grows with the length alone.
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
#include "model/audio_subsampling.h"
#include "model/audio_weights.h"
#include "model/clipped_linear.h"
#include "model/media_checkpoint.h"
#include "model/tap.h"

namespace facet {

class AudioTower {
 public:
  /// Most frames of one clip: 10 minutes.
  static constexpr int kMostFrames = 60000;

  /// The checkpoint has an audio encoder that is not raw, and outlives the tower (audio_weights.h).
  static Result<std::unique_ptr<AudioTower>> Make(const MediaCheckpoint& checkpoint,
                                                  const ComputeContext& context);
  AudioTower(const AudioTower&) = delete;
  AudioTower& operator=(const AudioTower&) = delete;

  /// Whether Encode can take it: sound in log-mel frames, as many as its tokens say and at most
  /// kMostFrames.
  static Status Check(const MediaItem& item);

  /// soft [sum of n_tokens, n_embd_text] of clips that passed Check. For one thread.
  void Encode(std::span<const MediaItem* const> clips, float* soft);

  /// "subsampled", "feed_forward0", "attention0" (before its post norm), "lconv0", "layer0", ...,
  /// "output_proj": of the clips that are computed together.
  void SetTap(Tap tap) { tap_ = std::move(tap); }

 private:
  AudioTower(AudioTowerWeights weights, ComputeContext context);

  void EncodeTogether(std::span<const MediaItem* const> clips, float* soft);
  void Layer(int l);
  void FeedForward(const AudioFeedForwardWeights& w);
  void Attend(const AudioLayerWeights& w, int l);
  void Convolve(const AudioLayerWeights& w);
  void Project(float* soft);

  /// h = rms(clamp(x), norm)
  void ClampAndNorm(const float* x, const std::vector<float>& norm, int64_t n_rows, float* h) const;
  [[nodiscard]] int64_t n_embd() const { return weights_.subsampling.projection.n_out; }
  [[nodiscard]] int64_t n_rows() const { return static_cast<int64_t>(positions_.size()); }
  void EmitTap(std::string_view name, const float* values, int64_t n_columns) const;

  AudioTowerWeights weights_;
  ComputeContext context_;
  AudioSubsampling subsampling_;
  Tap tap_;

  // State of the clips that are being computed; buffers are kept between calls.
  std::vector<int32_t> positions_;  // of each row in its clip
  AlignedVector<float> x_;          // [n_rows, n_embd] the residual stream
  AlignedVector<float> q_;  // [n_rows, n_embd], as k_ and v_: also what the convolution reads
  AlignedVector<float> k_;
  AlignedVector<float> v_;
  AlignedVector<float> h_;       // [rows of a piece, n_embd]
  AlignedVector<float> branch_;  // [rows of a piece, n_embd]
  AlignedVector<float> hidden_;  // [rows of a piece, n_ff]
  AlignedVector<float> output_;  // [n_rows, n_out]
  ClippedInput input_;
  Activations activations_;
};

}  // namespace facet
