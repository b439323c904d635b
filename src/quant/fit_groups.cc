// SPDX-License-Identifier: Apache-2.0
#include "quant/fit_groups.h"

#include <algorithm>
#include <cmath>

#include "quant/encode_block.h"
#include "quant/levels.h"

namespace facet {
namespace {

// How often integers and units are improved in turn. More turns win less than a thousandth.
constexpr int kTurns = 4;

Weighted GroupOf(Weighted block, int j, int n_groups) {
  const int n4 = block.n4 / n_groups;
  return {block.x + j * n4, block.w + j * n4, n4};
}

// A real number for each group, and how much a squared error at it costs.
struct GroupReals {
  Float4 x[kMaxGroups / 4];
  Float4 w[kMaxGroups / 4];

  void Set(int j, float value, float weight) {
    x[j / 4][j % 4] = value;
    w[j / 4][j % 4] = weight;
  }
  // The unit of which the numbers are integers with least error.
  float FitUnit(const IntegerLevels& integers, int n_groups) const {
    return FitScale(integers, {x, w, n_groups / 4});
  }
};

// The integers next to x / unit that are among the levels.
struct Neighbours {
  int first;
  int last;

  Neighbours(const IntegerLevels& integers, float x, float unit) {
    const float ratio = unit != 0.0f ? x / unit : 0.0f;
    const float inside = std::fmin(std::fmax(ratio, integers.lowest), integers.highest);
    const int nearest = static_cast<int>(std::nearbyintf(inside));
    first = std::max(nearest - 1, static_cast<int>(integers.lowest));
    last = std::min(nearest + 1, static_cast<int>(integers.highest));
  }
};

// Integers for a unit, and what they give.
struct ScaledTrial {
  ScaledGroups groups;
  float error = 0.0f;
  float best_d = 0.0f;  // of least error for these integers and roundings
};

template <class Levels>
ScaledTrial TryUnit(const Levels& levels, const IntegerLevels& scales, Weighted block,
                    const GroupReals& wanted, int n_groups, float unit) {
  ScaledTrial trial;
  trial.groups.d = NearestHalf(unit);
  float wxa = 0.0f;  // a = s · q
  float waa = 0.0f;
  for (int j = 0; j < n_groups; ++j) {
    const Weighted group = GroupOf(block, j, n_groups);
    const Neighbours near(scales, wanted.x[j / 4][j % 4], trial.groups.d);
    Rounding best = {{}, INFINITY};
    int best_s = 0;
    for (int s = near.first; s <= near.last; ++s) {
      const Rounding rounding = Round(levels, group, {trial.groups.d * static_cast<float>(s), 0});
      if (rounding.error < best.error) {
        best = rounding;
        best_s = s;
      }
    }
    const auto s = static_cast<float>(best_s);
    trial.groups.s[static_cast<size_t>(j)] = best_s;
    trial.error += best.error;
    wxa += s * best.moments.wxq;
    waa += s * s * best.moments.wqq;
  }
  trial.best_d = waa > 0.0f ? wxa / waa : 0.0f;
  return trial;
}

}  // namespace

template <class Levels>
ScaledGroups FitScaledGroups(const Levels& levels, const IntegerLevels& scales, Weighted block,
                             int n_groups) {
  GroupReals wanted;
  for (int j = 0; j < n_groups; ++j) {
    const Weighted group = GroupOf(block, j, n_groups);
    const float scale = FitScale(levels, group);
    wanted.Set(j, scale, Round(levels, group, {scale, 0.0f}).moments.wqq);
  }
  float unit = wanted.FitUnit(scales, n_groups);
  ScaledTrial best;
  best.error = INFINITY;
  for (int turn = 0; turn < kTurns; ++turn) {
    const ScaledTrial trial = TryUnit(levels, scales, block, wanted, n_groups, unit);
    best = trial.error < best.error ? trial : best;
    unit = trial.best_d;
  }
  return best.groups;
}

template ScaledGroups FitScaledGroups(const IntegerLevels&, const IntegerLevels&, Weighted, int);
template ScaledGroups FitScaledGroups(const Iq4Levels&, const IntegerLevels&, Weighted, int);

namespace {

struct AffineRanges {
  IntegerLevels q;
  IntegerLevels s;  // and m
};

struct Units {
  float d;
  float dmin;
};

// The best fit of a group with real numbers, and what is needed to judge others.
struct GroupFit {
  Affine affine;
  Sums sums;
  float mean_q;  // weighted
};

struct GroupChoice {
  int s = 0;
  int m = 0;
  Rounding rounding = {{}, INFINITY};
};

// Integers for given units, and what they give: the error, and the sums whose solution are the
// units of least error for these integers and roundings.
struct AffineTrial {
  AffineGroups groups;
  float error = 0.0f;
  float waa = 0.0f;  // a = s · q
  float wam = 0.0f;
  float wmm = 0.0f;
  float wxa = 0.0f;
  float wxm = 0.0f;

  void Add(int j, const GroupChoice& choice, const Sums& sums) {
    groups.s[static_cast<size_t>(j)] = choice.s;
    groups.m[static_cast<size_t>(j)] = choice.m;
    const auto s = static_cast<float>(choice.s);
    const auto m = static_cast<float>(choice.m);
    error += choice.rounding.error;
    waa += s * s * choice.rounding.moments.wqq;
    wam += s * m * choice.rounding.moments.wq;
    wmm += m * m * sums.w;
    wxa += s * choice.rounding.moments.wxq;
    wxm += m * sums.wx;
  }

  // For x ≈ d · a − dmin · m. Where a and m are (nearly) proportional, dmin stays.
  Units BestUnits() const {
    constexpr float kProportional = 1e-5f;
    const float determinant = waa * wmm - wam * wam;
    if (determinant > kProportional * waa * wmm) {
      return {(wxa * wmm - wxm * wam) / determinant, (wxa * wam - wxm * waa) / determinant};
    }
    return {waa > 0.0f ? (wxa + groups.dmin * wam) / waa : groups.d, groups.dmin};
  }
};

GroupChoice ChooseIntegers(const AffineRanges& ranges, Weighted group, const GroupFit& fit,
                           Units units) {
  GroupChoice best;
  const Neighbours scales(ranges.s, fit.affine.scale, units.d);
  for (int s = scales.first; s <= scales.last; ++s) {
    const float scale = units.d * static_cast<float>(s);
    // The offset that leaves the mean of what is stored where the fit has it.
    const float offset = fit.affine.offset + (fit.affine.scale - scale) * fit.mean_q;
    const Neighbours minima(ranges.s, -offset, units.dmin);
    for (int m = minima.first; m <= minima.last; ++m) {
      const Affine stored = {scale, -(units.dmin * static_cast<float>(m))};
      const Rounding rounding = Round(ranges.q, group, stored);
      if (rounding.error < best.rounding.error) {
        best = {s, m, rounding};
      }
    }
  }
  return best;
}

// With d ≥ 0 and dmin ≥ 0.
AffineTrial FitNonNegative(const AffineRanges& ranges, Weighted block, int n_groups) {
  GroupFit fits[kMaxGroups];
  GroupReals scales;
  GroupReals minima;
  for (int j = 0; j < n_groups; ++j) {
    const Weighted group = GroupOf(block, j, n_groups);
    GroupFit& fit = fits[j];
    fit.affine = FitAffine(ranges.q.highest, 0.0f, group);
    fit.sums = SumsOf(group);
    const Moments moments = Round(ranges.q, group, fit.affine).moments;
    fit.mean_q = moments.wq / fit.sums.w;
    scales.Set(j, fit.affine.scale, moments.wqq);
    minima.Set(j, -fit.affine.offset, fit.sums.w);
  }
  Units units = {scales.FitUnit(ranges.s, n_groups), minima.FitUnit(ranges.s, n_groups)};
  AffineTrial best;
  best.error = INFINITY;
  for (int turn = 0; turn < kTurns; ++turn) {
    AffineTrial trial;
    trial.groups.d = NearestHalf(std::max(units.d, 0.0f));
    trial.groups.dmin = NearestHalf(std::max(units.dmin, 0.0f));
    for (int j = 0; j < n_groups; ++j) {
      const Weighted group = GroupOf(block, j, n_groups);
      const Units stored = {trial.groups.d, trial.groups.dmin};
      trial.Add(j, ChooseIntegers(ranges, group, fits[j], stored), fits[j].sums);
    }
    best = trial.error < best.error ? trial : best;
    units = trial.BestUnits();
  }
  return best;
}

}  // namespace

AffineGroups FitAffineGroups(float highest, float largest_scale, Weighted block, int n_groups) {
  const AffineRanges ranges = {{0.0f, highest}, {0.0f, largest_scale}};
  const AffineTrial straight = FitNonNegative(ranges, block, n_groups);
  Float4 negated[kBlockK / 4];
  for (int k = 0; k < block.n4; ++k) {
    negated[k] = -block.x[k];
  }
  const AffineTrial mirrored = FitNonNegative(ranges, {negated, block.w, block.n4}, n_groups);
  if (straight.error <= mirrored.error) {
    return straight.groups;
  }
  AffineGroups groups = mirrored.groups;
  groups.d = -groups.d;
  groups.dmin = -groups.dmin;
  return groups;
}

}  // namespace facet
