// SPDX-License-Identifier: Apache-2.0
#include "base/ascii.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

TEST(Ascii, OnlyItsLettersBecomeSmall) {
  EXPECT_EQ(ToLowerAscii("Content-TYPE @[`{ AZaz 09"), "content-type @[`{ azaz 09");
  EXPECT_EQ(ToLowerAscii("\xC3\x84\xFF"), "\xC3\x84\xFF");
  EXPECT_EQ(ToLowerAscii(""), "");
  EXPECT_EQ(ToLowerAscii('Q'), 'q');
}

}  // namespace
}  // namespace facet
