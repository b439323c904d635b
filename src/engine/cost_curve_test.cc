// SPDX-License-Identifier: Apache-2.0
#include "engine/cost_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace facet {
namespace {

TEST(CostCurve, OneCountIsInProportion) {
  CostCurve curve;
  EXPECT_TRUE(curve.empty());
  curve.Add(2, 0.08);
  EXPECT_FALSE(curve.empty());
  const std::vector<double> seconds = curve.Estimate(1, 2);
  ASSERT_EQ(seconds.size(), 3U);
  EXPECT_NEAR(seconds[0], 0.04, 1e-6);
  EXPECT_NEAR(seconds[1], 0.08, 1e-6);
  EXPECT_NEAR(seconds[2], 0.12, 1e-6);
}

TEST(CostCurve, TwoCountsMakeALine) {
  CostCurve curve;
  for (int n = 0; n < 20; ++n) {
    curve.Add(1, 0.040);
    curve.Add(3, 0.048);
  }
  const std::vector<double> seconds = curve.Estimate(1, 7);
  EXPECT_NEAR(seconds[0], 0.040, 2e-4);
  EXPECT_NEAR(seconds[1], 0.044, 2e-4);
  EXPECT_NEAR(seconds[7], 0.068, 1e-3);
}

TEST(CostCurve, ValuesThatAreNoTimesAreIgnored) {
  CostCurve curve;
  for (const double seconds : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    curve.Add(1, seconds);
  }
  EXPECT_TRUE(curve.empty());
}

TEST(CostCurve, APauseMovesLittleAndASlowFirstTimeNothing) {
  CostCurve curve;
  curve.Add(1, 4.0);  // the weights were read from disk
  for (int n = 0; n < 20; ++n) {
    curve.Add(1, 0.040);
  }
  EXPECT_NEAR(curve.Estimate(1, 0).front(), 0.040, 1e-4);
  curve.Add(1, 0.4);
  EXPECT_LT(curve.Estimate(1, 0).front(), 0.0415);
}

TEST(CostCurve, AMachineThatBecomesSlowerOrFasterIsFollowed) {
  CostCurve curve;
  for (int n = 0; n < 20; ++n) {
    curve.Add(1, 0.040);
    curve.Add(3, 0.048);
  }
  for (int n = 0; n < 200; ++n) {
    curve.Add(1, 0.080);
  }
  EXPECT_NEAR(curve.Estimate(1, 0).front(), 0.080, 2e-3);
  EXPECT_GE(curve.Estimate(1, 2).back(), curve.Estimate(1, 0).front()) << "less takes no longer";
  for (int n = 0; n < 4; ++n) {
    curve.Add(1, 0.020);
  }
  EXPECT_NEAR(curve.Estimate(1, 0).front(), 0.020, 5e-3);
  EXPECT_LE(curve.Estimate(1, 2).back(), 0.080) << "nothing costs more in company than alone";
}

TEST(CostCurve, SecondsArePositiveAlsoBelowASteepLine) {
  CostCurve curve;
  for (int n = 0; n < 20; ++n) {
    curve.Add(10, 0.010);
    curve.Add(12, 0.030);
  }
  EXPECT_GT(curve.Estimate(1, 0).front(), 0);
  EXPECT_LE(curve.Estimate(1, 0).front(), 0.010);
}

TEST(CostCurve, LargeCountsHaveATimeToo) {
  CostCurve curve;
  for (int n = 0; n < 20; ++n) {
    curve.Add(1, 0.1);
    curve.Add(512, 1.0);
    curve.Add(1'000'000, 2000.0);
  }
  const double at_512 = curve.Estimate(512, 0).front();
  EXPECT_NEAR(at_512, 1.0, 0.2);
  EXPECT_GT(curve.Estimate(1'000'000, 1).back(), 1000);
}

}  // namespace
}  // namespace facet
