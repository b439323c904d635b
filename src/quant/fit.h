// SPDX-License-Identifier: Apache-2.0
// The search that all encoders share: given values with weights and the levels that a type can
// store, find the scale (or the scale and the offset) of least weighted squared error. The best
// scale for a rounding has a closed form, but the best rounding depends on the scale: so the search
// rounds with many scales, from one that leaves the outermost levels unused to one that cuts the
// extreme values off, and takes the rounding whose best scale errs least. Sums run in four lanes in
// a fixed order: the same result on every machine. Internal to quant/.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>

namespace facet {

using Float4 = float __attribute__((vector_size(16)));

inline Float4 Splat(float value) { return Float4{value, value, value, value}; }
inline float Sum(Float4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }

/// Values that share a scale, and how much a squared error at each matters. Weights are positive
/// and near 1 in the mean, magnitudes of values at most 65504. `n4` counts fours.
struct Weighted {
  const Float4* x;
  const Float4* w;
  int n4;
};

inline constexpr int kMaxFitted4 = 8;  ///< the largest n4 that FitAffine takes: 32 values

/// The integers from `lowest` to `highest` (at most 2^22 in magnitude).
struct IntegerLevels {
  float lowest;
  float highest;

  /// The nearest level to each value; ties go to even.
  Float4 Nearest(Float4 v) const {
    v = v < Splat(lowest) ? Splat(lowest) : v;
    v = v > Splat(highest) ? Splat(highest) : v;
    const Float4 rounder = Splat(0x1.8p23f);  // floats of its size have no fraction
    return (v + rounder) - rounder;
  }
  int IndexOf(float level) const { return static_cast<int>(level - lowest); }
};

/// The ascending levels of a table of integers.
template <const auto& kTable>
struct TableLevels {
  static constexpr size_t kN = std::size(kTable);
  float lowest = kTable[0];
  float highest = kTable[kN - 1];

  /// The nearest level to each value; ties go up.
  Float4 Nearest(Float4 v) const { return Climb(v, std::make_index_sequence<kN - 1>()); }
  int IndexOf(float level) const {
    int index = 0;
    for (const auto other : kTable) {
      index += static_cast<float>(other) < level ? 1 : 0;
    }
    return index;
  }

 private:
  template <size_t kStep>
  static constexpr float kMiddle = static_cast<float>(kTable[kStep] + kTable[kStep + 1]) * 0.5f;
  template <size_t kStep>
  static constexpr float kRise = static_cast<float>(kTable[kStep + 1] - kTable[kStep]);

  // From the lowest level up, one step for each middle between levels that v has reached.
  template <size_t... kSteps>
  static Float4 Climb(Float4 v, std::index_sequence<kSteps...>) {
    Float4 level = Splat(kTable[0]);
    ((level += v >= Splat(kMiddle<kSteps>) ? Splat(kRise<kSteps>) : Float4{}), ...);
    return level;
  }
};

/// What is stored is scale · q + offset.
struct Affine {
  float scale;
  float offset;

  /// 0 for a scale of 0, with which every rounding is the same.
  float inverse() const { return scale != 0.0f ? 1.0f / scale : 0.0f; }
};

/// The sums from which the best scale for a rounding of x to q follows.
struct Moments {
  float wq;
  float wqq;
  float wxq;
};

struct Rounding {
  Moments moments;
  float error;  ///< Σ w (x − stored)²
};

/// Rounds every value to the level that is stored nearest to it.
template <class Levels>
Rounding Round(const Levels& levels, Weighted values, Affine stored) {
  const float inverse = stored.inverse();
  Float4 wq = {};
  Float4 wqq = {};
  Float4 wxq = {};
  Float4 error = {};
  for (int k = 0; k < values.n4; ++k) {
    const Float4 x = values.x[k];
    const Float4 q = levels.Nearest((x - stored.offset) * inverse);
    const Float4 weighted = values.w[k] * q;
    const Float4 miss = x - (q * stored.scale + stored.offset);
    wq += weighted;
    wqq += weighted * q;
    wxq += weighted * x;
    error += values.w[k] * miss * miss;
  }
  return {{Sum(wq), Sum(wqq), Sum(wxq)}, Sum(error)};
}

struct Sums {
  float w;
  float wx;
};
Sums SumsOf(Weighted values);

/// The scale of least error for x ≈ scale · q. Its sign is the one that serves best; 0 for values
/// that are (nearly) 0.
template <class Levels>
float FitScale(const Levels& levels, Weighted values);

/// The scale ≥ 0 and the offset ≤ largest_offset of least error for x ≈ scale · q + offset, q in
/// 0 .. highest.
Affine FitAffine(float highest, float largest_offset, Weighted values);

}  // namespace facet
