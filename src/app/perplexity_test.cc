// SPDX-License-Identifier: Apache-2.0
#include "app/perplexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace facet {
namespace {

using Windows = std::vector<TextWindow>;

TEST(PlanWindows, ScoresTheWholeFirstWindowAndThenWhatIsNew) {
  EXPECT_EQ(PlanWindows({.n_tokens = 20, .n_room = 8, .stride = 4, .n_skipped = 0}),
            (Windows{{0, 8, 0}, {4, 12, 8}, {8, 16, 12}, {12, 20, 16}}));
  EXPECT_EQ(PlanWindows({.n_tokens = 10, .n_room = 8, .stride = 8, .n_skipped = 0}),
            (Windows{{0, 8, 0}, {8, 10, 8}}));
  EXPECT_EQ(PlanWindows({.n_tokens = 8, .n_room = 8, .stride = 1, .n_skipped = 0}),
            (Windows{{0, 8, 0}}));
  EXPECT_EQ(PlanWindows({.n_tokens = 0, .n_room = 8, .stride = 1, .n_skipped = 0}), Windows());
}

TEST(PlanWindows, CanSkipTheBeginOfEachWindow) {
  // A window of 8 positions, of which bos takes one, every 8 tokens: halves as llama-perplexity
  // has.
  EXPECT_EQ(PlanWindows({.n_tokens = 21, .n_room = 7, .stride = 8, .n_skipped = 4}),
            (Windows{{0, 7, 4}, {8, 15, 12}, {16, 21, 20}}));
  EXPECT_EQ(PlanWindows({.n_tokens = 19, .n_room = 7, .stride = 8, .n_skipped = 4}),
            (Windows{{0, 7, 4}, {8, 15, 12}}));
}

TEST(PlanWindows, ScoresEachTokenOnceWithEnoughBeforeIt) {
  for (int n_tokens = 1; n_tokens <= 40; ++n_tokens) {
    for (int n_room = 1; n_room <= 9; ++n_room) {
      for (int stride = 1; stride <= n_room; ++stride) {
        std::vector<int> n_scored(static_cast<size_t>(n_tokens), 0);
        for (const TextWindow& window : PlanWindows({n_tokens, n_room, stride, 0})) {
          ASSERT_EQ(window.begin % stride, 0);
          ASSERT_LE(window.end - window.begin, n_room);
          for (int token = window.first_scored; token < window.end; ++token) {
            ++n_scored[static_cast<size_t>(token)];
            ASSERT_TRUE(window.begin == 0 || token - window.begin >= n_room - stride);
          }
        }
        ASSERT_EQ(n_scored, std::vector<int>(static_cast<size_t>(n_tokens), 1))
            << n_tokens << " " << n_room << " " << stride;
      }
    }
  }
}

TEST(MeanEstimate, IsThatOfTheWholeSample) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
  MeanEstimate estimate;
  EXPECT_EQ(estimate.standard_error(), 0);
  for (const double value : values) {
    estimate.Add(value);
  }
  EXPECT_EQ(estimate.count(), 8);
  EXPECT_DOUBLE_EQ(estimate.mean(), 5);
  // Squared distances sum to 32; the sample's variance is 32/7.
  EXPECT_DOUBLE_EQ(estimate.standard_error(), std::sqrt(32.0 / 7 / 8));
  EXPECT_DOUBLE_EQ(ExpOf(estimate).value, std::exp(5.0));
  EXPECT_DOUBLE_EQ(ExpOf(estimate).error, std::exp(5.0) * std::sqrt(32.0 / 56));
}

TEST(NegativeLogLikelihood, IsExactForLargeLogits) {
  EXPECT_NEAR(NegativeLogLikelihood(std::vector<float>{1000, 1000}, 0), std::log(2.0), 1e-12);
  EXPECT_DOUBLE_EQ(NegativeLogLikelihood(std::vector<float>{-1000, 0}, 0), 1000);
  EXPECT_DOUBLE_EQ(LogSumExp(std::vector<float>{0, 0, 0, 0}), std::log(4.0));
}

std::vector<float> RandomLogits(uint64_t seed) {
  std::vector<float> logits(64);
  for (size_t n = 0; n < logits.size(); ++n) {
    logits[n] = static_cast<float>(8 * RandomUniform(seed, n) - 4);
  }
  return logits;
}

std::vector<double> Softmax(const std::vector<float>& logits) {
  std::vector<double> shares;
  double sum = 0;
  for (const float logit : logits) {
    shares.push_back(std::exp(static_cast<double>(logit)));
    sum += shares.back();
  }
  for (double& share : shares) {
    share /= sum;
  }
  return shares;
}

TEST(CompareRow, IsTheDefinition) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> base = RandomLogits(seed);
    const std::vector<float> logits = RandomLogits(seed + 100);
    const std::vector<double> p = Softmax(base);
    const std::vector<double> q = Softmax(logits);
    double divergence = 0;
    for (size_t n = 0; n < p.size(); ++n) {
      divergence += p[n] * std::log(p[n] / q[n]);
    }
    const RowComparison row = CompareRow(base, logits, 7);
    EXPECT_NEAR(row.divergence, divergence, 1e-12);
    EXPECT_NEAR(row.nll, -std::log(q[7]), 1e-12);
    EXPECT_NEAR(row.base_nll, -std::log(p[7]), 1e-12);
    EXPECT_NEAR(row.probability_difference, q[7] - p[7], 1e-12);
    EXPECT_EQ(row.has_same_top, std::max_element(p.begin(), p.end()) - p.begin() ==
                                    std::max_element(q.begin(), q.end()) - q.begin());
  }
  const RowComparison same = CompareRow(RandomLogits(1), RandomLogits(1), 0);
  EXPECT_EQ(same.divergence, 0);
  EXPECT_TRUE(same.has_same_top);
}

TEST(ComparisonStats, GathersRows) {
  ComparisonStats stats;
  EXPECT_EQ(stats.DivergenceQuantile(0.5), 0);
  for (const double divergence : {0.4, 0.1, 0.2, 0.3}) {
    stats.Add({.nll = 2 + divergence,
               .base_nll = 2,
               .divergence = divergence,
               .probability_difference = -divergence,
               .has_same_top = divergence < 0.35});
  }
  EXPECT_DOUBLE_EQ(stats.DivergenceQuantile(0), 0.1);
  EXPECT_DOUBLE_EQ(stats.DivergenceQuantile(0.5), 0.25);
  EXPECT_DOUBLE_EQ(stats.DivergenceQuantile(1), 0.4);
  EXPECT_DOUBLE_EQ(stats.divergence().mean(), 0.25);
  EXPECT_DOUBLE_EQ(stats.nll_difference().mean(), 0.25);
  EXPECT_DOUBLE_EQ(stats.base_nll().mean(), 2);
  EXPECT_DOUBLE_EQ(stats.probability_difference().mean(), -0.25);
  EXPECT_DOUBLE_EQ(stats.same_top().mean(), 0.75);
}

}  // namespace
}  // namespace facet
