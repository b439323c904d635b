// SPDX-License-Identifier: Apache-2.0
#include "media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace facet {
namespace {

constexpr int kPrecisionBits = 32 - 8 - 2;
constexpr int32_t kHalf = 1 << (kPrecisionBits - 1);

// Weights of the inputs of each output along one axis, in units of 2^-kPrecisionBits. Output i is
// the sum of n_taps[i] inputs from first[i] on; its weights begin at i * max_taps.
struct Weights {
  int max_taps = 0;
  std::vector<int> first;
  std::vector<int> n_taps;
  std::vector<int32_t> values;
};

double Cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) {
    return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  }
  if (x < 2.0) {
    return (((x - 5) * x + 8) * x - 4) * kA;
  }
  return 0.0;
}

// The order of the operations decides on last bits, and with them on bytes.
Weights MakeWeights(int n_inputs, int n_outputs) {
  const double scale = static_cast<double>(n_inputs) / n_outputs;
  const double filter_scale = std::max(scale, 1.0);
  const double support = 2.0 * filter_scale;
  const double inverse = 1.0 / filter_scale;
  Weights weights;
  weights.max_taps = static_cast<int>(std::ceil(support)) * 2 + 1;
  weights.first.resize(static_cast<size_t>(n_outputs));
  weights.n_taps.resize(static_cast<size_t>(n_outputs));
  weights.values.resize(static_cast<size_t>(n_outputs) * static_cast<size_t>(weights.max_taps));
  std::vector<double> exact(static_cast<size_t>(weights.max_taps));
  for (int i = 0; i < n_outputs; ++i) {
    const double center = (i + 0.5) * scale;
    const double begin = center - support + 0.5;  // cut to whole numbers, as Pillow does
    const double end = center + support + 0.5;
    const int first = std::max(static_cast<int>(begin), 0);
    const int n_taps = std::min(static_cast<int>(end), n_inputs) - first;
    double sum = 0;
    for (int tap = 0; tap < n_taps; ++tap) {
      const double weight = Cubic((tap + first - center + 0.5) * inverse);
      exact[static_cast<size_t>(tap)] = weight;
      sum += weight;
    }
    int32_t* const values = weights.values.data() + int64_t{i} * weights.max_taps;
    for (int tap = 0; tap < n_taps; ++tap) {
      const double weight = exact[static_cast<size_t>(tap)] / sum * (1 << kPrecisionBits);
      values[tap] = static_cast<int32_t>(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    weights.first[static_cast<size_t>(i)] = first;
    weights.n_taps[static_cast<size_t>(i)] = n_taps;
  }
  return weights;
}

uint8_t Round(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

Image ResizeRows(const Image& image, int width) {
  const Weights weights = MakeWeights(image.width, width);
  Image out{.width = width, .height = image.height, .rgb = {}};
  out.rgb.resize(size_t{3} * static_cast<size_t>(width) * static_cast<size_t>(image.height));
  uint8_t* to = out.rgb.data();
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* const row = image.rgb.data() + int64_t{3} * y * image.width;
    for (int x = 0; x < width; ++x) {
      const int n_taps = weights.n_taps[static_cast<size_t>(x)];
      const int32_t* const values = weights.values.data() + int64_t{x} * weights.max_taps;
      const uint8_t* from = row + int64_t{3} * weights.first[static_cast<size_t>(x)];
      int32_t red = kHalf;
      int32_t green = kHalf;
      int32_t blue = kHalf;
      for (int tap = 0; tap < n_taps; ++tap, from += 3) {
        red += from[0] * values[tap];
        green += from[1] * values[tap];
        blue += from[2] * values[tap];
      }
      to[0] = Round(red);
      to[1] = Round(green);
      to[2] = Round(blue);
      to += 3;
    }
  }
  return out;
}

Image ResizeColumns(const Image& image, int height) {
  const Weights weights = MakeWeights(image.height, height);
  const size_t row_values = size_t{3} * static_cast<size_t>(image.width);
  Image out{.width = image.width, .height = height, .rgb = {}};
  out.rgb.resize(row_values * static_cast<size_t>(height));
  std::vector<int32_t> sums(row_values);
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    const int32_t* const values = weights.values.data() + y * static_cast<size_t>(weights.max_taps);
    for (int tap = 0; tap < weights.n_taps[y]; ++tap) {
      const auto from_row = static_cast<size_t>(weights.first[y]) + static_cast<size_t>(tap);
      const uint8_t* const from = image.rgb.data() + from_row * row_values;
      const int32_t weight = values[tap];
      for (size_t i = 0; i < row_values; ++i) {
        sums[i] += from[i] * weight;
      }
    }
    std::transform(sums.begin(), sums.end(), out.rgb.data() + y * row_values, Round);
  }
  return out;
}

}  // namespace

Image ResizeBicubic(const Image& image, int width, int height) {
  FACET_CHECK(image.width > 0 && image.height > 0 && width > 0 && height > 0);
  if (width == image.width) {
    return height == image.height ? image : ResizeColumns(image, height);
  }
  const Image rows = ResizeRows(image, width);
  return height == image.height ? rows : ResizeColumns(rows, height);
}

}  // namespace facet
