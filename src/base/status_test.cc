// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace facet {
namespace {

TEST(ErrorTest, MessageJoinsThePartsThatAreSet) {
  EXPECT_EQ(Refuse("a.gguf", "magic \"GGML\"", "\"GGUF\"").Message(),
            "a.gguf: magic \"GGML\", wanted \"GGUF\"");
  EXPECT_EQ(Refuse("a.gguf", "empty").Message(), "a.gguf: empty");
  EXPECT_EQ(Refuse("", "empty", "bytes").Message(), "empty, wanted bytes");
  EXPECT_EQ(Refuse("a.gguf", "", "bytes").Message(), "a.gguf, wanted bytes");
  EXPECT_EQ(Refuse("", "", "bytes").Message(), "wanted bytes");
  EXPECT_EQ(Refuse("", "empty").Message(), "empty");
}

Result<int> Half(int value) {
  if (value % 2 != 0) {
    return Refuse("half", "odd", "even");
  }
  return value / 2;
}

Result<int> Quarter(int value) {
  FACET_ASSIGN(const int half, Half(value));
  FACET_ASSIGN(int quarter, Half(half));
  return quarter;
}

Status CheckQuarter(int value) {
  FACET_RETURN_IF_ERROR(Half(value));
  FACET_RETURN_IF_ERROR(Quarter(value));
  return {};
}

TEST(ResultTest, HoldsAValueOrAnError) {
  EXPECT_TRUE(Half(4).ok());
  EXPECT_EQ(*Half(4), 2);
  EXPECT_FALSE(Half(3).ok());
  EXPECT_EQ(Half(3).error().Message(), "half: odd, wanted even");
}

TEST(ResultTest, MacrosPassErrorsOn) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).error().found, "odd");
  EXPECT_TRUE(CheckQuarter(8).ok());
  EXPECT_EQ(CheckQuarter(2).error().found, "odd");
  EXPECT_EQ(CheckQuarter(1).error().found, "odd");
}

Result<std::unique_ptr<int>> MakeOwned(bool works) {
  if (!works) {
    return Refuse("owned", "nothing");
  }
  return std::make_unique<int>(7);
}

Result<int> ReadOwned(bool works) {
  FACET_ASSIGN(const std::unique_ptr<int> owned, MakeOwned(works));
  return *owned;
}

TEST(ResultTest, MovesValuesThatCannotBeCopied) {
  EXPECT_EQ(*ReadOwned(true), 7);
  EXPECT_EQ(ReadOwned(false).error().Message(), "owned: nothing");
  Result<std::unique_ptr<int>> result = MakeOwned(true);
  EXPECT_EQ(*result->get(), 7);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(StatusTest, IsSuccessUnlessGivenAnError) {
  EXPECT_TRUE(Status().ok());
  const Status refused = Refuse("x", "y", "z");
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().Message(), "x: y, wanted z");
}

TEST(StatusDeathTest, ReadingTheWrongSideAborts) {
  const Result<int> value = 1;
  const Result<int> error = Refuse("x", "y");
  EXPECT_DEATH((void)value.error(), "CHECK failed: !ok\\(\\) at ");
  EXPECT_DEATH((void)*error, "CHECK failed: ok\\(\\) at ");
  EXPECT_DEATH((void)Status().error(), "CHECK failed: !ok\\(\\) at ");
}

}  // namespace
}  // namespace facet
