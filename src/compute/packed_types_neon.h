// SPDX-License-Identifier: Apache-2.0
// How the NEON kernels read packed weights (packed_weights.h): the codes of 4 columns of 4 rows as
// a register of signed bytes, and what a block adds to the chains of its outputs. sdot multiplies
// signed bytes, hence levels are used as they are and 8-bit codes become values by turning their
// highest bit; an offset of the smaller ones is taken back by what the integer sums start with.
// Everything lies in an anonymous namespace (vector_math_neon.h says why); include it in
// matmul_packed_neon.cc only.
#pragma once

#include "compute/matmul_neon.h"
#include "compute/vector_math_neon.h"

namespace facet {
namespace {

// --- codes: columns [4 kQuad, 4 kQuad + 4) of rows [4 c, 4 c + 4) ---

inline uint8x16_t LoadCodes(const std::byte* data) {
  return vld1q_u8(reinterpret_cast<const uint8_t*>(data));
}

// Bits [kFrom, kFrom + kWidth) of each byte, at bit kTo of the result.
template <int kFrom, int kWidth, int kTo>
inline uint8x16_t MoveBits(uint8x16_t bytes) {
  const uint8x16_t mask = vdupq_n_u8(static_cast<uint8_t>(((1 << kWidth) - 1) << kTo));
  if constexpr (kFrom < kTo) {
    return vandq_u8(vshlq_n_u8(bytes, kTo - kFrom), mask);
  } else if constexpr (kFrom > kTo) {
    return vandq_u8(vshrq_n_u8(bytes, kFrom - kTo), mask);
  } else {
    return vandq_u8(bytes, mask);
  }
}

template <int kQuad>
inline uint8x16_t Nibbles(const std::byte* codes, int c) {
  const uint8x16_t pair = LoadCodes(codes + 64 * (kQuad % 4) + 16 * c);
  if constexpr (kQuad < 4) {
    return vandq_u8(pair, vdupq_n_u8(15));
  } else {
    return vshrq_n_u8(pair, 4);
  }
}

struct Codes4 {
  static constexpr int kBytes = 256;
  template <int kQuad>
  static int8x16_t Quad(const std::byte* codes, int c) {
    return vreinterpretq_s8_u8(Nibbles<kQuad>(codes, c));
  }
};

struct Codes5 {
  static constexpr int kBytes = 320;
  template <int kQuad>
  static int8x16_t Quad(const std::byte* codes, int c) {
    const uint8x16_t high = MoveBits<kQuad, 1, 4>(LoadCodes(codes + 256 + 16 * c));
    return vreinterpretq_s8_u8(vorrq_u8(Nibbles<kQuad>(codes, c), high));
  }
};

struct Codes6 {
  static constexpr int kBytes = 384;
  template <int kQuad>
  static int8x16_t Quad(const std::byte* codes, int c) {
    const uint8x16_t plane = LoadCodes(codes + 256 + 64 * (kQuad / 4) + 16 * c);
    const uint8x16_t high = MoveBits<2 * (kQuad % 4), 2, 4>(plane);
    return vreinterpretq_s8_u8(vorrq_u8(Nibbles<kQuad>(codes, c), high));
  }
};

// code − 128
struct Codes8 {
  static constexpr int kBytes = 512;
  template <int kQuad>
  static int8x16_t Quad(const std::byte* codes, int c) {
    const uint8x16_t bytes = LoadCodes(codes + 64 * kQuad + 16 * c);
    return vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(0x80)));
  }
};

struct Iq4Levels {
  static constexpr int kBytes = 256;
  static constexpr int8_t kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
  template <int kQuad>
  static int8x16_t Quad(const std::byte* codes, int c) {
    return vqtbl1q_s8(vld1q_s8(kLevels), Nibbles<kQuad>(codes, c));
  }
};

struct E2m1Levels {
  static constexpr int kBytes = 256;
  static constexpr int8_t kLevels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  template <int kQuad>
  static int8x16_t Quad(const std::byte* codes, int c) {
    return vqtbl1q_s8(vld1q_s8(kLevels), Nibbles<kQuad>(codes, c));
  }
};

// --- sides ---

// The 16 values of a side, four to a register.
struct Floats16 {
  float32x4_t v[kRegisters];
};
struct Integers16 {
  int32x4_t v[kRegisters];
};

inline Floats16 LoadHalves(const std::byte* data) {
  return {{LoadF16(data), LoadF16(data + 8), LoadF16(data + 16), LoadF16(data + 24)}};
}

inline Integers16 LoadSignedBytes(const std::byte* data) {
  const int8x16_t bytes = LoadBytes(data);
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
  const int16x8_t high = vmovl_s8(vget_high_s8(bytes));
  return {{vmovl_s16(vget_low_s16(low)), vmovl_s16(vget_high_s16(low)),
           vmovl_s16(vget_low_s16(high)), vmovl_s16(vget_high_s16(high))}};
}

// Sides in the form that the chains read (matmul_neon.h). kBytes is their size in packed weights,
// for kBlocks blocks. Minima are below 128, so that signed bytes hold them.
struct ScaledSide {
  static constexpr int kHalves = 1;
  static constexpr int kBlocks = 1;
  static constexpr int kBytes = 32;
  Floats16 d;
  static ScaledSide Load(const std::byte* side, int) { return {LoadHalves(side)}; }
  [[nodiscard]] float32x4_t Add(int c, const int32x4_t (&dots)[1], const ActivationBlock& a,
                                float32x4_t acc) const {
    return AddScaled(dots[0], d.v[c], a.scale, acc);
  }
};

// MXFP4
struct Bf16Side : ScaledSide {
  static Bf16Side Load(const std::byte* side, int) {
    return {{{{LoadBf16(side), LoadBf16(side + 8), LoadBf16(side + 16), LoadBf16(side + 24)}}}};
  }
};

// Q4_1 and Q5_1
struct MinimumSide {
  static constexpr int kHalves = 1;
  static constexpr int kBlocks = 1;
  static constexpr int kBytes = 64;
  Floats16 d;
  Floats16 dmin;
  static MinimumSide Load(const std::byte* side, int) {
    return {LoadHalves(side), LoadHalves(side + 32)};
  }
  [[nodiscard]] float32x4_t Add(int c, const int32x4_t (&dots)[1], const ActivationBlock& a,
                                float32x4_t acc) const {
    acc = AddScaled(dots[0], d.v[c], a.scale, acc);
    return SubtractMinimum(vdupq_n_s32(a.half_sums[0] + a.half_sums[1]), dmin.v[c], a.scale, acc);
  }
};

// Q4_K and Q5_K
struct ScaledMinimumSide {
  static constexpr int kHalves = 1;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 320;
  Floats16 d;
  Floats16 dmin;
  Integers16 s;
  Integers16 m;
  static ScaledMinimumSide Load(const std::byte* side, int b) {
    return {LoadHalves(side), LoadHalves(side + 32), LoadSignedBytes(side + 64 + 16 * b),
            LoadSignedBytes(side + 192 + 16 * b)};
  }
  [[nodiscard]] float32x4_t Add(int c, const int32x4_t (&dots)[1], const ActivationBlock& a,
                                float32x4_t acc) const {
    acc = AddScaled(vmulq_s32(dots[0], s.v[c]), d.v[c], a.scale, acc);
    const int32x4_t sums = vmulq_n_s32(m.v[c], a.half_sums[0] + a.half_sums[1]);
    return SubtractMinimum(sums, dmin.v[c], a.scale, acc);
  }
};

// Q6_K
struct HalvesSide {
  static constexpr int kHalves = 2;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 288;
  Floats16 d;
  Integers16 s[2];
  static HalvesSide Load(const std::byte* side, int b) {
    return {LoadHalves(side),
            {LoadSignedBytes(side + 32 + 32 * b), LoadSignedBytes(side + 48 + 32 * b)}};
  }
  [[nodiscard]] float32x4_t Add(int c, const int32x4_t (&dots)[2], const ActivationBlock& a,
                                float32x4_t acc) const {
    const int32x4_t first = vmulq_s32(dots[0], s[0].v[c]);
    return AddScaled(vmlaq_s32(first, dots[1], s[1].v[c]), d.v[c], a.scale, acc);
  }
};

// IQ4_XS
struct ScaledBlockSide {
  static constexpr int kHalves = 1;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 160;
  Floats16 d;
  Integers16 s;
  static ScaledBlockSide Load(const std::byte* side, int b) {
    return {LoadHalves(side), LoadSignedBytes(side + 32 + 16 * b)};
  }
  [[nodiscard]] float32x4_t Add(int c, const int32x4_t (&dots)[1], const ActivationBlock& a,
                                float32x4_t acc) const {
    return AddScaled(vmulq_s32(dots[0], s.v[c]), d.v[c], a.scale, acc);
  }
};

// --- types ---

template <typename CodesOfType, typename SideOfType, int kCodeOffset>
struct PackedType {
  using Codes = CodesOfType;
  using Side = SideOfType;
  static constexpr int kOffset = kCodeOffset;  // value = what Codes gives − offset
};

using PackedQ4_0 = PackedType<Codes4, ScaledSide, 8>;
using PackedQ4_1 = PackedType<Codes4, MinimumSide, 0>;
using PackedQ5_0 = PackedType<Codes5, ScaledSide, 16>;
using PackedQ5_1 = PackedType<Codes5, MinimumSide, 0>;
using PackedQ8_0 = PackedType<Codes8, ScaledSide, 0>;
using PackedQ4K = PackedType<Codes4, ScaledMinimumSide, 0>;
using PackedQ5K = PackedType<Codes5, ScaledMinimumSide, 0>;
using PackedQ6K = PackedType<Codes6, HalvesSide, 32>;
using PackedIQ4NL = PackedType<Iq4Levels, ScaledSide, 0>;
using PackedIQ4XS = PackedType<Iq4Levels, ScaledBlockSide, 0>;
using PackedMXFP4 = PackedType<E2m1Levels, Bf16Side, 0>;

}  // namespace
}  // namespace facet
