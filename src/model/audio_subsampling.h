// SPDX-License-Identifier: Apache-2.0
// From log-mel frames to tokens, one for four frames (reference.md 4.2): two convolutions that
// halve time and bands, and a linear. Convolutions are matrix products of patches, made for a few
// tokens at a time, so that memory does not grow with the clip.
#pragma once

#include <cstdint>
#include <vector>

#include "base/aligned_vector.h"
#include "compute/context.h"
#include "compute/matmul.h"

namespace facet {

/// 3 x 3, stride 2 and one row of zeros around; then LayerNorm over channels and ReLU.
struct SubsamplingConvolution {
  int64_t n_in = 0;  ///< channels
  int64_t n_out = 0;
  AlignedVector<float> weight;  ///< [n_out, 3 (time), 3 (band), n_in]
  std::vector<float> norm;      ///< [n_out]
};

/// From the order of files: `weight` [n_out, n_in, 3 (time), 3 (band)].
SubsamplingConvolution MakeConvolution(const std::vector<float>& weight, std::vector<float> norm,
                                       int64_t n_in);

struct SubsamplingWeights {
  SubsamplingConvolution first;   ///< 1 channel in
  SubsamplingConvolution second;  ///< those of `first` in
  WeightMatrix projection;        ///< [n_embd, bands / 4 * second.n_out], channels fastest
  float norm_eps = 1e-6F;
};

/// Tokens of a clip.
constexpr int64_t TokensOfFrames(int64_t n_frames) { return (n_frames + 3) / 4; }

class AudioSubsampling {
 public:
  /// `weights` must outlive it; n_bands is a multiple of 4.
  AudioSubsampling(const SubsamplingWeights* weights, int64_t n_bands)
      : weights_(*weights), n_bands_(n_bands) {}

  /// frames [n_frames, n_bands] -> tokens [TokensOfFrames(n_frames), n_embd]. What lies beyond the
  /// clip on either side counts as zeros, in front of both convolutions.
  void Run(const ComputeContext& context, const float* frames, int64_t n_frames, float* tokens);

 private:
  /// Times [begin, end) of n_bands * n_channels values each; others are zeros.
  struct Image {
    const float* values;
    int64_t begin;
    int64_t end;
    int64_t n_bands;
  };

  void Convolve(const ComputeContext& context, const SubsamplingConvolution& w, const Image& in,
                int64_t begin, int64_t end, float* out);
  void MakePatches(const ComputeContext& context, const SubsamplingConvolution& w, const Image& in,
                   int64_t begin, int64_t end);

  const SubsamplingWeights& weights_;
  int64_t n_bands_;
  AlignedVector<float> patches_;  ///< [times * bands, 9 * n_in]
  AlignedVector<float> first_;    ///< [times, n_bands / 2, first.n_out]
  AlignedVector<float> second_;   ///< [tokens, n_bands / 4, second.n_out]
  Activations activations_;
};

}  // namespace facet
