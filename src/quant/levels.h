// SPDX-License-Identifier: Apache-2.0
// The levels of the types whose levels follow no rule, for the search. Internal to quant/.
#pragma once

#include <cstdint>

#include "quant/codec_tables.h"
#include "quant/fit.h"

namespace facet {

using Iq4Levels = TableLevels<kIq4Levels>;

/// The values of a 4-bit float, doubled.
inline constexpr int8_t kMxfp4Levels[15] = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
using Mxfp4Levels = TableLevels<kMxfp4Levels>;

}  // namespace facet
