// SPDX-License-Identifier: Apache-2.0
// How the kernels with 256-bit registers read packed weights (packed_weights.h): the codes of 4
// columns of 8 rows as a vector of bytes without sign, and what a block adds to the chains of its 8
// outputs. Two such vectors make a group of 16 rows; `v` numbers them.
//
// What differs between AVX2 and AVX-VNNI is how products are summed in integers: a class `Sums`
// that each set defines for each type (matmul_packed_avx2.h says what it has). Everything lies in
// an anonymous namespace (vector_math_avx2.h says why); include it in matmul_packed_*.cc only.
#pragma once

#include <immintrin.h>

#include "compute/kernels_avx2.h"

namespace facet {
namespace {

inline constexpr int kRows = 16;    // weight rows of a group
inline constexpr int kVectors = 2;  // of 8 rows each
inline constexpr int kBlock = 32;   // columns that share an activation scale
inline constexpr int kQuads = 8;    // groups of 4 columns in a block

inline __m256i Load256(const void* data) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(data));
}
inline __m128i Load128(const void* data) {
  return _mm_loadu_si128(static_cast<const __m128i*>(data));
}
inline __m128i Load64(const void* data) {
  return _mm_loadl_epi64(static_cast<const __m128i*>(data));
}
inline __m256 LoadHalves(const std::byte* data) { return _mm256_cvtph_ps(Load128(data)); }

// --- codes ---

// Codes are at most kMax. Quad takes those of a block's columns 4 quad .. 4 quad + 3. To unpack
// them anew costs less than a panel for up to kDirectTiles tiles of activations (measured).
struct Codes4 {
  static constexpr int kBytes = 256;
  static constexpr int kMax = 15;
  static constexpr int kDirectTiles = 4;
  static __m256i Quad(const std::byte* codes, int quad, int v) {
    const __m256i pair = Load256(codes + 64 * (quad % 4) + 32 * v);
    return _mm256_and_si256(quad < 4 ? pair : _mm256_srli_epi16(pair, 4), _mm256_set1_epi8(15));
  }
};

struct Codes5 {
  static constexpr int kBytes = 320;
  static constexpr int kMax = 31;
  static constexpr int kDirectTiles = 1;
  static __m256i Quad(const std::byte* codes, int quad, int v) {
    const __m256i plane = Load256(codes + 256 + 32 * v);
    const __m256i moved =
        quad < 4 ? _mm256_slli_epi16(plane, 4 - quad) : _mm256_srli_epi16(plane, quad - 4);
    return _mm256_or_si256(Codes4::Quad(codes, quad, v),
                           _mm256_and_si256(moved, _mm256_set1_epi8(16)));
  }
};

struct Codes6 {
  static constexpr int kBytes = 384;
  static constexpr int kMax = 63;
  static constexpr int kDirectTiles = 1;
  static __m256i Quad(const std::byte* codes, int quad, int v) {
    const __m256i plane = Load256(codes + 256 + 64 * (quad / 4) + 32 * v);
    const int at = 2 * (quad % 4);
    const __m256i moved =
        at < 4 ? _mm256_slli_epi16(plane, 4 - at) : _mm256_srli_epi16(plane, at - 4);
    return _mm256_or_si256(Codes4::Quad(codes, quad, v),
                           _mm256_and_si256(moved, _mm256_set1_epi8(48)));
  }
};

// Of these, which take 8 bits, Signed gives the values.
struct Codes8 {
  static constexpr int kBytes = 512;
  static constexpr int kMax = 255;
  static constexpr int kDirectTiles = 99;
  static __m256i Quad(const std::byte* codes, int quad, int v) {
    return Load256(codes + 64 * quad + 32 * v);
  }
  static __m256i Signed(const std::byte* codes, int quad, int v) {
    return _mm256_xor_si256(Quad(codes, quad, v), _mm256_set1_epi8(-128));
  }
};

// The bytes of `levels` that 4-bit codes number.
inline __m256i LookUp(__m128i levels, const std::byte* codes, int quad, int v) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), Codes4::Quad(codes, quad, v));
}

// Levels raised by 128; the next raised by 12.
struct Iq4Levels {
  static constexpr int kBytes = 256;
  static constexpr int kMax = 241;
  static constexpr int kDirectTiles = 1;
  static __m128i Levels() {
    return _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
  }
  static __m256i Quad(const std::byte* codes, int quad, int v) {
    return LookUp(_mm_xor_si128(Levels(), _mm_set1_epi8(-128)), codes, quad, v);
  }
  static __m256i Signed(const std::byte* codes, int quad, int v) {
    return LookUp(Levels(), codes, quad, v);
  }
};

struct E2m1Levels {
  static constexpr int kBytes = 256;
  static constexpr int kMax = 24;
  static constexpr int kDirectTiles = 2;
  static __m256i Quad(const std::byte* codes, int quad, int v) {
    const __m128i levels = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return LookUp(levels, codes, quad, v);
  }
};

// --- sides ---

// One block of one activation row, as the chain needs it: `sum` of its values for minima.
struct ActivationScale {
  __m256 scale;
  __m256 sum;
};

// acc + dots · (d · scale)
inline __m256 AddScaled(__m256 dots, __m256 d, const ActivationScale& a, __m256 acc) {
  return _mm256_fmadd_ps(dots, _mm256_mul_ps(d, a.scale), acc);
}

// acc − sum · (dmin · scale)
inline __m256 SubtractMinimum(__m256 sum, __m256 dmin, const ActivationScale& a, __m256 acc) {
  return _mm256_fnmadd_ps(sum, _mm256_mul_ps(dmin, a.scale), acc);
}

// Sides in the form that the chains read. kBytes is their size in packed weights, for kBlocks
// blocks; Load takes block b of them.
template <typename Sums>
struct ScaledSide {
  static constexpr int kBlocks = 1;
  static constexpr int kBytes = 32;
  __m256 d;
  static ScaledSide Load(const std::byte* side, int, int v) { return {LoadHalves(side + 16 * v)}; }
  [[nodiscard]] __m256 Add(const typename Sums::Parts& sums, const ActivationScale& a,
                           __m256 acc) const {
    return AddScaled(Sums::Total(sums), d, a, acc);
  }
};

template <typename Sums>
struct Bf16Side : ScaledSide<Sums> {
  static Bf16Side Load(const std::byte* side, int, int v) {
    const __m256i words = _mm256_cvtepu16_epi32(Load128(side + 16 * v));
    return {{_mm256_castsi256_ps(_mm256_slli_epi32(words, 16))}};
  }
};

template <typename Sums>
struct MinimumSide {
  static constexpr int kBlocks = 1;
  static constexpr int kBytes = 64;
  __m256 d;
  __m256 dmin;
  static MinimumSide Load(const std::byte* side, int, int v) {
    return {LoadHalves(side + 16 * v), LoadHalves(side + 32 + 16 * v)};
  }
  [[nodiscard]] __m256 Add(const typename Sums::Parts& sums, const ActivationScale& a,
                           __m256 acc) const {
    acc = AddScaled(Sums::Total(sums), d, a, acc);
    return SubtractMinimum(a.sum, dmin, a, acc);
  }
};

// Q4_K and Q5_K
template <typename Sums>
struct ScaledMinimumSide {
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 320;
  __m256 d;
  __m256 dmin;
  typename Sums::Scale s[1];
  __m256 m;
  static ScaledMinimumSide Load(const std::byte* side, int b, int v) {
    const __m256i m = _mm256_cvtepu8_epi32(Load64(side + 192 + 16 * b + 8 * v));
    return {LoadHalves(side + 16 * v),
            LoadHalves(side + 32 + 16 * v),
            {Sums::LoadScale(side + 64 + 16 * b + 8 * v)},
            _mm256_cvtepi32_ps(m)};
  }
  [[nodiscard]] __m256 Add(const typename Sums::Parts& sums, const ActivationScale& a,
                           __m256 acc) const {
    acc = AddScaled(Sums::Scaled(sums, s), d, a, acc);
    return SubtractMinimum(_mm256_mul_ps(m, a.sum), dmin, a, acc);
  }
};

// Q6_K
template <typename Sums>
struct HalvesSide {
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 288;
  __m256 d;
  typename Sums::Scale s[2];
  static HalvesSide Load(const std::byte* side, int b, int v) {
    return {
        LoadHalves(side + 16 * v),
        {Sums::LoadScale(side + 32 + 32 * b + 8 * v), Sums::LoadScale(side + 48 + 32 * b + 8 * v)}};
  }
  [[nodiscard]] __m256 Add(const typename Sums::Parts& sums, const ActivationScale& a,
                           __m256 acc) const {
    return AddScaled(Sums::Scaled(sums, s), d, a, acc);
  }
};

// IQ4_XS
template <typename Sums>
struct ScaledBlockSide {
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 160;
  __m256 d;
  typename Sums::Scale s[1];
  static ScaledBlockSide Load(const std::byte* side, int b, int v) {
    return {LoadHalves(side + 16 * v), {Sums::LoadScale(side + 32 + 16 * b + 8 * v)}};
  }
  [[nodiscard]] __m256 Add(const typename Sums::Parts& sums, const ActivationScale& a,
                           __m256 acc) const {
    return AddScaled(Sums::Scaled(sums, s), d, a, acc);
  }
};

// --- types ---

template <typename CodesOfType, template <typename> typename SideOfType, int kCodeOffset,
          int kScaledHalves = 1>
struct PackedType {
  using Codes = CodesOfType;
  template <typename Sums>
  using Side = SideOfType<Sums>;
  static constexpr int kOffset = kCodeOffset;    // value = code − offset
  static constexpr int kHalves = kScaledHalves;  // 2 where the halves of a block have own scales
};

using PackedQ4_0 = PackedType<Codes4, ScaledSide, 8>;
using PackedQ4_1 = PackedType<Codes4, MinimumSide, 0>;
using PackedQ5_0 = PackedType<Codes5, ScaledSide, 16>;
using PackedQ5_1 = PackedType<Codes5, MinimumSide, 0>;
using PackedQ8_0 = PackedType<Codes8, ScaledSide, 128>;
using PackedQ4K = PackedType<Codes4, ScaledMinimumSide, 0>;
using PackedQ5K = PackedType<Codes5, ScaledMinimumSide, 0>;
using PackedQ6K = PackedType<Codes6, HalvesSide, 32, 2>;
using PackedIQ4NL = PackedType<Iq4Levels, ScaledSide, 128>;
using PackedIQ4XS = PackedType<Iq4Levels, ScaledBlockSide, 128>;
using PackedMXFP4 = PackedType<E2m1Levels, Bf16Side, 12>;

}  // namespace
}  // namespace facet
