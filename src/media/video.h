// SPDX-License-Identifier: Apache-2.0
// Which frames of a video a model sees, and the times written beside them (reference.md 5).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "media/image.h"

namespace facet {

inline constexpr int kDefaultVideoFrames = 32;
inline constexpr int kMostVideoFrames = 1024;

/// How frames are chosen.
struct FrameChoice {
  /// At most so many, evenly: index j · total / n, as the reference. All, where there are fewer.
  int n_frames = kDefaultVideoFrames;
  /// So many for each second of film (a number above 0; at least one frame), evenly, and still at
  /// most n_frames.
  std::optional<double> fps = {};
};

/// Ascending indices into 1 <= `n_total` < 2^40 frames that are shown `rate` a second (24, where
/// that is not a number above 0).
std::vector<int64_t> ChooseFrames(int64_t n_total, double rate, const FrameChoice& choice);

/// "MM:SS" of 0 <= `seconds` < 2^40, rounded down; minutes may have more digits.
std::string TimestampText(double seconds);

/// Takes a frame of a video as it comes, and when it is shown.
using FrameSink = std::function<Status(Image frame, double seconds)>;

/// The chosen frames of a video.
struct VideoFrames {
  std::vector<Image> frames;
  std::vector<double> seconds;  ///< when each is shown, from the beginning
  bool has_sound = false;       ///< there is a sound track, which no one hears
};

}  // namespace facet
