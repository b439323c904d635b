// SPDX-License-Identifier: Apache-2.0
// Four lanes at a time: the operations of vector_math.h in the same order, and the fixed trees.
// Everything lies in an anonymous namespace, so that no other file can be linked with code compiled
// for a newer processor; include it in *_neon.cc only.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "compute/vector_math.h"

namespace facet {
namespace {

inline float32x4_t Exp4(float32x4_t x) {
  // A NaN stays one, as it does where the scalar code compares.
  x = vminq_f32(vdupq_n_f32(math::kExpMax), x);
  x = vmaxq_f32(vdupq_n_f32(math::kExpMin), x);
  const float32x4_t round = vdupq_n_f32(math::kRound);
  const float32x4_t shifted = vfmaq_f32(round, x, vdupq_n_f32(math::kLog2E));
  const float32x4_t n = vsubq_f32(shifted, round);
  float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(-math::kLn2High));
  r = vfmaq_f32(r, n, vdupq_n_f32(-math::kLn2Low));
  float32x4_t p = vdupq_n_f32(math::kExpPoly[0]);
  for (int i = 1; i < 5; ++i) {
    p = vfmaq_f32(vdupq_n_f32(math::kExpPoly[i]), p, r);
  }
  const float32x4_t tail = vfmaq_f32(r, p, vmulq_f32(r, r));
  const float32x4_t y = vaddq_f32(vdupq_n_f32(1.0f), tail);
  const int32x4_t exponent =
      vsubq_s32(vreinterpretq_s32_f32(shifted), vreinterpretq_s32_f32(round));
  const int32x4_t half = vshrq_n_s32(exponent, 1);
  const int32x4_t bias = vdupq_n_s32(127);
  const int32x4_t first = vshlq_n_s32(vaddq_s32(half, bias), 23);
  const int32x4_t second = vshlq_n_s32(vaddq_s32(vsubq_s32(exponent, half), bias), 23);
  return vmulq_f32(vmulq_f32(y, vreinterpretq_f32_s32(first)), vreinterpretq_f32_s32(second));
}

inline float32x4_t Tanh4(float32x4_t x) {
  const float32x4_t a = vabsq_f32(x);
  const float32x4_t u = vmulq_f32(a, a);
  float32x4_t p = vdupq_n_f32(math::kTanhPoly[0]);
  for (int i = 1; i < 6; ++i) {
    p = vfmaq_f32(vdupq_n_f32(math::kTanhPoly[i]), p, u);
  }
  const float32x4_t small = vfmaq_f32(a, vmulq_f32(u, p), a);
  const float32x4_t one = vdupq_n_f32(1.0f);
  const float32x4_t e = vaddq_f32(Exp4(vaddq_f32(a, a)), one);
  const float32x4_t large = vsubq_f32(one, vdivq_f32(vdupq_n_f32(2.0f), e));
  const uint32x4_t is_small = vcltq_f32(a, vdupq_n_f32(math::kTanhLimit));
  return vbslq_f32(vdupq_n_u32(0x80000000u), x, vbslq_f32(is_small, small, large));
}

inline float32x4_t GeluTanh4(float32x4_t z) {
  const float32x4_t cubic =
      vfmaq_f32(vdupq_n_f32(math::kGeluLinear), vmulq_f32(z, z), vdupq_n_f32(math::kGeluCubic));
  const float32x4_t t = Tanh4(vmulq_f32(z, cubic));
  return vmulq_f32(vmulq_f32(vdupq_n_f32(0.5f), z), vaddq_f32(vdupq_n_f32(1.0f), t));
}

// The end of every tree: lane i += lane i + 2, + 1.
inline float Tree4(float32x4_t lanes) {
  const float32x2_t pair = vadd_f32(vget_low_f32(lanes), vget_high_f32(lanes));
  return vget_lane_f32(pair, 0) + vget_lane_f32(pair, 1);
}

// The tree of 16 lanes: lane i += lane i + 8, + 4, + 2, + 1.
inline float Tree16(const float32x4_t (&lanes)[4]) {
  return Tree4(vaddq_f32(vaddq_f32(lanes[0], lanes[2]), vaddq_f32(lanes[1], lanes[3])));
}

// Where a > b, a, else b: b when one is a NaN.
inline float32x4_t Larger(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }

// All bits set in the first `n` lanes; n may be above 4 or below 0.
inline uint32x4_t FirstLanes(int64_t n) {
  constexpr int32_t kNumbers[4] = {0, 1, 2, 3};
  const auto limit = static_cast<int32_t>(n > 4 ? 4 : n < 0 ? 0 : n);
  return vcgtq_s32(vdupq_n_s32(limit), vld1q_s32(kNumbers));
}

// The first `n` < 4 of four values, zeros after them; and storing no more than these.
inline float32x4_t LoadFirst(const float* x, int64_t n) {
  float values[4] = {};
  for (int64_t i = 0; i < n; ++i) {
    values[i] = x[i];
  }
  return vld1q_f32(values);
}

inline void StoreFirst(float* x, float32x4_t value, int64_t n) {
  float values[4];
  vst1q_f32(values, value);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = values[i];
  }
}

// Four float16 or bfloat16 of a file as floats.
inline float32x4_t LoadF16(const std::byte* data) {
  return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(reinterpret_cast<const uint8_t*>(data))));
}

inline float32x4_t LoadBf16(const std::byte* data) {
  const uint16x4_t bits = vreinterpret_u16_u8(vld1_u8(reinterpret_cast<const uint8_t*>(data)));
  return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
}

}  // namespace
}  // namespace facet
