// SPDX-License-Identifier: Apache-2.0
// How the AVX-512 kernels read packed weights (packed_weights.h): the codes of 4 columns of 16 rows
// as one vector of bytes without sign, and what a block adds to the chains of its 16 outputs.
//
// vpdpbusd multiplies bytes without sign by signed ones, hence codes stay as they are, levels are
// raised to be positive, and what a code has too much is taken back by what the integer sums start
// with. Scales of blocks multiply in float, which is as exact: |s · (code − offset) · a| summed
// over a block stays below 2^24 in every type (Q6_K: 2 · 128 · 16 · 32 · 127). Everything lies in
// an anonymous namespace (vector_math_avx2.h says why); include it in *_avx512.cc and *_amx.cc
// only.
#pragma once

#include <immintrin.h>

#include "compute/kernels.h"

namespace facet {
namespace {

inline constexpr int kRows = 16;   // weight rows of a group
inline constexpr int kBlock = 32;  // columns that share an activation scale
inline constexpr int kQuads = 8;   // groups of 4 columns in a block

inline __m512i Load512(const void* data) { return _mm512_loadu_si512(data); }
inline __m128i Load128(const void* data) {
  return _mm_loadu_si128(static_cast<const __m128i*>(data));
}
inline __m512 LoadHalves(const std::byte* data) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(data)));
}
inline __m512 FloatsOfBytes(const std::byte* data) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(Load128(data)));
}

inline __m512i Broadcast32(const void* data) {
  int word;
  __builtin_memcpy(&word, data, sizeof(word));
  return _mm512_set1_epi32(word);
}

// --- codes ---

// Words shifted to the left, or by a negative count to the right.
inline __m512i MoveLeft(__m512i words, int count) {
  return count > 0 ? _mm512_slli_epi16(words, static_cast<unsigned>(count))
                   : _mm512_srli_epi16(words, static_cast<unsigned>(-count));
}

struct Codes4 {
  static constexpr int kBytes = 256;
  static __m512i Quad(const std::byte* codes, int quad) {
    const __m512i pair = Load512(codes + 64 * (quad % 4));
    return _mm512_and_si512(quad < 4 ? pair : _mm512_srli_epi16(pair, 4), _mm512_set1_epi8(15));
  }
};

struct Codes5 {
  static constexpr int kBytes = 320;
  static __m512i Quad(const std::byte* codes, int quad) {
    const __m512i plane = Load512(codes + 256);
    const __m512i moved = MoveLeft(plane, 4 - quad);
    return _mm512_or_si512(Codes4::Quad(codes, quad),
                           _mm512_and_si512(moved, _mm512_set1_epi8(16)));
  }
};

struct Codes6 {
  static constexpr int kBytes = 384;
  static __m512i Quad(const std::byte* codes, int quad) {
    const __m512i plane = Load512(codes + 256 + 64 * (quad / 4));
    const int at = 2 * (quad % 4);
    const __m512i moved = MoveLeft(plane, 4 - at);
    return _mm512_or_si512(Codes4::Quad(codes, quad),
                           _mm512_and_si512(moved, _mm512_set1_epi8(48)));
  }
};

struct Codes8 {
  static constexpr int kBytes = 512;
  static __m512i Quad(const std::byte* codes, int quad) { return Load512(codes + 64 * quad); }
};

// Levels raised by 128; the next raised by 12.
struct Iq4Levels {
  static constexpr int kBytes = 256;
  static __m512i Quad(const std::byte* codes, int quad) {
    const __m128i levels = _mm_setr_epi8(
        1, 24, 45, 63, 79, 93, 106, 118, static_cast<char>(129), static_cast<char>(141),
        static_cast<char>(153), static_cast<char>(166), static_cast<char>(181),
        static_cast<char>(197), static_cast<char>(217), static_cast<char>(241));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(levels), Codes4::Quad(codes, quad));
  }
};

struct E2m1Levels {
  static constexpr int kBytes = 256;
  static __m512i Quad(const std::byte* codes, int quad) {
    const __m128i levels = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(levels), Codes4::Quad(codes, quad));
  }
};

// --- sides ---

// One block of one activation row, as the chain needs it: `sum` of its values for minima.
struct ActivationScale {
  float scale;
  float sum;
};

// acc + dots · (d · scale)
inline __m512 AddScaled(__m512 dots, __m512 d, float scale, __m512 acc) {
  return _mm512_fmadd_ps(dots, _mm512_mul_ps(d, _mm512_set1_ps(scale)), acc);
}

// acc − sum · (dmin · scale)
inline __m512 SubtractMinimum(__m512 sum, __m512 dmin, float scale, __m512 acc) {
  return _mm512_fnmadd_ps(sum, _mm512_mul_ps(dmin, _mm512_set1_ps(scale)), acc);
}

// Sides in the form that the chains read. kBytes is their size in packed weights, for kBlocks
// blocks; `dots` holds the block's sum, or those of its halves, without offset.
struct ScaledSide {
  static constexpr int kHalves = 1;
  static constexpr int kBlocks = 1;
  static constexpr int kBytes = 32;
  __m512 d;
  static ScaledSide Load(const std::byte* side, int) { return {LoadHalves(side)}; }
  [[nodiscard]] __m512 Add(const __m512i (&dots)[1], const ActivationScale& a, __m512 acc) const {
    return AddScaled(_mm512_cvtepi32_ps(dots[0]), d, a.scale, acc);
  }
};

struct Bf16Side : ScaledSide {
  static Bf16Side Load(const std::byte* side, int) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(side));
    return {{_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))}};
  }
};

struct MinimumSide {
  static constexpr int kHalves = 1;
  static constexpr int kBlocks = 1;
  static constexpr int kBytes = 64;
  __m512 d;
  __m512 dmin;
  static MinimumSide Load(const std::byte* side, int) {
    return {LoadHalves(side), LoadHalves(side + 32)};
  }
  [[nodiscard]] __m512 Add(const __m512i (&dots)[1], const ActivationScale& a, __m512 acc) const {
    acc = AddScaled(_mm512_cvtepi32_ps(dots[0]), d, a.scale, acc);
    return SubtractMinimum(_mm512_set1_ps(a.sum), dmin, a.scale, acc);
  }
};

// Q4_K and Q5_K
struct ScaledMinimumSide {
  static constexpr int kHalves = 1;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 320;
  __m512 d;
  __m512 dmin;
  __m512 s;
  __m512 m;
  static ScaledMinimumSide Load(const std::byte* side, int b) {
    return {LoadHalves(side), LoadHalves(side + 32), FloatsOfBytes(side + 64 + 16 * b),
            FloatsOfBytes(side + 192 + 16 * b)};
  }
  [[nodiscard]] __m512 Add(const __m512i (&dots)[1], const ActivationScale& a, __m512 acc) const {
    acc = AddScaled(_mm512_mul_ps(_mm512_cvtepi32_ps(dots[0]), s), d, a.scale, acc);
    return SubtractMinimum(_mm512_mul_ps(m, _mm512_set1_ps(a.sum)), dmin, a.scale, acc);
  }
};

// Q6_K
struct HalvesSide {
  static constexpr int kHalves = 2;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 288;
  __m512 d;
  __m512 s[2];
  static HalvesSide Load(const std::byte* side, int b) {
    return {LoadHalves(side),
            {FloatsOfBytes(side + 32 + 32 * b), FloatsOfBytes(side + 48 + 32 * b)}};
  }
  [[nodiscard]] __m512 Add(const __m512i (&dots)[2], const ActivationScale& a, __m512 acc) const {
    const __m512 first = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[0]), s[0]);
    return AddScaled(_mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[1]), s[1], first), d, a.scale, acc);
  }
};

// IQ4_XS
struct ScaledBlockSide {
  static constexpr int kHalves = 1;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 160;
  __m512 d;
  __m512 s;
  static ScaledBlockSide Load(const std::byte* side, int b) {
    return {LoadHalves(side), FloatsOfBytes(side + 32 + 16 * b)};
  }
  [[nodiscard]] __m512 Add(const __m512i (&dots)[1], const ActivationScale& a, __m512 acc) const {
    return AddScaled(_mm512_mul_ps(_mm512_cvtepi32_ps(dots[0]), s), d, a.scale, acc);
  }
};

// --- types ---

template <typename CodesOfType, typename SideOfType, int kCodeOffset>
struct PackedType {
  using Codes = CodesOfType;
  using Side = SideOfType;
  static constexpr int kOffset = kCodeOffset;  // value = code − offset
};

using PackedQ4_0 = PackedType<Codes4, ScaledSide, 8>;
using PackedQ4_1 = PackedType<Codes4, MinimumSide, 0>;
using PackedQ5_0 = PackedType<Codes5, ScaledSide, 16>;
using PackedQ5_1 = PackedType<Codes5, MinimumSide, 0>;
using PackedQ8_0 = PackedType<Codes8, ScaledSide, 128>;
using PackedQ4K = PackedType<Codes4, ScaledMinimumSide, 0>;
using PackedQ5K = PackedType<Codes5, ScaledMinimumSide, 0>;
using PackedQ6K = PackedType<Codes6, HalvesSide, 32>;
using PackedIQ4NL = PackedType<Iq4Levels, ScaledSide, 128>;
using PackedIQ4XS = PackedType<Iq4Levels, ScaledBlockSide, 128>;
using PackedMXFP4 = PackedType<E2m1Levels, Bf16Side, 12>;

}  // namespace
}  // namespace facet
