// SPDX-License-Identifier: Apache-2.0
// Answers of a helper that was taken over: any bytes are refused, or are frames and sound within
// the limits of the job. The first byte chooses the job, the rest is the answer.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "media/helper_protocol.h"

namespace {

constexpr int64_t kMostPixels = 64;
constexpr int64_t kMostBytes = 1000;

/// What is left of the input, handed out as it is asked for.
facet::ByteSource SourceOf(std::span<const std::byte> bytes) {
  return [bytes](std::span<std::byte> out) mutable -> facet::Status {
    if (bytes.size() < out.size()) {
      return facet::Refuse("", "the end");
    }
    std::copy_n(bytes.begin(), out.size(), out.begin());
    bytes = bytes.subspan(out.size());
    return {};
  };
}

/// What is read as a job is written as one that says the same.
void CheckJob(std::span<const std::byte> bytes) {
  const auto job = facet::ReadJob(bytes);
  if (!job.ok()) {
    FACET_CHECK(!job.error().Message().empty());
    return;
  }
  const std::string written = facet::WriteJob(*job);
  const auto again = facet::ReadJob(facet::AsBytes(written));
  FACET_CHECK(again.ok() && facet::WriteJob(*again) == written);
}

void CheckVideo(std::span<const std::byte> answer, const facet::HelperJob& job) {
  const auto video = facet::ReadVideoAnswer(SourceOf(answer), job);
  if (!video.ok()) {
    FACET_CHECK(video.error().where.empty());
    return;
  }
  FACET_CHECK(!video->frames.empty() && video->frames.size() == video->seconds.size());
  FACET_CHECK(static_cast<int>(video->frames.size()) <= job.frames.n_frames);
  int64_t n_bytes = 0;
  for (const facet::Image& frame : video->frames) {
    const int64_t n_pixels = int64_t{frame.width} * frame.height;
    FACET_CHECK(frame.width > 0 && frame.height > 0 && n_pixels <= kMostPixels);
    FACET_CHECK(static_cast<int64_t>(frame.rgb.size()) == 3 * n_pixels);
    n_bytes += 3 * n_pixels;
  }
  FACET_CHECK(n_bytes <= kMostBytes);
  for (const double seconds : video->seconds) {
    FACET_CHECK(!facet::TimestampText(seconds).empty() && seconds >= 0);
  }
}

void CheckSound(std::span<const std::byte> answer, const facet::HelperJob& job) {
  double n_left = 0;
  const auto begin = [&](int rate) -> facet::Status {
    FACET_CHECK(rate > 0);
    n_left = job.max_seconds * rate;
    return {};
  };
  const auto add = [&](std::span<const float> samples) {
    n_left -= static_cast<double>(samples.size());
    FACET_CHECK(n_left >= 0);
    FACET_CHECK(
        std::all_of(samples.begin(), samples.end(), [](float x) { return std::isfinite(x); }));
  };
  (void)facet::ReadSoundAnswer(SourceOf(answer), job, {begin, add});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  facet::HelperJob job{.max_pixels = kMostPixels, .max_bytes = kMostBytes, .max_seconds = 0.01};
  job.frames.n_frames = 1 + data[0] % 8;
  if (data[0] % 3 == 0) {
    job.frames.fps = data[0] / 16.0;
  }
  const auto bytes = std::as_bytes(std::span(data, size));
  CheckJob(bytes);
  if (data[0] < 128) {
    CheckVideo(bytes.subspan(1), job);
  } else {
    CheckSound(bytes.subspan(1), job);
  }
  return 0;
}
