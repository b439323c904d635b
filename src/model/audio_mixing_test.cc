// SPDX-License-Identifier: Apache-2.0
// Against the formulas in double; the tower's goldens test them in their place.
#include "model/audio_mixing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "compute/kernel_testing.h"

namespace facet::testing {
namespace {

/// Clips of 20, 1 and 14 tokens.
std::vector<int32_t> Positions() {
  std::vector<int32_t> positions;
  for (const int n : {20, 1, 14}) {
    for (int i = 0; i < n; ++i) {
      positions.push_back(i);
    }
  }
  return positions;
}

TEST(AudioAttention, IsTheFormula) {
  constexpr int kHeads = 2;
  constexpr int kSize = 32;
  constexpr size_t kWidth = kHeads * kSize;
  const std::vector<int32_t> positions = Positions();
  RandomStream random(1);
  const std::vector<float> q = random.Floats(positions.size() * kWidth, 1.0F);
  const std::vector<float> k = random.Floats(q.size(), 1.0F);
  const std::vector<float> v = random.Floats(q.size(), 1.0F);
  const std::vector<float> q_scale = random.Floats(kSize, 2.0F);
  const std::vector<float> relative = random.Floats(kAudioWindow * kWidth, 3.0F);
  const AudioAttentionTask task = {.n_heads = kHeads,
                                   .d_head = kSize,
                                   .q = q.data(),
                                   .k = k.data(),
                                   .v = v.data(),
                                   .q_scale = q_scale.data(),
                                   .relative = relative.data(),
                                   .positions = positions};
  const TestContext context(BestIsa(), 3);
  std::vector<float> out(q.size());
  AudioAttention(*context, task, out.data());
  for (size_t row = 0; row < positions.size(); ++row) {
    const auto n_keys = static_cast<size_t>(std::min(positions[row] + 1, 12));
    for (size_t head = 0; head < kHeads; ++head) {
      double weights[12] = {};
      double sum = 0;
      for (size_t back = 0; back < n_keys; ++back) {
        double score = 0;
        for (size_t i = 0; i < kSize; ++i) {
          const size_t at = head * kSize + i;
          score += double{q[row * kWidth + at]} * double{q_scale[i]} *
                   (double{k[(row - back) * kWidth + at]} * std::log(1 + std::numbers::e) /
                        std::numbers::ln2 +
                    double{relative[back * kWidth + at]});
        }
        weights[back] = std::exp(50 * std::tanh(score / 50));
        sum += weights[back];
      }
      for (size_t at = head * kSize; at < (head + 1) * kSize; ++at) {
        double wanted = 0;
        for (size_t back = 0; back < n_keys; ++back) {
          wanted += weights[back] / sum * double{v[(row - back) * kWidth + at]};
        }
        ASSERT_NEAR(double{out[row * kWidth + at]}, wanted, 2e-5) << row << ", " << at;
      }
    }
  }
}

TEST(CausalConvolution, IsTheFormula) {
  constexpr size_t kWidth = 48;
  const std::vector<int32_t> positions = Positions();
  RandomStream random(2);
  const std::vector<float> x = random.Floats(positions.size() * kWidth, 1.0F);
  const std::vector<float> weight = random.Floats(kAudioTaps * kWidth, 1.0F);
  const TestContext context(BestIsa(), 3);
  std::vector<float> y(x.size());
  CausalConvolution(*context, x.data(), weight.data(), positions, kWidth, y.data());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t n_back = std::min<size_t>(static_cast<size_t>(positions[i / kWidth]), 4);
    double wanted = 0;
    for (size_t back = 0; back <= n_back; ++back) {
      wanted += double{weight[(4 - back) * kWidth + i % kWidth]} * double{x[i - back * kWidth]};
    }
    ASSERT_NEAR(double{y[i]}, wanted, 1e-6) << i;
  }
}

}  // namespace
}  // namespace facet::testing
