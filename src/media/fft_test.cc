// SPDX-License-Identifier: Apache-2.0
#include "media/fft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>

namespace facet {
namespace {

using Values = std::array<double, kFftSize>;

/// The definition, in long double.
Spectrum Definition(const Values& values) {
  std::array<long double, kFftSize> cosine;
  std::array<long double, kFftSize> sine;
  for (size_t j = 0; j < kFftSize; ++j) {
    const long double angle =
        -2 * std::numbers::pi_v<long double> * static_cast<long double>(j) / kFftSize;
    cosine[j] = std::cos(angle);
    sine[j] = std::sin(angle);
  }
  Spectrum out;
  for (size_t k = 0; k < kFftBins; ++k) {
    long double re = 0;
    long double im = 0;
    for (size_t j = 0; j < kFftSize; ++j) {
      re += values[j] * cosine[j * k % kFftSize];
      im += values[j] * sine[j * k % kFftSize];
    }
    out.re[k] = static_cast<double>(re);
    out.im[k] = static_cast<double>(im);
  }
  return out;
}

TEST(TransformReal, IsTheDefinition) {
  uint64_t state = 1;
  const auto noise = [&state](size_t) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state >> 11) / 4503599627370496.0 - 1;
  };
  const std::function<double(size_t)> signals[] = {
      noise,
      [](size_t j) { return j == 0 ? 1.0 : 0.0; },
      [](size_t j) { return j == 511 ? -1.0 : 0.0; },
      [](size_t) { return 1.0; },
      [](size_t j) { return j % 2 == 0 ? 1.0 : -1.0; },
      [](size_t j) { return std::sin(0.3 * static_cast<double>(j)); },
      [](size_t j) { return j < 320 ? 1.0 : 0.0; }};
  for (const auto& signal : signals) {
    Values values;
    for (size_t j = 0; j < kFftSize; ++j) {
      values[j] = signal(j);
    }
    const Spectrum wanted = Definition(values);
    Spectrum got;
    TransformReal(values, &got);
    double worst = 0;
    for (size_t k = 0; k < kFftBins; ++k) {
      worst =
          std::max({worst, std::abs(got.re[k] - wanted.re[k]), std::abs(got.im[k] - wanted.im[k])});
    }
    EXPECT_LT(worst, 2e-13);
  }
}

TEST(TransformReal, OfZerosIsZero) {
  const Values zeros{};
  Spectrum got;
  TransformReal(zeros, &got);
  for (size_t k = 0; k < kFftBins; ++k) {
    EXPECT_EQ(got.re[k], 0);
    EXPECT_EQ(got.im[k], 0);
  }
}

}  // namespace
}  // namespace facet
