// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

TEST(CheckTest, EvaluatesItsConditionOnce) {
  int calls = 0;
  FACET_CHECK(++calls == 1);
  EXPECT_EQ(calls, 1);
}

TEST(CheckTest, IsOneStatement) {
  bool reached = false;
  if (reached)
    FACET_CHECK(false);
  else
    reached = true;
  EXPECT_TRUE(reached);
}

TEST(CheckDeathTest, SaysWhatFailedAndWhere) {
  EXPECT_DEATH(FACET_CHECK(1 + 1 == 3), "CHECK failed: 1 \\+ 1 == 3 at .*check_test\\.cc:[0-9]+");
  EXPECT_DEATH(CheckFailed("a < b", "file.cc", 12), "^CHECK failed: a < b at file\\.cc:12\n$");
}

}  // namespace
}  // namespace facet
