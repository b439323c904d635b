// SPDX-License-Identifier: Apache-2.0
// Against the formulas in double; the tower's goldens test it in its place.
#include "model/audio_subsampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compute/kernel_testing.h"

namespace facet::testing {
namespace {

constexpr int64_t kBands = 16;

/// Convolution, LayerNorm and ReLU of x [n_times, n_bands, n_in], weights in the order of files.
std::vector<double> Convolved(const std::vector<double>& x, int64_t n_times, int64_t n_bands,
                              const std::vector<float>& weight, const std::vector<float>& norm) {
  const auto n_out = static_cast<int64_t>(norm.size());
  const int64_t n_in = static_cast<int64_t>(weight.size()) / 9 / n_out;
  std::vector<double> y;
  for (int64_t place = 0; place < (n_times + 1) / 2 * (n_bands / 2); ++place) {
    std::vector<double> channels;
    double mean = 0;
    for (int64_t out = 0; out < n_out; ++out) {
      double sum = 0;
      for (int64_t i = 0; i < n_in * 9; ++i) {
        const int64_t time = place / (n_bands / 2) * 2 - 1 + i / 3 % 3;
        const int64_t band = place % (n_bands / 2) * 2 - 1 + i % 3;
        if (time >= 0 && time < n_times && band >= 0 && band < n_bands) {
          sum += double{weight[static_cast<size_t>(out * n_in * 9 + i)]} *
                 x[static_cast<size_t>((time * n_bands + band) * n_in + i / 9)];
        }
      }
      channels.push_back(sum);
      mean += sum / static_cast<double>(n_out);
    }
    double variance = 0;
    for (const double value : channels) {
      variance += (value - mean) * (value - mean) / static_cast<double>(n_out);
    }
    for (size_t c = 0; c < channels.size(); ++c) {
      const double normed = (channels[c] - mean) / std::sqrt(variance + 1e-6) * double{norm[c]};
      y.push_back(std::max(0.0, normed));
    }
  }
  return y;
}

TEST(AudioSubsampling, IsTheFormulaAtEveryEdge) {
  RandomStream random(1);
  const std::vector<float> first = random.Floats(8 * 9, 1.0F);
  const std::vector<float> second = random.Floats(4 * 8 * 9, 1.0F);
  const std::vector<float> first_norm = random.Floats(8, 1.0F);
  const std::vector<float> second_norm = random.Floats(4, 1.0F);
  constexpr size_t kWidth = kBands / 4 * 4;
  const std::vector<float> projection = random.Floats(5 * kWidth, 1.0F);
  SubsamplingWeights weights;
  weights.first = MakeConvolution(first, first_norm, 1);
  weights.second = MakeConvolution(second, second_norm, 8);
  weights.projection = {
      .n_out = 5, .n_in = kWidth, .data = reinterpret_cast<const std::byte*>(projection.data())};
  const TestContext context(BestIsa(), 3);
  AudioSubsampling subsampling(&weights, kBands);
  // 32 tokens are computed at a time.
  for (const int64_t n_frames : {1, 2, 3, 4, 5, 7, 127, 128, 129, 130, 131, 263}) {
    const std::vector<float> frames = random.Floats(static_cast<size_t>(n_frames * kBands), 1.0F);
    const std::vector<double> image(frames.begin(), frames.end());
    const std::vector<double> flat =
        Convolved(Convolved(image, n_frames, kBands, first, first_norm), (n_frames + 1) / 2,
                  kBands / 2, second, second_norm);
    const auto n_tokens = static_cast<size_t>(TokensOfFrames(n_frames));
    ASSERT_EQ(flat.size(), n_tokens * kWidth);
    std::vector<float> tokens(n_tokens * 5);
    subsampling.Run(*context, frames.data(), n_frames, tokens.data());
    for (size_t i = 0; i < tokens.size(); ++i) {
      double wanted = 0;
      for (size_t k = 0; k < kWidth; ++k) {
        wanted += double{projection[i % 5 * kWidth + k]} * flat[i / 5 * kWidth + k];
      }
      ASSERT_NEAR(double{tokens[i]}, wanted, 1e-4) << n_frames << " frames, " << i;
    }
  }
}

}  // namespace
}  // namespace facet::testing
