// SPDX-License-Identifier: Apache-2.0
#include "quant/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "quant/levels.h"

namespace facet {
namespace {

constexpr int kN = 32;

struct Group {
  Float4 x[kN / 4];
  Float4 w[kN / 4];

  Weighted weighted() const { return {x, w, kN / 4}; }
  float At(int k) const { return x[k / 4][k % 4]; }
  void Set(int k, float value, float weight) {
    x[k / 4][k % 4] = value;
    w[k / 4][k % 4] = weight;
  }
};

// Uniform in [-1, 1), with weights from 0.25 to 4.
Group RandomGroup(uint64_t seed) {
  Group group;
  for (int k = 0; k < kN; ++k) {
    const uint64_t bits = RandomBits(seed, static_cast<uint64_t>(k));
    const float value = static_cast<float>(bits % 4096) / 2048.0f - 1.0f;
    group.Set(k, value, std::exp2(static_cast<float>(bits / 4096 % 5) - 2.0f));
  }
  return group;
}

TEST(IntegerLevels, RoundToTheNearestAndCut) {
  const IntegerLevels levels = {-8.0f, 7.0f};
  const Float4 found = levels.Nearest(Float4{-1e9f, -0.6f, 2.5f, 7.9f});
  EXPECT_EQ(found[0], -8.0f);
  EXPECT_EQ(found[1], -1.0f);
  EXPECT_EQ(found[2], 2.0f);
  EXPECT_EQ(found[3], 7.0f);
  EXPECT_EQ(levels.IndexOf(-8.0f), 0);
  EXPECT_EQ(levels.IndexOf(7.0f), 15);
}

TEST(TableLevels, AreTheNearestOfTheTable) {
  const Iq4Levels levels;
  for (float v = -140.0f; v <= 130.0f; v += 0.125f) {
    size_t nearest = 0;
    for (size_t i = 1; i < std::size(kIq4Levels); ++i) {
      // Ties go up.
      nearest = std::fabs(static_cast<float>(kIq4Levels[i]) - v) <=
                        std::fabs(static_cast<float>(kIq4Levels[nearest]) - v)
                    ? i
                    : nearest;
    }
    const float found = levels.Nearest(Splat(v))[2];
    ASSERT_EQ(found, static_cast<float>(kIq4Levels[nearest])) << v;
    ASSERT_EQ(levels.IndexOf(found), static_cast<int>(nearest)) << v;
  }
}

TEST(Round, SumsWhatTheRoundingGives) {
  const Group group = RandomGroup(1);
  const Affine stored = {0.21f, -0.1f};
  const Rounding found = Round(IntegerLevels{-3.0f, 3.0f}, group.weighted(), stored);
  double wq = 0;
  double error = 0;
  for (int k = 0; k < kN; ++k) {
    const double w = group.w[k / 4][k % 4];
    const double q =
        std::fmin(std::fmax(std::nearbyint((group.At(k) - stored.offset) / stored.scale), -3), 3);
    wq += w * q;
    error += w * std::pow(group.At(k) - (stored.scale * q + stored.offset), 2);
  }
  EXPECT_NEAR(found.moments.wq, wq, 1e-4);
  EXPECT_NEAR(found.error, error, 1e-4 * error);
}

// What can be stored without error is.
TEST(FitScale, FindsAnExactScale) {
  for (const float scale : {0.37f, -0.37f}) {
    Group group;
    for (int k = 0; k < kN; ++k) {
      group.Set(k, scale * static_cast<float>(k % 16 - 8), 1.0f);
    }
    EXPECT_NEAR(FitScale(IntegerLevels{-8.0f, 7.0f}, group.weighted()), scale, 1e-6f);
  }
}

TEST(FitScale, IsZeroForZeros) {
  Group group = {};
  EXPECT_EQ(FitScale(IntegerLevels{-8.0f, 7.0f}, group.weighted()), 0.0f);
  EXPECT_EQ(FitScale(Iq4Levels{}, group.weighted()), 0.0f);
}

// Within a hundredth of the best of ten thousand scales, in the mean over groups.
template <class Levels>
void ExpectNearBest(const Levels& levels) {
  double found = 0;
  double least = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Group group = RandomGroup(seed);
    const float scale = FitScale(levels, group.weighted());
    found += Round(levels, group.weighted(), {scale, 0.0f}).error;
    float best = std::numeric_limits<float>::infinity();
    for (int i = 1; i <= 10000; ++i) {
      const float tried = 3.0f / levels.highest * static_cast<float>(i) / 10000.0f;
      best = std::fmin(best, Round(levels, group.weighted(), {tried, 0.0f}).error);
      best = std::fmin(best, Round(levels, group.weighted(), {-tried, 0.0f}).error);
    }
    least += best;
  }
  EXPECT_LE(found, 1.01 * least);
}

TEST(FitScale, IsNearTheBest) {
  ExpectNearBest(IntegerLevels{-4.0f, 3.0f});
  ExpectNearBest(IntegerLevels{-8.0f, 7.0f});
  ExpectNearBest(Iq4Levels{});
}

TEST(FitAffine, FindsAnExactScaleAndOffset) {
  Group group;
  for (int k = 0; k < kN; ++k) {
    group.Set(k, 0.5f * static_cast<float>(k % 16) + 100.0f, k % 3 == 0 ? 0.5f : 2.0f);
  }
  const Affine found = FitAffine(15.0f, std::numeric_limits<float>::infinity(), group.weighted());
  EXPECT_NEAR(found.scale, 0.5f, 1e-5f);
  EXPECT_NEAR(found.offset, 100.0f, 1e-4f);
}

TEST(FitAffine, KeepsTheOffsetInItsBound) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Group group = RandomGroup(seed);
    for (int k = 0; k < kN; ++k) {
      group.x[k / 4][k % 4] += 1.5f;
    }
    const Affine found = FitAffine(15.0f, 0.0f, group.weighted());
    EXPECT_LE(found.offset, 0.0f);
    EXPECT_GT(found.scale, 0.0f);
    // 2.5 is the largest value: steps of a sixth, and errors of a quarter of that.
    EXPECT_LT(Round(IntegerLevels{0.0f, 15.0f}, group.weighted(), found).error,
              SumsOf(group.weighted()).w * 0.04f * 0.08f);
  }
}

TEST(FitAffine, TakesEqualValues) {
  Group group;
  for (const float value : {0.0f, -3.0f, 3.0f}) {
    for (int k = 0; k < kN; ++k) {
      group.Set(k, value, 1.0f);
    }
    const Affine found = FitAffine(15.0f, 0.0f, group.weighted());
    const Rounding rounding = Round(IntegerLevels{0.0f, 15.0f}, group.weighted(), found);
    EXPECT_NEAR(rounding.error, 0.0f, 1e-10f) << value;
  }
}

}  // namespace
}  // namespace facet
