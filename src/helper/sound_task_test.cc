// SPDX-License-Identifier: Apache-2.0
#include "helper/sound_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "format/safetensors.h"
#include "helper/helper_testing.h"
#include "helper/media_file.h"

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/frame.h>
#include <libavutil/samplefmt.h>
}

namespace facet::helper {
namespace {

std::string Sound(const std::string& name) {
  return testing::ReadOrDie(testing::TestdataPath("media/audio/files/" + name));
}

std::vector<float> Golden(const std::string& name) {
  const auto file =
      safetensors::File::Open(testing::TestdataPath("media/audio/files_16k.safetensors"));
  const auto* tensor = file.ok() ? file->Find(name) : nullptr;
  if (tensor == nullptr) {
    ADD_FAILURE() << name;
    return {};
  }
  std::vector<float> samples(tensor->data.size() / sizeof(float));
  std::memcpy(samples.data(), tensor->data.data(), tensor->data.size());
  return samples;
}

/// `lag`: samples by which `a` is late.
double Correlation(const std::vector<float>& late, const std::vector<float>& b, size_t lag) {
  const std::vector<float> a(late.begin() + static_cast<ptrdiff_t>(lag), late.end());
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

TEST(AnswerSound, AacIsTheSoundThatItWasMadeOf) {
  const std::string bytes = Sound("aac_44k_stereo.m4a");
  const auto sound = BuiltHelper().DecodeAudio(AsBytes(bytes), "clip.m4a");
  ASSERT_TRUE(sound.ok()) << sound.error().Message();
  const std::vector<float> wav = Golden("s16_44k_stereo.wav");
  EXPECT_NEAR(static_cast<double>(sound->samples.size()), static_cast<double>(wav.size()),
              0.03 * static_cast<double>(wav.size()));
  // What is left is the coder's noise, at 64 kbit/s; a shift of one sample would cost more.
  EXPECT_GT(Correlation(sound->samples, wav, 0), 0.94);
  EXPECT_GT(Correlation(sound->samples, wav, 0), Correlation(sound->samples, wav, 1) + 0.01);
  EXPECT_GT(Correlation(sound->samples, wav, 0), Correlation(wav, sound->samples, 1) + 0.01);
}

TEST(AnswerSound, RefusesMoreThanTheLimit) {
  const std::string bytes = Sound("aac_44k_stereo.m4a");
  const auto sound = BuiltHelper({.max_seconds = 0.25}).DecodeAudio(AsBytes(bytes), "clip.m4a");
  ASSERT_FALSE(sound.ok());
  EXPECT_EQ(sound.error().Message(), "clip.m4a: more than 0.25 s of sound, wanted a shorter clip");
}

TEST(AnswerSound, RefusesWhatHasNone) {
  const std::string bytes = ClipBytes("clip.mp4");
  const auto sound = BuiltHelper().DecodeAudio(AsBytes(bytes), "clip.mp4");
  ASSERT_FALSE(sound.ok());
  EXPECT_EQ(sound.error().Message(), "clip.mp4: no track of sound, wanted sound");
}

template <typename T>
std::vector<float> MeanOf(AVSampleFormat format, const std::vector<std::vector<T>>& channels) {
  const FramePtr frame(av_frame_alloc());
  frame->format = format;
  frame->nb_samples = static_cast<int>(channels[0].size());
  av_channel_layout_default(&frame->ch_layout, static_cast<int>(channels.size()));
  EXPECT_EQ(av_frame_get_buffer(frame.get(), 0), 0);
  const bool is_planar = av_sample_fmt_is_planar(format) != 0;
  for (size_t c = 0; c < channels.size(); ++c) {
    for (size_t i = 0; i < channels[c].size(); ++i) {
      auto* plane = reinterpret_cast<T*>(frame->extended_data[is_planar ? c : 0]);
      plane[is_planar ? i : i * channels.size() + c] = channels[c][i];
    }
  }
  std::vector<float> out;
  EXPECT_TRUE(AppendMean(*frame, out).ok());
  return out;
}

TEST(AppendMean, KnowsEachForm) {
  const std::vector<float> expected = {0.25F, -1.0F};
  EXPECT_EQ(MeanOf<uint8_t>(AV_SAMPLE_FMT_U8, {{192, 0}, {128, 0}}), expected);
  EXPECT_EQ(MeanOf<int16_t>(AV_SAMPLE_FMT_S16P, {{16384, -32768}, {0, -32768}}), expected);
  EXPECT_EQ(MeanOf<int32_t>(AV_SAMPLE_FMT_S32, {{1 << 30, std::numeric_limits<int32_t>::min()},
                                                {0, std::numeric_limits<int32_t>::min()}}),
            expected);
  EXPECT_EQ(MeanOf<float>(AV_SAMPLE_FMT_FLTP, {{0.5F, -1}, {0, -1}}), expected);
  EXPECT_EQ(MeanOf<double>(AV_SAMPLE_FMT_DBL, {{0.25, -1}}), expected);
}

}  // namespace
}  // namespace facet::helper
