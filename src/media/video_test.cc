// SPDX-License-Identifier: Apache-2.0
#include "media/video.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "support/testing.h"

namespace facet {
namespace {

const Json& Cases() {
  static const Json cases = testing::JsonOrDie(testing::TestdataPath("media/video/cases.json"));
  return cases;
}

std::vector<int64_t> IntegersOf(const Json& array) {
  std::vector<int64_t> integers;
  for (const Json& item : array.items()) {
    integers.push_back(item.as_int());
  }
  return integers;
}

std::vector<std::string> TextsOf(const Json& array) {
  std::vector<std::string> texts;
  for (const Json& item : array.items()) {
    texts.push_back(item.as_string());
  }
  return texts;
}

/// Compares indices and times with a case of the reference. `n_frames` is the choice that it had.
void ExpectCase(const Json& expected, int64_t n_total, double rate, const FrameChoice& choice) {
  SCOPED_TRACE(::testing::Message() << n_total << " frames, " << rate << " a second");
  const std::vector<int64_t> indices = ChooseFrames(n_total, rate, choice);
  if (expected.contains("error")) {  // the reference refuses fewer frames than asked for
    ASSERT_EQ(static_cast<int64_t>(indices.size()), n_total);
    for (int64_t i = 0; i < n_total; ++i) {
      EXPECT_EQ(indices[static_cast<size_t>(i)], i);
    }
    return;
  }
  EXPECT_EQ(indices, IntegersOf(expected["indices"]));
  std::vector<std::string> stamps;
  for (const int64_t index : indices) {
    stamps.push_back(TimestampText(static_cast<double>(index) / rate));
  }
  EXPECT_EQ(stamps, TextsOf(expected["timestamps"]));
}

TEST(ChooseFrames, IsTheReferencesOnTheClips) {
  for (const Json& clip : Cases()["clips"].items()) {
    const auto n_total = clip["decoded_frames"].as_int();
    const auto rate = clip["fps"].as_double();
    ExpectCase(clip["default_32"], n_total, rate, {});
    ExpectCase(clip["num_frames_4"], n_total, rate, {.n_frames = 4});
    ExpectCase(clip["num_frames_1"], n_total, rate, {.n_frames = 1});
    ExpectCase(clip["fps_1"], n_total, rate, {.fps = 1});
    ExpectCase(clip["fps_2.5"], n_total, rate, {.fps = 2.5});
  }
}

TEST(ChooseFrames, IsTheReferencesOnOtherTotalsAndRates) {
  int n_cases = 0;
  for (const Json& row : Cases()["sampling"].items()) {
    const double rate = row["fps"].is_null() ? 24 : row["fps"].as_double();
    FrameChoice choice;
    if (row.contains("num_frames")) {
      choice.n_frames = static_cast<int>(row["num_frames"].as_int());
    }
    if (row.contains("sample_fps")) {
      choice = {.n_frames = kMostVideoFrames, .fps = row["sample_fps"].as_double()};
    }
    ExpectCase(row, row["total"].as_int(), rate, choice);
    ++n_cases;
  }
  EXPECT_GE(n_cases, 50);
}

TEST(ChooseFrames, AscendsWithinTheVideoWhateverIsAsked) {
  for (const int64_t n_total : {1, 2, 3, 31, 49, 1000, 4194304}) {
    for (int n_frames = 1; n_frames <= kMostVideoFrames; ++n_frames) {
      const auto indices = ChooseFrames(n_total, 30, {.n_frames = n_frames});
      ASSERT_EQ(static_cast<int64_t>(indices.size()), std::min<int64_t>(n_frames, n_total));
      ASSERT_EQ(indices.front(), 0);
      for (size_t j = 1; j < indices.size(); ++j) {
        ASSERT_LT(indices[j - 1], indices[j]);
      }
      ASSERT_LT(indices.back(), n_total);
    }
  }
}

TEST(ChooseFrames, TheMostFramesLimitTheRate) {
  EXPECT_EQ(ChooseFrames(7200, 60, {.n_frames = 3, .fps = 1}),
            (std::vector<int64_t>{0, 2400, 4800}));
  EXPECT_EQ(ChooseFrames(10, 5, {.n_frames = 32, .fps = 1e300}).size(), 10U);
  EXPECT_EQ(ChooseFrames(10, 5, {.n_frames = 0}), std::vector<int64_t>{0});
}

TEST(ChooseFrames, AnUnknownRateIsThatOfFilm) {
  for (const double rate : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(ChooseFrames(48, rate, {.fps = 1}), (std::vector<int64_t>{0, 24}));
  }
}

TEST(TimestampText, HasMinutesAndSeconds) {
  EXPECT_EQ(TimestampText(0), "00:00");
  EXPECT_EQ(TimestampText(59.999), "00:59");
  EXPECT_EQ(TimestampText(60), "01:00");
  EXPECT_EQ(TimestampText(5999.5), "99:59");
  EXPECT_EQ(TimestampText(7500), "125:00");
  EXPECT_EQ(TimestampText(60000), "1000:00");
}

}  // namespace
}  // namespace facet
