// SPDX-License-Identifier: Apache-2.0
#include "media/audio_mp3.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "media/audio_container.h"
#include "media/audio_testing.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::Repeated;
using testing::SilentMp3Frame;

/// Where the tag begins in a frame of one channel of MPEG 1.
constexpr size_t kTagOffset = 21;

/// Without the tag in front.
std::string FramesOf(const std::string& name) {
  const std::string file = testing::ReadOrDie(testing::TestdataPath("media/audio/files/" + name));
  return file.substr(FindAudio(AsBytes(file), name)->offset);
}

std::string ErrorOf(const std::string& file) {
  const auto counted = CountedMp3(AsBytes(file), "clip");
  return counted.ok() ? "no error" : counted.error().Message();
}

std::string BigEndian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift & 0xFF);
  }
  return out;
}

std::string TagFrame(uint32_t fields, uint32_t n_frames) {
  const std::string tag = "Xing" + BigEndian(fields) + BigEndian(n_frames);
  return SilentMp3Frame(1).replace(kTagOffset, tag.size(), tag);
}

TEST(IsMp3Frame, NeedsAHeaderOfLayer3) {
  EXPECT_TRUE(IsMp3Frame("\xFF\xFB\x90\x44"));
  EXPECT_TRUE(IsMp3Frame("\xFF\xF3\x40\xC0"));  // MPEG 2
  EXPECT_TRUE(IsMp3Frame("\xFF\xE3\x40\xC0"));  // MPEG 2.5
  for (const std::string_view other :
       {std::string_view(""), std::string_view("\xFF\xFB\x90"),
        std::string_view("\xFF\xFD\x90\x44"), std::string_view("\xFF\xFE\x41\0", 4),
        std::string_view("\xFF\xF1\x50\x80"), std::string_view("\xFF\xEB\x90\x44"),
        std::string_view("\xFF\xFB\xF0\x44"), std::string_view("\xFF\xFB\x00\x44", 4),
        std::string_view("\xFF\xFB\x9C\x44"), std::string_view("\xFE\xFB\x90\x44"),
        std::string_view("\xFF\x1B\x90\x44")}) {
    EXPECT_FALSE(IsMp3Frame(other));
  }
}

TEST(CountedMp3, KeepsATagThatIsRight) {
  for (const char* name : {"cbr32_16k_mono.mp3", "cbr96_44k_stereo.mp3"}) {
    const std::string file = FramesOf(name);
    const auto counted = CountedMp3(AsBytes(file), "clip");
    ASSERT_TRUE(counted.ok()) << counted.error().Message();
    EXPECT_EQ(*counted, file);
    EXPECT_NE(file.substr(0, 100).find("Info"), std::string::npos);
  }
  const std::string file = TagFrame(1, 3) + Repeated(SilentMp3Frame(5), 3);
  EXPECT_EQ(*CountedMp3(AsBytes(file), "clip"), file);
  const std::string with_itself = TagFrame(1, 4) + Repeated(SilentMp3Frame(5), 3);
  EXPECT_EQ(*CountedMp3(AsBytes(with_itself), "clip"), with_itself);
}

TEST(CountedMp3, MakesATagWhereThereIsNone) {
  const std::string frames = SilentMp3Frame(14) + Repeated(SilentMp3Frame(1), 2);
  const auto counted = CountedMp3(AsBytes(frames), "clip");
  ASSERT_TRUE(counted.ok());
  const size_t n_tag = counted->size() - frames.size();
  EXPECT_EQ(n_tag, 144000U * 112 / 44100);
  EXPECT_EQ(counted->substr(n_tag), frames);
  EXPECT_EQ(counted->substr(kTagOffset, 12), "Xing" + BigEndian(1) + BigEndian(3));
  EXPECT_EQ(ErrorOf(*counted), "no error");
  // A tag that does not count is replaced.
  const std::string uncounted = TagFrame(0, 0) + frames;
  EXPECT_EQ(*CountedMp3(AsBytes(uncounted), "clip"), *counted);
}

TEST(CountedMp3, DropsTagsOfTaggers) {
  const std::string frames = TagFrame(1, 2) + Repeated(SilentMp3Frame(5), 2);
  const std::string id3v1 = "TAG" + std::string(125, 'x');
  const std::string ape = "APETAGEX" + std::string("\0\0\0\0\x05\0\0\0", 8) + std::string(21, 'a');
  const std::string lyrics = "LYRICSBEGINla la000013LYRICS200";
  for (const std::string& tail :
       {id3v1, ape, lyrics + id3v1, ape + id3v1, std::string(500, '\0'), std::string()}) {
    EXPECT_EQ(*CountedMp3(AsBytes(frames + tail), "clip"), frames);
    // What stands behind a tag is not passed over: another file, say.
    EXPECT_NE(ErrorOf(frames + tail + frames), "no error");
  }
}

TEST(CountedMp3, RefusesWhatIsCutOrDamaged) {
  const std::string frame = SilentMp3Frame(5);  // 208 bytes
  EXPECT_EQ(ErrorOf(Repeated(frame, 3).substr(0, 600)),
            "clip: an MP3 frame of 208 bytes at byte 416, of which 184 are there, wanted a file "
            "that is not cut");
  EXPECT_EQ(ErrorOf(TagFrame(1, 4) + Repeated(frame, 2)),
            "clip: 2 MP3 frames, wanted 4, as its header says");
  // Two files, one behind the other: libsndfile would read the first alone.
  const std::string file = TagFrame(1, 3) + Repeated(frame, 3);
  EXPECT_EQ(ErrorOf(file + file), "clip: 7 MP3 frames, wanted 3, as its header says");
  EXPECT_EQ(ErrorOf(frame + "junk" + frame),
            "clip: bytes that are no sound at byte 208, wanted MP3 frames of one kind up to the "
            "end");
  std::string two_channels = frame;
  two_channels[3] = '\x40';
  EXPECT_EQ(ErrorOf(frame + two_channels),
            "clip: bytes that are no sound at byte 208, wanted MP3 frames of one kind up to the "
            "end");
  EXPECT_EQ(ErrorOf("junk"), "clip: no MP3 frame, wanted one at the beginning");
}

}  // namespace
}  // namespace facet
