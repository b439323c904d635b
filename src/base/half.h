// SPDX-License-Identifier: Apache-2.0
// IEEE half precision and bfloat16 to and from float, one value at a time, in plain C++: the
// definition that vector code must equal.
#pragma once

#include <bit>
#include <cstdint>

namespace facet {

inline float FloatFromBf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// Round to nearest even; a NaN stays a quiet NaN.
inline uint16_t Bf16FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float FloatFromF16(uint16_t bits);

/// Round to nearest even, as the F16C instruction does: overflow gives infinity, small values
/// become subnormal.
uint16_t F16FromFloat(float value);

}  // namespace facet
