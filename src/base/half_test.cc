// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace facet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The value of a half by the definition of the format, in doubles.
double ValueOfHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool IsNanHalf(uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }

float Next(float value, float towards) { return std::nextafterf(value, towards); }

TEST(HalfTest, EveryF16HasItsValue) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = FloatFromF16(bits);
    if (IsNanHalf(bits)) {
      ASSERT_TRUE(std::isnan(value));
    } else if ((bits & 0x7fff) == 0x7c00) {
      ASSERT_EQ(value, (bits & 0x8000) != 0 ? -kInfinity : kInfinity);
    } else {
      ASSERT_EQ(value, ValueOfHalf(bits)) << i;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << i;
    }
  }
}

TEST(HalfTest, EveryF16ComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const uint16_t quiet = IsNanHalf(bits) ? 0x200 : 0;  // a NaN comes back quiet, its payload kept
    ASSERT_EQ(F16FromFloat(FloatFromF16(bits)), bits | quiet) << i;
  }
}

// Rounding is monotone, so it is right everywhere when it is right at each midpoint between
// neighbours and just beside.
TEST(HalfTest, RoundsToTheNearestF16AndTiesToEven) {
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    const auto low = static_cast<uint16_t>(i);
    const auto high = static_cast<uint16_t>(i + 1);
    // The step above the largest finite value leads to infinity, as if the next exponent existed.
    const double above = high == 0x7c00 ? 65536.0 : ValueOfHalf(high);
    const auto middle = static_cast<float>((ValueOfHalf(low) + above) / 2);
    ASSERT_EQ((ValueOfHalf(low) + above) / 2, middle) << "a float holds each midpoint";
    const uint16_t even = (low & 1) == 0 ? low : high;
    ASSERT_EQ(F16FromFloat(middle), even) << i;
    ASSERT_EQ(F16FromFloat(Next(middle, 0)), low) << i;
    ASSERT_EQ(F16FromFloat(Next(middle, kInfinity)), high) << i;
    ASSERT_EQ(F16FromFloat(-middle), even | 0x8000) << i;
    ASSERT_EQ(F16FromFloat(Next(-middle, 0)), low | 0x8000) << i;
    ASSERT_EQ(F16FromFloat(Next(-middle, -kInfinity)), high | 0x8000) << i;
  }
}

TEST(HalfTest, F16RoundingIsMonotone) {
  uint16_t last = 0;
  for (uint32_t bits = 0; bits <= 0x7f800000u; bits += 977) {
    const uint16_t half = F16FromFloat(std::bit_cast<float>(bits));
    ASSERT_GE(half, last) << bits;
    last = half;
  }
}

TEST(HalfTest, F16Extremes) {
  EXPECT_EQ(F16FromFloat(65504.0f), 0x7bff);
  EXPECT_EQ(F16FromFloat(1e30f), 0x7c00);
  EXPECT_EQ(F16FromFloat(kInfinity), 0x7c00);
  EXPECT_EQ(F16FromFloat(-kInfinity), 0xfc00);
  EXPECT_EQ(F16FromFloat(-0.0f), 0x8000);
  EXPECT_EQ(F16FromFloat(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_TRUE(IsNanHalf(F16FromFloat(std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(IsNanHalf(F16FromFloat(std::bit_cast<float>(0xffc00000u))));
}

TEST(HalfTest, EveryBf16ComesBack) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = FloatFromBf16(bits);
    ASSERT_EQ(std::bit_cast<uint32_t>(value), i << 16);
    ASSERT_EQ(Bf16FromFloat(value), std::isnan(value) ? bits | 0x40 : bits) << i;
  }
}

TEST(HalfTest, RoundsToTheNearestBf16AndTiesToEven) {
  for (uint32_t i = 0; i < 0x7f80; ++i) {
    const auto low = static_cast<uint16_t>(i);
    const auto high = static_cast<uint16_t>(i + 1);
    const uint16_t even = (low & 1) == 0 ? low : high;
    const uint32_t middle = (i << 16) | 0x8000u;
    ASSERT_EQ(Bf16FromFloat(std::bit_cast<float>(middle)), even) << i;
    ASSERT_EQ(Bf16FromFloat(std::bit_cast<float>(middle - 1)), low) << i;
    ASSERT_EQ(Bf16FromFloat(std::bit_cast<float>(middle + 1)), high) << i;
    ASSERT_EQ(Bf16FromFloat(std::bit_cast<float>(middle | 0x80000000u)), even | 0x8000) << i;
  }
  EXPECT_EQ(Bf16FromFloat(std::bit_cast<float>(0x7f800001u)),
            0x7fc0);  // a NaN never rounds to infinity
}

}  // namespace
}  // namespace facet
