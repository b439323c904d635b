// SPDX-License-Identifier: Apache-2.0
#include "media/log_mel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/json.h"
#include "format/safetensors.h"
#include "support/testing.h"

namespace facet {
namespace {

/// transformers' transform runs in float, so tones differ from the formula (testdata/media/README).
constexpr double kTolerance = 5e-4;
/// Of what has energy everywhere, as noise.
constexpr double kTightTolerance = 1e-4;

safetensors::File OpenOrDie(const std::string& name) {
  auto file = safetensors::File::Open(testing::TestdataPath("media/audio/" + name));
  EXPECT_TRUE(file.ok()) << file.error().Message();
  return *std::move(file);
}

template <typename T>
std::vector<T> ValuesOf(const safetensors::File& file, const std::string& name) {
  const safetensors::TensorView* tensor = file.Find(name);
  EXPECT_NE(tensor, nullptr) << name;
  std::vector<T> values(tensor->data.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
  }
  return values;
}

double WorstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(double{a[i]} - double{b[i]}));
  }
  return worst;
}

TEST(LogMel, IsTheReferences) {
  const safetensors::File features = OpenOrDie("features.safetensors");
  const Json cases = testing::JsonOrDie(testing::TestdataPath("media/audio/features.json"));
  ASSERT_EQ(cases["cases"].items().size(), 17U);
  for (const Json& row : cases["cases"].items()) {
    const std::string& name = row["name"].as_string();
    const auto samples = ValuesOf<float>(features, name + ".waveform");
    const LogMel got = ComputeLogMel(samples);
    EXPECT_EQ(got.n_frames, row["valid_frames"].as_int()) << name;
    const double worst = WorstDifference(got.values, ValuesOf<float>(features, name + ".features"));
    const bool is_tonal = row["max_abs_diff_to_plain_float64"].as_double() > 1e-5;
    EXPECT_LT(worst, is_tonal ? kTolerance : kTightTolerance) << name;
    RecordProperty(name, std::to_string(worst));
  }
}

TEST(LogMel, HasTheFramesOfTheReference) {
  const Json shapes = testing::JsonOrDie(testing::TestdataPath("media/audio/features.json"));
  ASSERT_GE(shapes["shapes"].items().size(), 20U);
  for (const Json& row : shapes["shapes"].items()) {
    const auto n = std::min<int64_t>(row["samples"].as_int(), 480000);
    const LogMel got = ComputeLogMel(std::vector<float>(static_cast<size_t>(n)));
    EXPECT_EQ(got.n_frames, row["valid_frames"].as_int()) << n;
    EXPECT_EQ(got.values.size(), static_cast<size_t>(got.n_frames) * kMelBands);
  }
}

TEST(LogMel, OfSilenceIsTheFloor) {
  const LogMel got = ComputeLogMel(std::vector<float>(1600));
  ASSERT_EQ(got.n_frames, 9);
  for (const float value : got.values) {
    EXPECT_EQ(value, static_cast<float>(std::log(0.001)));
  }
}

/// A click passes every bin equally, so that a frame of it shows the sums of the filters: bands
/// that the reference's table leaves empty stay at the floor, all others are what the table says.
TEST(LogMel, OfAClickIsTheTableOfFilters) {
  const safetensors::File tables = OpenOrDie("tables.safetensors");
  const auto filters = ValuesOf<double>(tables, "mel_filters");  // [257, 128]
  const auto window = ValuesOf<float>(tables, "window");         // [320]
  ASSERT_EQ(filters.size(), 257U * kMelBands);
  ASSERT_EQ(window.size(), 320U);
  const Json features = testing::JsonOrDie(testing::TestdataPath("media/audio/features.json"));
  ASSERT_EQ(features["empty_mel_filters"].Dump(), "[0]");
  for (const size_t at : {0U, 1U, 100U, 159U, 160U, 161U, 319U}) {
    std::vector<float> click(481);
    click[at] = 1;
    const LogMel got = ComputeLogMel(click);
    ASSERT_EQ(got.n_frames, 3);
    const size_t in_frame_1 = at;  // which begins with sample 0
    for (size_t band = 0; band < kMelBands; ++band) {
      double sum = 0;
      for (size_t bin = 0; bin < 257; ++bin) {
        sum += filters[bin * kMelBands + band];
      }
      EXPECT_EQ(sum == 0, band == 0);
      const double wanted = std::log(sum * double{window[in_frame_1]} + 0.001);
      EXPECT_NEAR(got.values[kMelBands + band], wanted, 1e-6) << at << " " << band;
    }
  }
}

/// The reference pads clips to a multiple of 128 samples and marks what that adds as invalid.
TEST(LogMel, IsNotChangedByZerosBehind) {
  const safetensors::File features = OpenOrDie("features.safetensors");
  auto samples = ValuesOf<float>(features, "noise.waveform");
  samples.resize(15700);
  const LogMel bare = ComputeLogMel(samples);
  samples.resize((samples.size() + 127) / 128 * 128);
  const LogMel padded = ComputeLogMel(samples);
  ASSERT_GE(padded.n_frames, bare.n_frames);
  EXPECT_TRUE(std::equal(bare.values.begin(), bare.values.end(), padded.values.begin()));
}

}  // namespace
}  // namespace facet
