// SPDX-License-Identifier: Apache-2.0
// The grids of the IQ types: sets of points with 4 or 8 coordinates out of a few levels, by which a
// block's values are named together. A file holds the index of a point. Which points belong to a
// grid, and their order, are facts of the format. Internal to quant/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace facet {

template <size_t kPoints, size_t kWidth>
using Grid = std::array<std::array<int8_t, kWidth>, kPoints>;

extern const Grid<256, 4> kIq3XxsGrid;  ///< levels 4, 12, … 52, 62
extern const Grid<512, 4> kIq3SGrid;    ///< odd levels 1 to 15
extern const Grid<256, 8> kIq2XxsGrid;  ///< levels 8, 25, 43
extern const Grid<512, 8> kIq2XsGrid;   ///< the same
extern const Grid<1024, 8> kIq2SGrid;   ///< the same
extern const Grid<2048, 8> kIq1Grid;    ///< levels -8, 0, 8

}  // namespace facet
