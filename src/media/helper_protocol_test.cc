// SPDX-License-Identifier: Apache-2.0
#include "media/helper_protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.h"

namespace facet {
namespace {

/// Gives the text and then ends.
ByteSource SourceOf(std::string text) {
  return [text = std::move(text), n_read = size_t{0}](std::span<std::byte> out) mutable -> Status {
    if (text.size() - n_read < out.size()) {
      return Refuse("", "the end");
    }
    std::memcpy(out.data(), text.data() + n_read, out.size());
    n_read += out.size();
    return {};
  };
}

HelperJob SmallJob() {
  return {.frames = {.n_frames = 2},
          .max_pixels = 100,
          .max_bytes = 1000,
          .max_seconds = 2,
          .timeout_s = 5};
}

std::string FrameWithPixels(const FrameHead& head) {
  std::string message = FrameMessage(head);
  for (int i = 0; i < 3 * head.width * head.height; ++i) {
    message += static_cast<char>(i + head.index);
  }
  return message;
}

std::string GoodVideo() {
  return VideoMessage({.n_total = 10, .rate = 25, .has_sound = true}) +
         FrameWithPixels({.index = 0, .seconds = 0, .width = 2, .height = 3}) +
         FrameWithPixels({.index = 5, .seconds = 0.2, .width = 4, .height = 1}) + DoneMessage();
}

std::string VideoError(const std::string& answer) {
  const auto video = ReadVideoAnswer(SourceOf(answer), SmallJob());
  return video.ok() ? "none" : video.error().Message();
}

struct Sound {
  int rate = 0;
  std::vector<float> samples;
  std::string error = "none";
};

Sound ReadSound(const std::string& answer) {
  Sound sound;
  const auto begin = [&](int rate) -> Status {
    sound.rate = rate;
    return {};
  };
  const auto add = [&](std::span<const float> samples) {
    sound.samples.insert(sound.samples.end(), samples.begin(), samples.end());
  };
  const Status status = ReadSoundAnswer(SourceOf(answer), SmallJob(), {begin, add});
  sound.error = status.ok() ? "none" : status.error().Message();
  return sound;
}

TEST(HelperJob, IsReadAsItWasWritten) {
  const HelperJob job{.task = HelperTask::kSound,
                      .container = Container::kAdts,
                      .frames = {.n_frames = 7, .fps = 2.5},
                      .max_pixels = 123,
                      .max_bytes = int64_t{1} << 40,
                      .max_seconds = 0.5,
                      .timeout_s = 9};
  const std::string bytes = WriteJob(job);
  ASSERT_EQ(bytes.size(), kHelperJobBytes);
  const auto read = ReadJob(AsBytes(bytes));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->task, job.task);
  EXPECT_EQ(read->container, job.container);
  EXPECT_EQ(read->frames.n_frames, 7);
  EXPECT_EQ(read->frames.fps, 2.5);
  EXPECT_EQ(read->max_pixels, 123);
  EXPECT_EQ(read->max_bytes, job.max_bytes);
  EXPECT_EQ(read->max_seconds, 0.5);
  EXPECT_EQ(read->timeout_s, 9);
  EXPECT_FALSE(ReadJob(AsBytes(WriteJob({})))->frames.fps.has_value());
}

TEST(HelperJob, OthersAreRefused) {
  const std::string bytes = WriteJob({});
  for (size_t size = 0; size < kHelperJobBytes; ++size) {
    EXPECT_FALSE(ReadJob(AsBytes(bytes).first(size)).ok()) << size;
  }
  for (const size_t place : std::vector<size_t>{0, 3, 4, 8, 9}) {
    std::string other = bytes;
    other[place] = 9;
    EXPECT_FALSE(ReadJob(AsBytes(other)).ok()) << place;
  }
}

TEST(ReadVideoAnswer, GivesFramesTimesAndSound) {
  const auto video = ReadVideoAnswer(SourceOf(GoodVideo()), SmallJob());
  ASSERT_TRUE(video.ok()) << video.error().Message();
  ASSERT_EQ(video->frames.size(), 2U);
  EXPECT_EQ(video->frames[0].width, 2);
  EXPECT_EQ(video->frames[0].height, 3);
  EXPECT_EQ(video->frames[0].rgb.size(), 18U);
  EXPECT_EQ(video->frames[1].rgb[11], 16);
  EXPECT_EQ(video->seconds, (std::vector<double>{0, 0.2}));
  EXPECT_TRUE(video->has_sound);
}

TEST(ReadVideoAnswer, AnEarlyEndIsTheSources) {
  const std::string answer = GoodVideo();
  for (size_t size = 0; size < answer.size(); ++size) {
    EXPECT_EQ(VideoError(answer.substr(0, size)), "the end") << size;
  }
}

TEST(ReadVideoAnswer, TheHelpersErrorMayComeAnywhere) {
  const std::string fail = FailMessage(Refuse("", "a broken file", "a whole one"));
  const std::string answer = GoodVideo();
  for (const char* tag : {"VIDE", "FRAM", "DONE"}) {
    EXPECT_EQ(VideoError(answer.substr(0, answer.find(tag)) + fail),
              "a broken file, wanted a whole one");
  }
  EXPECT_EQ(VideoError(FailMessage(Refuse("", "tab\tbell\a\x1b[0m\xFF", ""))), "tab?bell??[0m?");
}

TEST(ReadVideoAnswer, BelievesNoCount) {
  const auto head = [](int64_t n_total) {
    return VideoMessage({.n_total = n_total, .rate = 25, .has_sound = false});
  };
  const auto frame = [&](const FrameHead& f) { return head(1) + FrameMessage(f); };
  EXPECT_EQ(VideoError(head(0)), "facet-media answers 0 frames in the file, wanted 1 to 4194304");
  EXPECT_EQ(VideoError(head(int64_t{1} << 62)),
            "facet-media answers 4611686018427387904 frames in the file, wanted 1 to 4194304");
  EXPECT_EQ(VideoError(frame({.index = 0, .seconds = 0, .width = 0, .height = 5})),
            "facet-media answers a frame of 0 x 5 pixels, wanted 1 to 100 pixels");
  EXPECT_EQ(VideoError(frame({.index = 0, .seconds = 0, .width = 11, .height = 10})),
            "facet-media answers a frame of 11 x 10 pixels, wanted 1 to 100 pixels");
  EXPECT_EQ(VideoError(frame({.index = 0, .seconds = 0, .width = -1, .height = -1})),
            "facet-media answers a frame of 4294967295 x 4294967295 pixels, "
            "wanted 1 to 100 pixels");
  EXPECT_EQ(VideoError(frame({.index = 1, .seconds = 0, .width = 1, .height = 1})),
            "facet-media answers frame 1, wanted frame 0");
  EXPECT_EQ(VideoError(frame({.index = 0, .seconds = -1, .width = 1, .height = 1})),
            "facet-media answers a frame at -1 s, wanted 0 to 10000000 s");
  EXPECT_EQ(VideoError(frame({.index = 0, .seconds = NAN, .width = 1, .height = 1})),
            "facet-media answers a frame at nan s, wanted 0 to 10000000 s");
  EXPECT_EQ(VideoError("VIDX"), "facet-media answers \"VIDX\", wanted VIDE");
  EXPECT_EQ(VideoError(std::string("\0\n\x7F\xFF", 4)),
            "facet-media answers \"????\", wanted VIDE");
  std::string fail = "FAIL";
  Append(fail, uint32_t{1025});
  EXPECT_EQ(VideoError(fail), "facet-media answers a text of 1025 bytes, wanted at most 1024");
}

TEST(ReadVideoAnswer, LimitsAllFramesTogether) {
  HelperJob job = SmallJob();
  job.max_bytes = 18 + 11;
  const auto video = ReadVideoAnswer(SourceOf(GoodVideo()), job);
  ASSERT_FALSE(video.ok());
  EXPECT_EQ(video.error().Message(), "facet-media answers more bytes of frames, wanted at most 29");
  job.max_bytes = 18 + 12;
  EXPECT_TRUE(ReadVideoAnswer(SourceOf(GoodVideo()), job).ok());
}

TEST(ReadSoundAnswer, GivesSamplesAsTheyCome) {
  const Sound sound = ReadSound(SoundMessage(8000) + SamplesMessage(std::vector<float>{0.5F, -1}) +
                                SamplesMessage(std::vector<float>{0.25F}) + DoneMessage());
  EXPECT_EQ(sound.error, "none");
  EXPECT_EQ(sound.rate, 8000);
  EXPECT_EQ(sound.samples, (std::vector<float>{0.5F, -1, 0.25F}));
}

TEST(ReadSoundAnswer, BelievesNoCount) {
  EXPECT_EQ(ReadSound(SoundMessage(0)).error,
            "facet-media answers 0 samples a second, wanted 1000 to 768000");
  EXPECT_EQ(ReadSound(SoundMessage(-5)).error,
            "facet-media answers 4294967291 samples a second, wanted 1000 to 768000");
  std::string many = SoundMessage(8000) + "PCMF";
  Append(many, uint32_t{65537});
  EXPECT_EQ(ReadSound(many).error,
            "facet-media answers 65537 samples after 0, "
            "wanted 1 to 65536 at a time, 16000 in all");
  const std::string second = SamplesMessage(std::vector<float>(8000));
  EXPECT_EQ(ReadSound(SoundMessage(8000) + second + second + DoneMessage()).samples.size(), 16000U);
  EXPECT_EQ(
      ReadSound(SoundMessage(8000) + second + second + SamplesMessage(std::vector<float>(1))).error,
      "facet-media answers 1 samples after 16000, "
      "wanted 1 to 65536 at a time, 16000 in all");
  EXPECT_EQ(ReadSound(SoundMessage(8000) + SamplesMessage(std::vector<float>{0, INFINITY})).error,
            "facet-media answers samples that are no numbers, wanted finite numbers");
  EXPECT_EQ(ReadSound(SoundMessage(8000) + "FRAM").error,
            "facet-media answers \"FRAM\", wanted PCMF or DONE");
  EXPECT_EQ(ReadSound(SoundMessage(8000)).error, "the end");
}

}  // namespace
}  // namespace facet
