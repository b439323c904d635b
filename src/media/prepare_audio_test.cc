// SPDX-License-Identifier: Apache-2.0
#include "media/prepare_audio.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/json.h"
#include "media/audio_testing.h"
#include "media/log_mel.h"
#include "support/testing.h"

namespace facet {
namespace {

Waveform Clip(size_t n_samples) {
  const auto tone = testing::Tone(static_cast<double>(n_samples) / kSampleRate, kSampleRate);
  return {.samples = {tone.begin(), tone.end()}};
}

Result<PreparedAudio> Mel(const Waveform& clip, LongAudio rule) {
  return PrepareAudio(clip, AudioForm::kLogMel, rule, "clip.wav");
}

std::vector<float> PartOf(const Waveform& clip, size_t begin, size_t n) {
  return {clip.samples.begin() + static_cast<ptrdiff_t>(begin),
          clip.samples.begin() + static_cast<ptrdiff_t>(begin + n)};
}

TEST(PrepareAudio, CountsTokensAsTheReference) {
  const Json shapes = testing::JsonOrDie(testing::TestdataPath("media/audio/features.json"));
  for (const Json& row : shapes["shapes"].items()) {
    const auto n = static_cast<size_t>(row["samples"].as_int());
    const auto got = Mel(Waveform{.samples = std::vector<float>(n)}, LongAudio::kCut);
    if (row["tokens"].as_int() == 0) {
      ASSERT_FALSE(got.ok()) << n;
      EXPECT_EQ(got.error().Message(),
                "clip.wav: " + std::to_string(n) + " samples of 16 kHz, wanted at least 161");
      continue;
    }
    ASSERT_TRUE(got.ok()) << got.error().Message();
    ASSERT_EQ(got->items.size(), 1U);
    EXPECT_EQ(got->items[0]->n_tokens, row["tokens"].as_int()) << n;
    EXPECT_EQ(got->items[0]->n_frames, row["valid_frames"].as_int()) << n;
    EXPECT_EQ(got->notice.empty(), n <= 480000) << n;
  }
}

TEST(PrepareAudio, IsTheLogMel) {
  const Waveform clip = Clip(16000);
  const auto got = Mel(clip, LongAudio::kCut);
  ASSERT_TRUE(got.ok());
  const MediaItem& item = *got->items.at(0);
  EXPECT_EQ(item.kind, MediaKind::kAudio);
  EXPECT_EQ(item.audio_form, AudioForm::kLogMel);
  EXPECT_EQ(item.n_frames, 99);
  EXPECT_EQ(item.n_tokens, 25);
  EXPECT_EQ(item.sound, ComputeLogMel(clip.samples).values);
  EXPECT_EQ(item.hash, HashOf(item));
}

TEST(PrepareAudio, CutsAndSaysSo) {
  const Waveform clip = Clip(65 * 16000);
  const auto got = Mel(clip, LongAudio::kCut);
  ASSERT_TRUE(got.ok());
  ASSERT_EQ(got->items.size(), 1U);
  EXPECT_EQ(got->items[0]->n_tokens, 750);
  EXPECT_EQ(got->items[0]->sound, ComputeLogMel(PartOf(clip, 0, 480000)).values);
  EXPECT_EQ(got->notice, "clip.wav: 65.0 s of sound, of which the first 30.0 s are heard");
  EXPECT_EQ(Mel(Clip(480001), LongAudio::kCut)->notice,
            "clip.wav: 30.1 s of sound, of which the first 30.0 s are heard");
}

TEST(PrepareAudio, SplitsWithoutALoss) {
  const Waveform clip = Clip(65 * 16000);
  const auto got = Mel(clip, LongAudio::kSplit);
  ASSERT_TRUE(got.ok());
  ASSERT_EQ(got->items.size(), 3U);
  EXPECT_EQ(got->items[0]->sound, ComputeLogMel(PartOf(clip, 0, 480000)).values);
  EXPECT_EQ(got->items[1]->sound, ComputeLogMel(PartOf(clip, 480000, 480000)).values);
  EXPECT_EQ(got->items[2]->sound, ComputeLogMel(PartOf(clip, 960000, 80000)).values);
  EXPECT_EQ(got->items[2]->n_tokens, 125);
  EXPECT_EQ(got->notice, "");
}

TEST(PrepareAudio, SplittingTellsOfARestTooShort) {
  EXPECT_EQ(Mel(Clip(960161), LongAudio::kSplit)->items.size(), 3U);
  EXPECT_EQ(Mel(Clip(960161), LongAudio::kSplit)->notice, "");
  const auto got = Mel(Clip(960160), LongAudio::kSplit);
  EXPECT_EQ(got->items.size(), 2U);
  EXPECT_EQ(got->notice, "clip.wav: the last 160 of 960160 samples are too few to be heard");
}

TEST(PrepareAudio, RefusesWhatIsLonger) {
  EXPECT_TRUE(Mel(Clip(480000), LongAudio::kRefuse).ok());
  const auto got = Mel(Clip(65 * 16000), LongAudio::kRefuse);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().Message(), "clip.wav: 65.0 s of sound, wanted at most 30.0 s");
}

TEST(PrepareAudio, RawSoundHasNoLimit) {
  for (const size_t n : {1U, 639U, 640U, 641U, 480001U}) {
    const Waveform clip = Clip(n);
    const auto got = PrepareAudio(clip, AudioForm::kRaw, LongAudio::kRefuse, "clip.wav");
    ASSERT_TRUE(got.ok()) << got.error().Message();
    ASSERT_EQ(got->items.size(), 1U);
    const MediaItem& item = *got->items[0];
    EXPECT_EQ(item.audio_form, AudioForm::kRaw);
    EXPECT_EQ(item.n_tokens, static_cast<int>((n + 639) / 640));
    EXPECT_EQ(item.n_frames, 0);
    std::vector<float> wanted = clip.samples;
    wanted.resize(static_cast<size_t>(item.n_tokens) * 640);
    EXPECT_EQ(item.sound, wanted);
    EXPECT_EQ(got->notice, "");
  }
  const auto none = PrepareAudio({}, AudioForm::kRaw, LongAudio::kCut, "clip.wav");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().Message(), "clip.wav: 0 samples of 16 kHz, wanted at least 1");
}

TEST(PrepareAudio, RefusesWhatIsNoNumber) {
  Waveform clip = Clip(1000);
  for (const auto& [value, text] :
       {std::pair(std::numeric_limits<float>::infinity(), "inf"),
        std::pair(std::numeric_limits<float>::quiet_NaN(), "nan"), std::pair(-1e20F, "-1e+20")}) {
    clip.samples[5] = value;
    for (const AudioForm form : {AudioForm::kLogMel, AudioForm::kRaw}) {
      const auto got = PrepareAudio(clip, form, LongAudio::kCut, "clip.wav");
      ASSERT_FALSE(got.ok());
      EXPECT_EQ(got.error().Message(),
                std::string("clip.wav: sample 5 is ") + text + ", wanted numbers that sound");
    }
  }
}

}  // namespace
}  // namespace facet
