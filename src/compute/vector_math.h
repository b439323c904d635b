// SPDX-License-Identifier: Apache-2.0
// Our exp, tanh and GELU as sequences of float operations, one value at a time: the definition that
// vector code repeats operation by operation. Own versions, because the library's differ between
// machines and have no vector form. Errors against the exact value: exp and tanh below 2 ulp
// (vector_math_test.cc states the worst found).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace facet::math {

// exp(x) = 2^n · exp(r), n = round(x / ln 2), |r| <= ln 2 / 2. Outside the range the result is 0 or
// infinity.
inline constexpr float kExpMin = -104.0f;
inline constexpr float kExpMax = 89.0f;
inline constexpr float kLog2E = 0x1.715476p+0f;
inline constexpr float kRound = 0x1.8p+23f;  // added and taken away: rounds to the nearest integer
inline constexpr float kLn2High = 0x1.62e4p-1f;  // few bits, so that n · kLn2High is exact
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
// (exp(r) - 1 - r) / r², least maximal error on the interval, highest power first.
inline constexpr float kExpPoly[5] = {0x1.6d113cp-10f, 0x1.120ba2p-7f, 0x1.55551ap-5f,
                                      0x1.5554dcp-3f, 0x1p-1f};

// tanh(a) = a + a³ · P(a²) below the limit, 1 − 2 / (exp(2a) + 1) above it.
inline constexpr float kTanhLimit = 0.625f;
inline constexpr float kTanhPoly[6] = {0x1.2c645ep-9f,  -0x1.116328p-7f, 0x1.64a868p-6f,
                                       -0x1.ba08b4p-5f, 0x1.1110e8p-3f,  -0x1.555556p-2f};

inline constexpr float kGeluLinear = 0x1.988454p-1f;  // sqrt(2 / π)
inline constexpr float kGeluCubic = 0x1.2444f2p-5f;   // 0.044715 · sqrt(2 / π)

/// NaN gives NaN.
inline float Exp(float x) {
  x = kExpMax < x ? kExpMax : x;
  x = kExpMin > x ? kExpMin : x;
  const float shifted = std::fma(x, kLog2E, kRound);
  const float n = shifted - kRound;
  float r = std::fma(n, -kLn2High, x);
  r = std::fma(n, -kLn2Low, r);
  float p = kExpPoly[0];
  for (int i = 1; i < 5; ++i) {
    p = std::fma(p, r, kExpPoly[i]);
  }
  const float y = 1.0f + std::fma(p, r * r, r);
  // 2^n in two factors, so that a subnormal result is rounded once.
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  const auto half = static_cast<uint32_t>(static_cast<int32_t>(exponent) >> 1);
  const auto first = std::bit_cast<float>((half + 127u) << 23);
  const auto second = std::bit_cast<float>((exponent - half + 127u) << 23);
  return y * first * second;
}

inline float Tanh(float x) {
  const float a = std::fabs(x);
  float y;
  if (a < kTanhLimit) {
    const float u = a * a;
    float p = kTanhPoly[0];
    for (int i = 1; i < 6; ++i) {
      p = std::fma(p, u, kTanhPoly[i]);
    }
    y = std::fma(u * p, a, a);
  } else {
    y = 1.0f - 2.0f / (Exp(a + a) + 1.0f);
  }
  return std::copysign(y, x);
}

/// 0.5 z (1 + tanh(sqrt(2/π) (z + 0.044715 z³)))
inline float GeluTanh(float z) {
  const float inner = z * std::fma(z * z, kGeluCubic, kGeluLinear);
  return 0.5f * z * (1.0f + Tanh(inner));
}

}  // namespace facet::math
