// SPDX-License-Identifier: Apache-2.0
#include "media/video.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace facet {
namespace {

constexpr double kUnknownRate = 24;  // what the reference assumes

/// How many frames `choice` asks for, at least 1 and at most `n_total`.
int64_t CountWanted(int64_t n_total, double rate, const FrameChoice& choice) {
  const int64_t most = std::clamp<int64_t>(choice.n_frames, 1, n_total);
  if (!choice.fps) {
    return most;
  }
  const double known_rate = std::isfinite(rate) && rate > 0 ? rate : kUnknownRate;
  const double n_by_time = std::floor(static_cast<double>(n_total) / known_rate * *choice.fps);
  return n_by_time < static_cast<double>(most)
             ? std::max<int64_t>(1, static_cast<int64_t>(n_by_time))
             : most;
}

}  // namespace

std::vector<int64_t> ChooseFrames(int64_t n_total, double rate, const FrameChoice& choice) {
  const int64_t n_wanted = CountWanted(n_total, rate, choice);
  // A product of floating point on purpose: where the step is no whole number, the reference's
  // index may be one below that of exact division.
  const double step = static_cast<double>(n_total) / static_cast<double>(n_wanted);
  std::vector<int64_t> indices;
  indices.reserve(static_cast<size_t>(n_wanted));
  for (int64_t j = 0; j < n_wanted; ++j) {
    indices.push_back(static_cast<int64_t>(static_cast<double>(j) * step));
  }
  return indices;
}

std::string TimestampText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  return fmt::format("{:02d}:{:02d}", whole / 60, whole % 60);
}

}  // namespace facet
