// SPDX-License-Identifier: Apache-2.0
#include "media/audio_resample.h"

#include <gtest/gtest.h>

#include <cmath>

#include "media/audio.h"
#include "media/audio_testing.h"

namespace facet {
namespace {

std::vector<float> Resampled(const std::vector<float>& samples, int rate, size_t piece) {
  auto resampler = Resampler::Create(rate, "clip");
  EXPECT_TRUE(resampler.ok());
  const std::span<const float> all = samples;
  for (size_t at = 0; at < all.size(); at += piece) {
    resampler->Add(all.subspan(at, std::min(piece, all.size() - at)));
  }
  auto all_of_it = resampler->Finish();
  EXPECT_TRUE(all_of_it.ok());
  return *std::move(all_of_it);
}

std::vector<float> FloatTone(double seconds, int rate, double hertz) {
  const auto tone = testing::Tone(seconds, rate, hertz);
  return {tone.begin(), tone.end()};
}

TEST(Resampler, KeepsATone) {
  for (const int rate : {1000, 8000, 11025, 22050, 44100, 47999, 48000, 96000, 192000, 768000}) {
    const auto got = Resampled(FloatTone(1, rate, 100), rate, 5000);
    const auto wanted = FloatTone(1, kSampleRate, 100);
    EXPECT_NEAR(static_cast<double>(got.size()), 16000, 1) << rate;
    double worst = 0;
    for (size_t i = 2000; i < 14000; ++i) {
      worst = std::max(worst, std::abs(double{got[i]} - double{wanted[i]}));
    }
    EXPECT_LT(worst, 1e-4) << rate;
  }
}

TEST(Resampler, RemovesWhatTheNewRateCannotHold) {
  const auto got = Resampled(FloatTone(1, 48000, 10000), 48000, 48000);
  for (size_t i = 2000; i < 14000; ++i) {
    EXPECT_LT(std::abs(got[i]), 1e-4) << i;
  }
}

TEST(Resampler, PiecesDoNotMatter) {
  const auto samples = FloatTone(0.3, 44100, 300);
  const auto wanted = Resampled(samples, 44100, samples.size());
  for (const size_t piece : {1U, 7U, 1000U, 4096U}) {
    EXPECT_EQ(Resampled(samples, 44100, piece), wanted) << piece;
  }
}

TEST(Resampler, LeavesItsOwnRateAlone) {
  const auto samples = FloatTone(0.1, kSampleRate, 300);
  EXPECT_EQ(Resampled(samples, kSampleRate, 100), samples);
}

TEST(Resampler, CountsAsLibrosa) {
  for (const int rate : {8000, 11025, 22050, 44100, 48000}) {
    for (const size_t n : {0U, 1U, 2U, 3U, 100U, 5513U, 8820U}) {
      const double wanted = std::ceil(static_cast<double>(n) * (16000.0 / rate));
      EXPECT_EQ(Resampled(std::vector<float>(n), rate, 1000).size(), static_cast<size_t>(wanted))
          << rate << " " << n;
    }
  }
}

}  // namespace
}  // namespace facet
