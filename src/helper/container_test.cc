// SPDX-License-Identifier: Apache-2.0
// The tracks of the clips in other containers, with sound beside them; and all containers damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "helper/helper_testing.h"
#include "helper/media_file.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
}

namespace facet::helper {
namespace {

std::string SoundBytes() {
  return testing::ReadOrDie(testing::TestdataPath("media/audio/files/aac_44k_stereo.m4a"));
}

/// AVI has H.264 with start codes, the others have it with lengths.
class StartCodes {
 public:
  explicit StartCodes(const AVStream& stream) {
    FACET_CHECK(av_bsf_alloc(av_bsf_get_by_name("h264_mp4toannexb"), &filter_) >= 0);
    FACET_CHECK(avcodec_parameters_copy(filter_->par_in, stream.codecpar) >= 0);
    FACET_CHECK(av_bsf_init(filter_) >= 0);
  }
  StartCodes(const StartCodes&) = delete;
  StartCodes& operator=(const StartCodes&) = delete;
  ~StartCodes() { av_bsf_free(&filter_); }

  /// In place.
  void Convert(AVPacket* packet) {
    FACET_CHECK(av_bsf_send_packet(filter_, packet) >= 0);
    FACET_CHECK(av_bsf_receive_packet(filter_, packet) >= 0);
  }

 private:
  AVBSFContext* filter_ = nullptr;
};

/// The tracks of an MP4 with pictures and of one with sound, as they are, in a file of `format`.
/// Either may be empty.
std::string Remux(const std::string& pictures, const std::string& sound, const char* format) {
  AVFormatContext* out = nullptr;
  FACET_CHECK(avformat_alloc_output_context2(&out, nullptr, format, nullptr) >= 0);
  const std::string path = testing::MakeTempDir() + "/clip";
  FACET_CHECK(avio_open(&out->pb, path.c_str(), AVIO_FLAG_READ_WRITE) >= 0);
  out->flags |= AVFMT_FLAG_BITEXACT;
  std::vector<std::pair<std::unique_ptr<MediaFile>, const AVStream*>> tracks;
  for (const std::string* bytes : {&pictures, &sound}) {
    if (bytes->empty()) {
      continue;
    }
    auto file = MediaFile::Open(AsBytes(*bytes), Container::kIsoMedia);
    FACET_CHECK(file.ok());
    const AVStream* in = bytes == &pictures ? (*file)->BestVideo() : (*file)->BestSound();
    (*file)->Select(*in);
    AVStream* copy = avformat_new_stream(out, nullptr);
    FACET_CHECK(avcodec_parameters_copy(copy->codecpar, in->codecpar) >= 0);
    copy->codecpar->codec_tag = 0;
    copy->time_base = av_inv_q(in->avg_frame_rate);  // AVI counts in it; 1/0 for sound
    copy->avg_frame_rate = in->avg_frame_rate;
    tracks.emplace_back(std::move(*file), in);
  }
  FACET_CHECK(avformat_write_header(out, nullptr) >= 0);
  for (size_t i = 0; i < tracks.size(); ++i) {
    std::optional<StartCodes> start_codes;
    if (std::string_view(format) == "avi" && tracks[i].second->codecpar->width > 0) {
      start_codes.emplace(*tracks[i].second);
    }
    while (const AVPacket* packet = tracks[i].first->ReadPacket()) {
      const PacketPtr copy(av_packet_clone(packet));
      if (start_codes) {
        start_codes->Convert(copy.get());
      }
      copy->stream_index = static_cast<int>(i);
      av_packet_rescale_ts(copy.get(), tracks[i].second->time_base, out->streams[i]->time_base);
      FACET_CHECK(av_interleaved_write_frame(out, copy.get()) >= 0);
    }
  }
  FACET_CHECK(av_write_trailer(out) >= 0);
  FACET_CHECK(avio_closep(&out->pb) >= 0);
  avformat_free_context(out);
  return testing::ReadOrDie(path);
}

/// Every kind of file that the helper reads.
std::map<std::string, std::string> AllFiles() {
  const std::string mp4 = ClipBytes("clip.mp4");
  std::map<std::string, std::string> files = {{"clip.mp4", mp4},
                                              {"clip.webm", ClipBytes("clip.webm")},
                                              {"clip.gif", ClipBytes("clip.gif")},
                                              {"clip.m4a", SoundBytes()}};
  files["clip.avi"] = Remux(mp4, SoundBytes(), "avi");
  files["clip.mkv"] = Remux(mp4, SoundBytes(), "matroska");
  files["clip.mov"] = Remux(mp4, SoundBytes(), "mov");
  files["clip.aac"] = Remux("", SoundBytes(), "adts");
  return files;
}

class ContainerTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ContainerTest, HasTheSameFramesAndSound) {
  const std::string bytes = Remux(ClipBytes("clip.mp4"), SoundBytes(), GetParam());
  ASSERT_TRUE(IsVideoFile(AsBytes(bytes)));
  const auto video = BuiltHelper().DecodeVideo(AsBytes(bytes), {.n_frames = 9}, "clip");
  ASSERT_TRUE(video.ok()) << video.error().Message();
  EXPECT_EQ(NumbersOf(*video), (std::vector<int64_t>{0, 8, 16, 24, 32, 40, 48, 56, 64}));
  EXPECT_NEAR(video->seconds[3], 1, 1e-3);
  EXPECT_TRUE(video->has_sound);

  ASSERT_TRUE(IsForHelper(AsBytes(bytes)));
  const auto sound = BuiltHelper().DecodeAudio(AsBytes(bytes), "clip");
  ASSERT_TRUE(sound.ok()) << sound.error().Message();
  EXPECT_NEAR(sound->seconds(), 0.5, 0.06);  // not all have a place for the encoder's delay
}

INSTANTIATE_TEST_SUITE_P(All, ContainerTest, ::testing::Values("mp4", "mov", "matroska"));

TEST(Container, AviHasTheSameFramesAndSound) {
  const std::string bytes = Remux(ClipBytes("clip.mp4"), SoundBytes(), "avi");
  const auto video = BuiltHelper().DecodeVideo(AsBytes(bytes), {.n_frames = 9}, "clip");
  ASSERT_TRUE(video.ok()) << video.error().Message();
  EXPECT_EQ(NumbersOf(*video), (std::vector<int64_t>{0, 8, 16, 24, 32, 40, 48, 56, 64}));
  EXPECT_NEAR(video->seconds[3], 1, 0.1);  // it stores no times, and these frames are reordered
  EXPECT_TRUE(video->has_sound);
  const auto sound = BuiltHelper().DecodeAudio(AsBytes(bytes), "clip");
  ASSERT_TRUE(sound.ok()) << sound.error().Message();
  EXPECT_NEAR(sound->seconds(), 0.5, 0.06);
}

TEST(Container, RawAacIsSound) {
  const std::string bytes = Remux("", SoundBytes(), "adts");
  EXPECT_TRUE(IsForHelper(AsBytes(bytes)));
  EXPECT_FALSE(IsVideoFile(AsBytes(bytes)));
  const auto sound = BuiltHelper().DecodeAudio(AsBytes(bytes), "clip.aac");
  ASSERT_TRUE(sound.ok()) << sound.error().Message();
  EXPECT_NEAR(sound->seconds(), 0.5, 0.06);
}

/// Decodes as what it says it is; anything goes but a wrong answer, an empty error or a crash.
void ExpectAnswerOrError(const std::string& bytes, const std::string& name) {
  if (IsVideoFile(AsBytes(bytes))) {
    const auto video = BuiltHelper({.timeout_s = 20}).DecodeVideo(AsBytes(bytes), {}, name);
    if (video.ok()) {
      EXPECT_GE(video->frames.size(), 1U) << name;
      EXPECT_LE(video->frames.size(), 32U) << name;
      EXPECT_EQ(video->frames.size(), video->seconds.size()) << name;
    } else {
      EXPECT_EQ(video.error().where, name);
      EXPECT_FALSE(video.error().found.empty()) << name;
      EXPECT_FALSE(video.error().wanted.empty()) << name;
      EXPECT_EQ(video.error().found.find("decoder stopped"), std::string::npos)
          << video.error().Message();
    }
    return;
  }
  const auto sound = BuiltHelper({.timeout_s = 20}).DecodeAudio(AsBytes(bytes), name);
  if (!sound.ok()) {
    EXPECT_EQ(sound.error().where, name);
    EXPECT_FALSE(sound.error().found.empty()) << name;
    EXPECT_EQ(sound.error().found.find("decoder stopped"), std::string::npos)
        << sound.error().Message();
  }
}

TEST(Container, TruncatedFilesAreRefused) {
  for (const auto& [name, bytes] : AllFiles()) {
    for (const double share : {0.01, 0.3, 0.5, 0.75, 0.9}) {
      const auto size = static_cast<size_t>(share * static_cast<double>(bytes.size()));
      const std::string cut = bytes.substr(0, size);
      const std::string what = name + " cut to " + std::to_string(size);
      ExpectAnswerOrError(cut, what);
      if (IsVideoFile(AsBytes(cut))) {  // sound in ADTS says nothing of its length
        EXPECT_FALSE(BuiltHelper().DecodeVideo(AsBytes(cut), {}, name).ok()) << what;
      }
    }
  }
}

TEST(Container, DamagedFilesGiveFramesOrOneError) {
  std::mt19937 random(7);
  for (const auto& [name, bytes] : AllFiles()) {
    for (int variant = 0; variant < 4; ++variant) {
      std::string damaged = bytes;
      // The first two in the head of the file, where sizes and counts stand.
      const size_t range = variant < 2 ? std::min<size_t>(600, bytes.size()) : bytes.size();
      for (int i = 0; i < 4 + 20 * variant; ++i) {
        damaged[16 + random() % (range - 16)] = static_cast<char>(random());
      }
      ExpectAnswerOrError(damaged, name + " variant " + std::to_string(variant));
    }
  }
}

TEST(Container, FilesOfAnotherKindThanTheirFirstBytesAreRefused) {
  const std::string gif = ClipBytes("clip.gif");
  for (const auto& [name, bytes] : AllFiles()) {
    ExpectAnswerOrError(bytes.substr(0, 16) + gif, name + " with another body");
  }
}

}  // namespace
}  // namespace facet::helper
