// SPDX-License-Identifier: Apache-2.0
#include "quant/fit.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "quant/levels.h"

namespace facet {
namespace {

// Below it squares vanish in float, and no type has a scale so small.
constexpr float kSmallest = 1e-15f;

// The scales with which a search rounds: 1 / factor times the one at which the values just fill the
// levels, for factors from first to last. Wider or denser ones win about a hundredth
// of the error at most.
struct Factors {
  float first;
  float step;
  int n;
  float At(int i) const { return first + step * static_cast<float>(i); }
};
constexpr Factors kScaleFactors = {0.6f, 0.03f, 34};    // to 1.59
constexpr Factors kAffineFactors = {0.9f, 0.035f, 18};  // to 1.5

template <class Levels>
Moments MomentsOf(const Levels& levels, Weighted values, float inverse, float offset) {
  Float4 wq = {};
  Float4 wqq = {};
  Float4 wxq = {};
  for (int k = 0; k < values.n4; ++k) {
    const Float4 x = values.x[k];
    const Float4 q = levels.Nearest((x - offset) * inverse);
    const Float4 weighted = values.w[k] * q;
    wq += weighted;
    wqq += weighted * q;
    wxq += weighted * x;
  }
  return {Sum(wq), Sum(wqq), Sum(wxq)};
}

struct Range {
  float lowest;
  float highest;
};

Range RangeOf(Weighted values) {
  Float4 low = values.x[0];
  Float4 high = values.x[0];
  for (int k = 1; k < values.n4; ++k) {
    low = values.x[k] < low ? values.x[k] : low;
    high = values.x[k] > high ? values.x[k] : high;
  }
  return {std::min(std::min(low[0], low[1]), std::min(low[2], low[3])),
          std::max(std::max(high[0], high[1]), std::max(high[2], high[3]))};
}

}  // namespace

Sums SumsOf(Weighted values) {
  Float4 w = {};
  Float4 wx = {};
  for (int k = 0; k < values.n4; ++k) {
    w += values.w[k];
    wx += values.w[k] * values.x[k];
  }
  return {Sum(w), Sum(wx)};
}

template <class Levels>
float FitScale(const Levels& levels, Weighted values) {
  const Range range = RangeOf(values);
  const float extreme = std::max(-range.lowest, range.highest);
  if (extreme < kSmallest) {
    return 0.0f;
  }
  float scale = 0.0f;
  float best_gain = 0.0f;  // what the best scale takes off the error of a scale of 0
  const float filling = std::max(-levels.lowest, levels.highest) / extreme;
  for (int i = 0; i < kScaleFactors.n; ++i) {
    for (const float inverse : {filling * kScaleFactors.At(i), -filling * kScaleFactors.At(i)}) {
      const Moments moments = MomentsOf(levels, values, inverse, 0.0f);
      const float gain = moments.wqq > 0.0f ? moments.wxq * moments.wxq / moments.wqq : 0.0f;
      if (gain > best_gain) {
        best_gain = gain;
        scale = moments.wxq / moments.wqq;
      }
    }
  }
  return scale;
}

template float FitScale(const IntegerLevels&, Weighted);
template float FitScale(const Iq4Levels&, Weighted);

namespace {

struct AffineFit {
  Affine affine;
  float error;
};

// The best scale and offset for a rounding of values with Σ w x = 0, and the error relative to that
// of storing 0 everywhere. `sum_w` is Σ w.
AffineFit Solve(const Moments& moments, float sum_w, float largest_offset) {
  const auto [wq, wqq, wxq] = moments;
  const float determinant = sum_w * wqq - wq * wq;
  float scale = determinant > 0.0f ? std::max(0.0f, sum_w * wxq / determinant) : 0.0f;
  float offset = -scale * wq / sum_w;
  if (offset > largest_offset) {
    offset = largest_offset;
    scale = wqq > 0.0f ? std::max(0.0f, (wxq - offset * wq) / wqq) : 0.0f;
  }
  const float error = scale * (scale * wqq + 2.0f * (offset * wq - wxq)) + offset * offset * sum_w;
  return {{scale, offset}, error};
}

}  // namespace

Affine FitAffine(float highest, float largest_offset, Weighted values) {
  FACET_CHECK(values.n4 <= kMaxFitted4);
  const Sums sums = SumsOf(values);
  const float mean = sums.wx / sums.w;
  Float4 x[kMaxFitted4];  // without the mean: the sums below lose no digits to it
  for (int k = 0; k < values.n4; ++k) {
    x[k] = values.x[k] - mean;
  }
  const Weighted centred = {x, values.w, values.n4};
  const float bound = largest_offset - mean;
  const Range range = RangeOf(centred);
  const float lowest = std::min(range.lowest, bound);
  const float width = range.highest - lowest;
  AffineFit best = {{0.0f, std::min(0.0f, bound)}, INFINITY};
  if (width >= kSmallest) {
    const IntegerLevels levels = {0.0f, highest};
    for (int i = 0; i < kAffineFactors.n; ++i) {
      const float factor = kAffineFactors.At(i);
      const float step = width / (highest * factor);
      for (const float below : {0.0f, 0.5f, 1.0f}) {  // the part of what is cut that is cut below
        const float offset = lowest + below * (factor - 1.0f) * highest * step;
        const Moments moments = MomentsOf(levels, centred, 1.0f / step, offset);
        const AffineFit fit = Solve(moments, sums.w, bound);
        best = fit.error < best.error ? fit : best;
      }
    }
  }
  return {best.affine.scale, std::min(best.affine.offset + mean, largest_offset)};
}

}  // namespace facet
