// SPDX-License-Identifier: Apache-2.0
// The two places where tokens of sound meet: attention and the convolution over time (reference.md
// 4.4). Both look back only, within one clip. A token knows its place in its clip, so that the rows
// of several clips lie one after the other and each is computed alone.
#pragma once

#include <cstdint>
#include <span>

#include "compute/context.h"

namespace facet {

/// Keys that a token sees: itself and those before it.
inline constexpr int kAudioWindow = 12;
/// Tokens that the convolution reads: itself and those before it.
inline constexpr int kAudioTaps = 5;
/// Head sizes and widths are multiples of this.
inline constexpr int kAudioLanes = 16;

/// Rows are [n_heads * d_head]; d_head is a multiple of kAudioLanes.
struct AudioAttentionTask {
  int64_t n_heads;
  int64_t d_head;
  const float* q;
  const float* k;
  const float* v;
  const float* q_scale;                ///< [d_head]
  const float* relative;               ///< [kAudioWindow] rows: of the key so many tokens before
  std::span<const int32_t> positions;  ///< of each row, in its clip, whose rows lie in order
};

/// out = softmax(50 tanh(s / 50)) · v with s = q' · k · ln(1 + e) / ln 2 + q' · relative and q' =
/// q · q_scale. Dot products run in 16 lanes with a tree, the sum over values from the token itself
/// backwards. out may be q.
void AudioAttention(const ComputeContext& context, const AudioAttentionTask& task, float* out);

/// y[row] = sum over taps t of weight[t] · x[row - (kAudioTaps - 1) + t], in that order, with zeros
/// before the clip. `weight` is [kAudioTaps, n], n a multiple of kAudioLanes.
void CausalConvolution(const ComputeContext& context, const float* x, const float* weight,
                       std::span<const int32_t> positions, int64_t n, float* y);

}  // namespace facet
