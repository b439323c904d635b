// SPDX-License-Identifier: Apache-2.0
#include "model/audio_subsampling.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "compute/ops.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

/// The side of a kernel.
constexpr int64_t kSide = 3;
/// Tokens at a time: at 128 bands and channels 5 MB of patches, which the next cache holds.
constexpr int64_t kTokensAtATime = 32;

constexpr int64_t HalfOf(int64_t n) { return (n + 1) / 2; }

}  // namespace

SubsamplingConvolution MakeConvolution(const std::vector<float>& weight, std::vector<float> norm,
                                       int64_t n_in) {
  SubsamplingConvolution made;
  made.n_in = n_in;
  made.n_out = static_cast<int64_t>(norm.size());
  made.norm = std::move(norm);
  made.weight.resize(weight.size());
  FACET_CHECK(static_cast<int64_t>(weight.size()) == made.n_out * n_in * kSide * kSide);
  constexpr int64_t kTaps = kSide * kSide;
  for (int64_t out = 0; out < made.n_out; ++out) {
    for (int64_t in = 0; in < n_in; ++in) {
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        made.weight[static_cast<size_t>((out * kTaps + tap) * n_in + in)] =
            weight[static_cast<size_t>((out * n_in + in) * kTaps + tap)];
      }
    }
  }
  return made;
}

void AudioSubsampling::Run(const ComputeContext& context, const float* frames, int64_t n_frames,
                           float* tokens) {
  FACET_CHECK(n_bands_ % 4 == 0);
  const SubsamplingConvolution& first = weights_.first;
  const SubsamplingConvolution& second = weights_.second;
  const int64_t n_embd = weights_.projection.n_out;
  const int64_t n_times = HalfOf(n_frames);  // after the first convolution
  const int64_t n_tokens = HalfOf(n_times);
  const int64_t width = n_bands_ / 4 * second.n_out;
  for (int64_t begin = 0; begin < n_tokens; begin += kTokensAtATime) {
    const int64_t end = std::min(begin + kTokensAtATime, n_tokens);
    const int64_t time_begin = std::max<int64_t>(0, 2 * begin - 1);
    const int64_t time_end = std::min(2 * end, n_times);
    float* image = Reserve(&first_, (time_end - time_begin) * n_bands_ / 2 * first.n_out);
    Convolve(context, first, {frames, 0, n_frames, n_bands_}, time_begin, time_end, image);
    float* rows = Reserve(&second_, (end - begin) * width);
    Convolve(context, second, {image, time_begin, time_end, n_bands_ / 2}, begin, end, rows);
    activations_.Set(rows, end - begin, width);
    MatMul(context, weights_.projection, activations_, tokens + begin * n_embd);
  }
}

/// Times [begin, end) of the result.
void AudioSubsampling::Convolve(const ComputeContext& context, const SubsamplingConvolution& w,
                                const Image& in, int64_t begin, int64_t end, float* out) {
  const int64_t n_rows = (end - begin) * HalfOf(in.n_bands);
  const int64_t width = kSide * kSide * w.n_in;
  MakePatches(context, w, in, begin, end);
  activations_.Set(patches_.data(), n_rows, width);
  const WeightMatrix matrix = {
      .n_out = w.n_out, .n_in = width, .data = reinterpret_cast<const std::byte*>(w.weight.data())};
  MatMul(context, matrix, activations_, out);
  LayerNorm(context, out, {w.norm.data(), nullptr, weights_.norm_eps}, n_rows, w.n_out, out);
  Clamp(context, out, {0.0F, std::numeric_limits<float>::infinity()}, n_rows * w.n_out, out);
}

/// The inputs of each place of the result in the order of the weights: bands of one time lie
/// together.
void AudioSubsampling::MakePatches(const ComputeContext& context, const SubsamplingConvolution& w,
                                   const Image& in, int64_t begin, int64_t end) {
  const int64_t n_bands_out = HalfOf(in.n_bands);
  const int64_t line = kSide * w.n_in;  // the inputs of one time
  float* patches = Reserve(&patches_, (end - begin) * n_bands_out * kSide * line);
  const auto fill_line = [&](int64_t time, int64_t band, float* to) {
    if (time < in.begin || time >= in.end) {
      std::fill_n(to, line, 0.0F);
      return;
    }
    const int64_t first = std::max<int64_t>(0, band);
    const int64_t last = std::min(band + kSide, in.n_bands);
    const float* from = in.values + ((time - in.begin) * in.n_bands + first) * w.n_in;
    to = std::fill_n(to, (first - band) * w.n_in, 0.0F);
    to = std::copy_n(from, (last - first) * w.n_in, to);
    std::fill_n(to, (band + kSide - last) * w.n_in, 0.0F);
  };
  context.pool->RunRanges(end - begin, 1, [&](int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t) {
      for (int64_t band = 0; band < n_bands_out; ++band) {
        float* patch = patches + (t * n_bands_out + band) * kSide * line;
        for (int64_t side = 0; side < kSide; ++side) {
          fill_line(2 * (begin + t) - 1 + side, 2 * band - 1, patch + side * line);
        }
      }
    }
  });
}

}  // namespace facet
