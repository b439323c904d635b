// SPDX-License-Identifier: Apache-2.0
// Pictures cut into square patches, for both encoders of pictures: which pictures they take, and
// the pixels of each patch as a row of numbers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "media/media_item.h"

namespace facet {

inline constexpr int kTokenSide = 48;  ///< pixels of a soft token, across and down

/// Whether an encoder with tables of `n_positions` patches of `side` pixels can take it. Refused:
/// no picture, sides that are no multiples of 48 or beyond the table, pixels or tokens that do not
/// fit the sides, more than kMostItemTokens.
Status CheckPicture(const MediaItem& item, int side, int n_positions);

/// What a row of the encoder's input holds for each byte of a pixel.
using ByteValues = std::array<float, 256>;

/// The value in [0, 1] of each byte: the float next to byte · (1 / 255), as the reference has it.
ByteValues UnitBytes();

/// Patches of pictures in reading order, one picture after the other.
struct PatchPositions {
  std::vector<int32_t> x;  ///< of each row, in patches
  std::vector<int32_t> y;
};
void AppendPositions(const MediaItem& picture, int side, PatchPositions* positions);

/// rows [patches, 3 · side²]: each patch as (row, column, channel), patches in reading order.
void CutPatches(const MediaItem& picture, int side, const ByteValues& values, float* rows);

}  // namespace facet
