// SPDX-License-Identifier: Apache-2.0
// The search for blocks of 256 values whose groups have integer scales: the best real scale of each
// group, a common unit for them, then integers and unit in turn, each time rounding all values with
// what will really be stored. Internal to quant/.
#pragma once

#include <array>

#include "quant/fit.h"

namespace facet {

inline constexpr int kMaxGroups = 16;

/// Group j is decoded as (d · s[j]) · q. `d` is representable in half precision.
struct ScaledGroups {
  float d = 0.0f;
  std::array<int, kMaxGroups> s = {};
};

/// `scales` are the integers that s can be.
template <class Levels>
ScaledGroups FitScaledGroups(const Levels& levels, const IntegerLevels& scales, Weighted block,
                             int n_groups);

/// Group j is decoded as (d · s[j]) · q − dmin · m[j]. `d` and `dmin` are representable in half
/// precision; both are negative where the block's values lie higher above 0 than below.
struct AffineGroups {
  float d = 0.0f;
  float dmin = 0.0f;
  std::array<int, kMaxGroups> s = {};
  std::array<int, kMaxGroups> m = {};
};

/// q can be 0 .. highest, s and m can be 0 .. largest_scale.
AffineGroups FitAffineGroups(float highest, float largest_scale, Weighted block, int n_groups);

}  // namespace facet
