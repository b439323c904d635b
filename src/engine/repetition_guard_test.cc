// SPDX-License-Identifier: Apache-2.0
#include "engine/repetition_guard.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <vector>

namespace facet {
namespace {

/// Tokens after which the guard speaks for `token(n)`, n = 0, 1, ...
std::optional<size_t> StopsAfter(size_t n_most, const std::function<int32_t(size_t)>& token) {
  RepetitionGuard guard;
  std::vector<int32_t> reply;
  while (reply.size() < n_most) {
    reply.push_back(token(reply.size()));
    if (guard.Push(reply)) {
      return reply.size();
    }
  }
  return std::nullopt;
}

TEST(RepetitionGuard, EndsACycleOfAnyPeriodUpToTheLargest) {
  for (size_t period = 1; period <= RepetitionGuard::kMaxPeriod; ++period) {
    const auto stops = StopsAfter(5000, [&](size_t n) { return static_cast<int32_t>(n % period); });
    EXPECT_EQ(stops, std::max<size_t>(256, 20 * period)) << period;
  }
  EXPECT_EQ(StopsAfter(5000, [](size_t n) { return static_cast<int32_t>(n % 65); }), std::nullopt);
}

TEST(RepetitionGuard, ACycleAfterOtherTextCountsFromWhereItBegins) {
  EXPECT_EQ(
      StopsAfter(5000, [](size_t n) { return static_cast<int32_t>(n < 1000 ? 100 + n : n % 3); }),
      1256U);
}

TEST(RepetitionGuard, LetsOrdinaryRepetitionBe) {
  // Counting: "1", ",", "2", ",", ...
  EXPECT_EQ(
      StopsAfter(4000, [](size_t n) { return static_cast<int32_t>(n % 2 == 0 ? 100 + n : 7); }),
      std::nullopt);
  // A table of 12 columns: bars and separators repeat, one cell of each row does not.
  EXPECT_EQ(StopsAfter(4000,
                       [](size_t n) {
                         const size_t column = n % 24;
                         return static_cast<int32_t>(column == 23 ? 1000 + n / 24 : column % 2);
                       }),
            std::nullopt);
  // A 16 x 16 matrix of zeros, then text.
  EXPECT_EQ(StopsAfter(2000,
                       [](size_t n) {
                         return static_cast<int32_t>(n < 16 * 33 ? (n % 33 == 32 ? 9 : n % 2) : n);
                       }),
            std::nullopt);
  // A rule of 200 equal tokens.
  EXPECT_EQ(StopsAfter(1000, [](size_t n) { return static_cast<int32_t>(n < 200 ? 5 : n); }),
            std::nullopt);
}

TEST(RepetitionGuard, RandomTextWithSmallVocabularyPasses) {
  std::mt19937 random(11);
  EXPECT_EQ(StopsAfter(20000, [&](size_t) { return static_cast<int32_t>(random() % 2); }),
            std::nullopt);
}

}  // namespace
}  // namespace facet
