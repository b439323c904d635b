// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace facet {
namespace {

TEST(Nearest, FindsSlipsAndBeginnings) {
  const std::vector<std::string_view> names = {"--temp", "--top-k", "--top-p", "--threads"};
  EXPECT_EQ(Nearest("--tmep", names), "--temp");
  EXPECT_EQ(Nearest("--thr", names), "--threads");
  EXPECT_EQ(Nearest("--completely-different", names), "");
  EXPECT_EQ(Nearest("", names), "");
}

}  // namespace
}  // namespace facet
