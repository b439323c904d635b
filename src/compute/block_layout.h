// SPDX-License-Identifier: Apache-2.0
// Sizes and places inside the blocks of quantised weights (docs/quantization.md). Constants only,
// so that every instruction set may use it.
#pragma once

namespace facet::layout {

inline constexpr int kQ8_0Bytes = 34;  // d, 32 int8
inline constexpr int kQ8_0Values = 2;

inline constexpr int kQ4_0Bytes = 18;  // d, 16 bytes: value k low, value k + 16 high
inline constexpr int kQ4_0Nibbles = 2;

inline constexpr int kQ4_KBytes = 144;  // d, dmin, packed scales and minima, nibbles
inline constexpr int kQ4_KScales = 4;
inline constexpr int kQ4_KNibbles = 16;

inline constexpr int kQ6_KBytes = 210;  // low nibbles, high bit pairs, 16 int8 scales, d
inline constexpr int kQ6_KHigh = 128;
inline constexpr int kQ6_KScales = 192;
inline constexpr int kQ6_KD = 208;

}  // namespace facet::layout
