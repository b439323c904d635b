// SPDX-License-Identifier: Apache-2.0
// What tests of facet-media share: the program that was built, its clips, and reading the number
// that is drawn into each frame of them (testdata/media/README.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "media/media_helper.h"
#include "media/video.h"
#include "support/testing.h"

namespace facet::helper {

inline std::string ClipBytes(const std::string& name) {
  return testing::ReadOrDie(testing::TestdataPath("media/video/" + name));
}

inline MediaHelper BuiltHelper(const HelperLimits& limits = {}) {
  return MediaHelper(FACET_MEDIA_PROGRAM, limits);
}

/// The number in the top row of blocks, the most significant bit left.
inline int64_t NumberOf(const Image& frame) {
  constexpr int kBlock = 8;
  int64_t number = 0;
  for (int bit = 0; bit < 8; ++bit) {
    int sum = 0;
    for (int y = 3; y < 6; ++y) {
      for (int x = kBlock * bit + 2; x < kBlock * bit + 6; ++x) {
        sum += frame.rgb[static_cast<size_t>(3 * (y * frame.width + x) + 1)];
      }
    }
    number = number * 2 + (sum > 12 * 128 ? 1 : 0);
  }
  return number;
}

inline std::vector<int64_t> NumbersOf(const VideoFrames& video) {
  std::vector<int64_t> numbers;
  for (const Image& frame : video.frames) {
    numbers.push_back(NumberOf(frame));
  }
  return numbers;
}

}  // namespace facet::helper
