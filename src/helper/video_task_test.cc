// SPDX-License-Identifier: Apache-2.0
// Through the program itself, as facet runs it.
#include "helper/video_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/json.h"
#include "format/safetensors.h"
#include "helper/helper_testing.h"

namespace facet::helper {
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

void ExpectFrames(const Json& clip, const std::string& label, const FrameChoice& choice) {
  const auto name = clip["file"].as_string();
  SCOPED_TRACE(name + " " + label);
  const std::string bytes = ClipBytes(name);
  const auto video = BuiltHelper().DecodeVideo(AsBytes(bytes), choice, name);
  ASSERT_TRUE(video.ok()) << video.error().Message();
  const auto rate = clip["fps"].as_double();
  const Json& expected = clip[label];
  const auto numbers = NumbersOf(*video);
  if (expected.contains("error")) {  // fewer frames than asked for: all of them
    EXPECT_EQ(static_cast<int64_t>(numbers.size()), clip["decoded_frames"].as_int());
  } else {
    EXPECT_EQ(numbers, IntegersOf(expected["indices"]));
  }
  ASSERT_EQ(video->seconds.size(), numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    // Matroska counts milliseconds.
    EXPECT_NEAR(video->seconds[i], static_cast<double>(numbers[i]) / rate, 6e-4);
    EXPECT_EQ(video->frames[i].width, 64);
    EXPECT_EQ(video->frames[i].height, 48);
    if (!expected.contains("error")) {
      EXPECT_EQ(TimestampText(video->seconds[i]), expected["timestamps"].items()[i].as_string());
    }
  }
  EXPECT_FALSE(video->has_sound);
}

TEST(AnswerVideo, GivesTheFramesThatTheReferencePicks) {
  for (const Json& clip : Cases()["clips"].items()) {
    ExpectFrames(clip, "default_32", {});
    ExpectFrames(clip, "num_frames_4", {.n_frames = 4});
    ExpectFrames(clip, "num_frames_1", {.n_frames = 1});
    ExpectFrames(clip, "fps_1", {.fps = 1});
    ExpectFrames(clip, "fps_2.5", {.fps = 2.5});
  }
}

TEST(AnswerVideo, GivesEveryFrame) {
  for (const Json& clip : Cases()["clips"].items()) {
    const auto name = clip["file"].as_string();
    const std::string bytes = ClipBytes(name);
    const auto video = BuiltHelper().DecodeVideo(AsBytes(bytes), {.n_frames = 1024}, name);
    ASSERT_TRUE(video.ok()) << video.error().Message();
    const auto numbers = NumbersOf(*video);
    ASSERT_EQ(static_cast<int64_t>(numbers.size()), clip["decoded_frames"].as_int()) << name;
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i], static_cast<int64_t>(i)) << name;
    }
  }
}

TEST(AnswerVideo, PixelsAreTheReferences) {
  const auto goldens =
      safetensors::File::Open(testing::TestdataPath("media/video/frames.safetensors"));
  ASSERT_TRUE(goldens.ok());
  for (const Json& clip : Cases()["clips"].items()) {
    const auto name = clip["file"].as_string();
    const std::string bytes = ClipBytes(name);
    const auto video = BuiltHelper().DecodeVideo(AsBytes(bytes), {.n_frames = 4}, name);
    ASSERT_TRUE(video.ok()) << video.error().Message();
    const auto* golden = goldens->Find(name + ".frames4");
    ASSERT_NE(golden, nullptr);
    std::string pixels;
    for (const Image& frame : video->frames) {
      pixels += AsText(std::as_bytes(std::span(frame.rgb)));
    }
    ASSERT_EQ(pixels.size(), golden->data.size());
    int farthest = 0;
    for (size_t i = 0; i < pixels.size(); ++i) {
      const int difference =
          static_cast<uint8_t>(pixels[i]) - std::to_integer<int>(golden->data[i]);
      farthest = std::max(farthest, std::abs(difference));
    }
    EXPECT_LE(farthest, 3) << name;
    RecordProperty("farthest_" + name.substr(0, name.find('.')), farthest);
  }
}

/// Writes a display matrix into the header of the only track of an MP4 file.
std::string WithMatrix(std::string mp4, const std::array<int, 4>& matrix) {
  const size_t box = mp4.find("tkhd");
  const size_t begin = box + 4 + 4 + 20 + 16;  // version and flags, five numbers, four more
  const std::array<size_t, 4> places = {0, 1, 3, 4};
  for (size_t i = 0; i < places.size(); ++i) {
    const auto value = static_cast<uint32_t>(matrix[i] * 65536);
    for (size_t byte = 0; byte < 4; ++byte) {
      mp4[begin + 4 * places[i] + byte] = static_cast<char>(value >> (24 - 8 * byte));
    }
  }
  return mp4;
}

TEST(AnswerVideo, TurnsFramesAsTheFileSays) {
  const std::string bytes = ClipBytes("clip.mp4");
  const auto plain = BuiltHelper().DecodeVideo(AsBytes(bytes), {.n_frames = 1}, "plain");
  ASSERT_TRUE(plain.ok());
  const Image& source = plain->frames[0];
  // a, b, c, d: shown x = a·x + c·y, shown y = b·x + d·y. A quarter turn clockwise is 0, 1, -1, 0.
  for (const std::array<int, 4>& m :
       {std::array{1, 0, 0, 1}, std::array{0, 1, -1, 0}, std::array{-1, 0, 0, -1},
        std::array{0, -1, 1, 0}, std::array{-1, 0, 0, 1}, std::array{0, 1, 1, 0}}) {
    const std::string turned_bytes = WithMatrix(bytes, m);
    const auto turned = BuiltHelper().DecodeVideo(AsBytes(turned_bytes), {.n_frames = 1}, "turned");
    ASSERT_TRUE(turned.ok()) << turned.error().Message();
    const Image& shown = turned->frames[0];
    ASSERT_EQ(shown.width, m[0] != 0 ? source.width : source.height);
    ASSERT_EQ(shown.height, m[0] != 0 ? source.height : source.width);
    int n_wrong = 0;
    for (int y = 0; y < source.height; ++y) {
      for (int x = 0; x < source.width; ++x) {
        const int shown_x = m[0] * x + m[2] * y + (m[0] + m[2] < 0 ? shown.width - 1 : 0);
        const int shown_y = m[1] * x + m[3] * y + (m[1] + m[3] < 0 ? shown.height - 1 : 0);
        n_wrong +=
            std::memcmp(&source.rgb[static_cast<size_t>(3 * (y * source.width + x))],
                        &shown.rgb[static_cast<size_t>(3 * (shown_y * shown.width + shown_x))],
                        3) != 0;
      }
    }
    EXPECT_EQ(n_wrong, 0) << m[0] << m[1] << m[2] << m[3];
  }
}

TEST(AnswerVideo, RefusesWithinTheLimits) {
  const std::string bytes = ClipBytes("clip.mp4");
  const auto large = BuiltHelper({.max_pixels = 3071}).DecodeVideo(AsBytes(bytes), {}, "clip.mp4");
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().Message(),
            "clip.mp4: frames of 64 x 48 pixels, wanted at most 3071 pixels");
  const auto many =
      BuiltHelper({.max_frame_bytes = 9216 * 31}).DecodeVideo(AsBytes(bytes), {}, "clip.mp4");
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().Message(),
            "clip.mp4: frames of more than 285696 bytes, wanted fewer frames, or smaller ones");
  const auto just =
      BuiltHelper({.max_frame_bytes = 9216 * 32}).DecodeVideo(AsBytes(bytes), {}, "clip.mp4");
  EXPECT_TRUE(just.ok());
}

TEST(AnswerVideo, RefusesWhatHasNoVideo) {
  const std::string sound =
      testing::ReadOrDie(testing::TestdataPath("media/audio/files/aac_44k_stereo.m4a"));
  std::string renamed = sound;
  renamed.replace(renamed.find("M4A "), 4, "isom");
  const auto none = BuiltHelper().DecodeVideo(AsBytes(renamed), {}, "clip.mp4");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().Message(), "clip.mp4: sound only, wanted a video");
  const auto known = BuiltHelper().DecodeVideo(AsBytes(sound), {}, "clip.m4a");
  ASSERT_FALSE(known.ok());
  EXPECT_EQ(known.error().Message(),
            "clip.m4a: a file of sound, wanted a video: MP4, MOV, WebM, Matroska, AVI or GIF");
}

}  // namespace
}  // namespace facet::helper
