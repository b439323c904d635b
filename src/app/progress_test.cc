// SPDX-License-Identifier: Apache-2.0
#include "app/progress.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

TEST(ShownBytes, HasThreeDigits) {
  EXPECT_EQ(ShownBytes(0), "0 B");
  EXPECT_EQ(ShownBytes(999), "999 B");
  EXPECT_EQ(ShownBytes(1000), "1.00 kB");
  EXPECT_EQ(ShownBytes(3257856), "3.26 MB");
  EXPECT_EQ(ShownBytes(99.96e6), "100 MB");
  EXPECT_EQ(ShownBytes(999.6e6), "1.00 GB");
  EXPECT_EQ(ShownBytes(1e18), "1000000 TB");
}

TEST(ShownProgress, TellsShareRateAndTimeLeft) {
  EXPECT_EQ(ShownProgress(1200000000, 2400000000, 4.0),
            "50%  1.20 GB of 2.40 GB  300 MB/s  4 s left");
  EXPECT_EQ(ShownProgress(0, 100, 0.0), "0%  0 B of 100 B");
  EXPECT_EQ(ShownProgress(0, 0, 1.0), "100%  0 B of 0 B");
}

TEST(Spinner, StaysSilentWithoutATerminal) {
  ::testing::internal::CaptureStderr();
  { const Spinner spinner("working"); }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace facet
