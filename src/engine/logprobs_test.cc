// SPDX-License-Identifier: Apache-2.0
#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace facet {
namespace {

TEST(Logprobs, AreLogarithmsOfTheSoftmax) {
  const std::array<float, 4> logits = {std::log(0.1F), std::log(0.4F), std::log(0.2F),
                                       std::log(0.3F)};
  const TokenLogprobs result = ComputeLogprobs(logits, 2, 3);
  EXPECT_EQ(result.drawn.token, 2);
  EXPECT_NEAR(result.drawn.logprob, std::log(0.2), 1e-6);
  ASSERT_EQ(result.top.size(), 3U);
  EXPECT_EQ(result.top[0].token, 1);
  EXPECT_EQ(result.top[1].token, 3);
  EXPECT_EQ(result.top[2].token, 2);
  EXPECT_NEAR(result.top[0].logprob, std::log(0.4), 1e-6);
}

TEST(Logprobs, LargeLogitsDoNotOverflowAndEqualsStandById) {
  const float none = -std::numeric_limits<float>::infinity();
  const std::array<float, 4> logits = {none, 1e30F, 1e30F, -1e30F};
  const TokenLogprobs result = ComputeLogprobs(logits, 0, 4);
  EXPECT_EQ(result.drawn.logprob, none);
  EXPECT_EQ(result.top[0].token, 1);
  EXPECT_EQ(result.top[1].token, 2);
  EXPECT_EQ(result.top[3].token, 0);
  EXPECT_NEAR(result.top[0].logprob, std::log(0.5), 1e-6);
  EXPECT_TRUE(ComputeLogprobs(logits, 1, 0).top.empty());
}

}  // namespace
}  // namespace facet
