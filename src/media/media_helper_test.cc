// SPDX-License-Identifier: Apache-2.0
// With programs that answer as a test tells them to; the real one is tested in src/helper.
#include "media/media_helper.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/file.h"
#include "media/helper_protocol.h"
#include "support/testing.h"

namespace facet {
namespace {

const std::string kMp4 = std::string("\0\0\0\x20", 4) + "ftypisom" + std::string(20, '\0');
const std::string kM4a = std::string("\0\0\0\x20", 4) + "ftypM4A " + std::string(20, '\0');

/// A program that gives `answer` and does `then`.
std::string Program(const std::string& answer, const std::string& then = "") {
  const std::string folder = testing::MakeTempDir();
  EXPECT_TRUE(WriteFile(folder + "/answer", answer).ok());
  const std::string path = folder + "/program";
  EXPECT_TRUE(
      WriteFile(path, "#!/bin/sh\nPATH=/usr/bin:/bin\ncat " + folder + "/answer\n" + then + "\n")
          .ok());
  EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
  return path;
}

std::string VideoError(const MediaHelper& helper, const std::string& file = kMp4) {
  const auto video = helper.DecodeVideo(AsBytes(file), {.n_frames = 1}, "clip.mp4");
  return video.ok() ? "none" : video.error().Message();
}

std::string AudioError(const MediaHelper& helper, const std::string& file = kM4a) {
  const auto sound = helper.DecodeAudio(AsBytes(file), "clip.m4a");
  return sound.ok() ? "none" : sound.error().Message();
}

std::string OneFrame() {
  return VideoMessage({.n_total = 3, .rate = 25, .has_sound = true}) +
         FrameMessage({.index = 0, .seconds = 0, .width = 1, .height = 2}) + "abcdef";
}

TEST(MediaFiles, AreKnownByTheirFirstBytes) {
  struct Row {
    std::string bytes;
    bool is_video;
    bool is_for_helper;
  };
  const std::string box("\0\0\0\x20", 4);
  for (const Row& row : std::vector<Row>{{kMp4, true, true},
                                         {box + "ftypqt  ", true, true},
                                         {box + "moov", true, true},
                                         {box + "ftypM4A ", false, true},
                                         {box + "ftypM4B ", false, true},
                                         {box + "ftypheic", false, false},
                                         {box + "ftypavif", false, false},
                                         {"\x1A\x45\xDF\xA3", true, true},
                                         {"RIFF....AVI LIST", true, true},
                                         {"RIFF....WAVEfmt ", false, false},
                                         {"RIFF....WEBPVP8 ", false, false},
                                         {"GIF89a", true, false},
                                         {"GIF87a", true, false},
                                         {"\xFF\xF1", false, true},
                                         {"\xFF\xF9", false, true},
                                         {"\xFF\xFB", false, false},  // MP3
                                         {"\xFF\xD8\xFF", false, false},
                                         {"OggS", false, false},
                                         {"GIF", false, false},
                                         {"\xFF", false, false},
                                         {"", false, false}}) {
    EXPECT_EQ(IsVideoFile(AsBytes(row.bytes)), row.is_video) << row.bytes;
    EXPECT_EQ(IsForHelper(AsBytes(row.bytes)), row.is_for_helper) << row.bytes;
  }
}

TEST(MediaHelper, WithoutTheProgramSaysWhatToInstall) {
  const std::string wanted =
      ", wanted facet-media beside facet: build it with the packages libavformat-dev "
      "libavcodec-dev libswscale-dev libavutil-dev libseccomp-dev (docs/media.md)";
  EXPECT_EQ(VideoError(MediaHelper("")),
            "clip.mp4: a video, and there is no facet-media to decode it" + wanted);
  EXPECT_EQ(
      AudioError(MediaHelper("")),
      "clip.m4a: sound in AAC or in a video, and there is no facet-media to decode it" + wanted);
  EXPECT_EQ(VideoError(MediaHelper("/nowhere/facet-media")),
            "clip.mp4: /nowhere/facet-media: cannot be started: No such file or directory, "
            "wanted the program facet-media");
}

TEST(MediaHelper, RefusesOtherFilesBeforeItStartsAnything) {
  const MediaHelper helper("/nowhere/facet-media", {.max_bytes = 40});
  EXPECT_EQ(VideoError(helper, "some text"),
            "clip.mp4: a file that begins with the bytes 73 6F 6D 65, "
            "wanted a video: MP4, MOV, WebM, Matroska, AVI or GIF");
  EXPECT_EQ(VideoError(helper, ""),
            "clip.mp4: an empty file, wanted a video: MP4, MOV, WebM, Matroska, AVI or GIF");
  EXPECT_EQ(AudioError(helper, "GIF89a"),
            "clip.m4a: a file that begins with the bytes 47 49 46 38, "
            "wanted sound in m4a, AAC, MP4, MOV, WebM, Matroska or AVI");
  EXPECT_EQ(VideoError(helper, kMp4 + std::string(9, ' ')),
            "clip.mp4: 41 bytes, wanted at most 40");
}

TEST(MediaHelper, GivesWhatTheProgramAnswers) {
  const MediaHelper helper(Program(OneFrame() + DoneMessage(), "sleep 1000"));
  const auto video = helper.DecodeVideo(AsBytes(kMp4), {.n_frames = 1}, "clip.mp4");
  ASSERT_TRUE(video.ok()) << video.error().Message();
  ASSERT_EQ(video->frames.size(), 1U);
  EXPECT_EQ(AsText(std::as_bytes(std::span(video->frames[0].rgb))), "abcdef");
  EXPECT_TRUE(video->has_sound);

  const std::vector<float> second(8000, 0.5F);
  const MediaHelper sounding(Program(SoundMessage(8000) + SamplesMessage(second) + DoneMessage()));
  const auto sound = sounding.DecodeAudio(AsBytes(kM4a), "clip.m4a");
  ASSERT_TRUE(sound.ok()) << sound.error().Message();
  EXPECT_EQ(sound->samples.size(), 16000U);
  EXPECT_NEAR(sound->samples[8000], 0.5, 1e-4);
}

TEST(MediaHelper, ErrorsNameTheFile) {
  EXPECT_EQ(VideoError(MediaHelper(Program("", "kill -SYS $$"))),
            "clip.mp4: the decoder stopped (signal SYS), wanted a file that it can decode");
  EXPECT_EQ(VideoError(MediaHelper(Program(OneFrame()))),
            "clip.mp4: the decoder stopped (exit code 0), wanted a file that it can decode");
  EXPECT_EQ(VideoError(MediaHelper(Program(OneFrame(), "sleep 1000"), {.timeout_s = 1})),
            "clip.mp4: not decoded within 1 s, wanted a file that takes less time");
  EXPECT_EQ(VideoError(MediaHelper(Program("garbage"))),
            "clip.mp4: facet-media answers \"garb\", wanted VIDE");
  EXPECT_EQ(VideoError(MediaHelper(Program(FailMessage(Refuse("", "no pictures", "a video"))))),
            "clip.mp4: no pictures, wanted a video");
  EXPECT_EQ(VideoError(MediaHelper(Program(OneFrame(), "cat /dev/zero"))),
            "clip.mp4: facet-media answers \"????\", wanted DONE");
  EXPECT_EQ(VideoError(MediaHelper(Program(OneFrame() + DoneMessage()), {.max_pixels = 1})),
            "clip.mp4: facet-media answers a frame of 1 x 2 pixels, wanted 1 to 1 pixels");
  EXPECT_EQ(
      AudioError(MediaHelper(Program(SoundMessage(8000) + SamplesMessage(std::vector<float>(8000))),
                             {.max_seconds = 0.5})),
      "clip.m4a: facet-media answers 8000 samples after 0, "
      "wanted 1 to 65536 at a time, 4000 in all");
}

}  // namespace
}  // namespace facet
