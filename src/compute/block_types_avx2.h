// SPDX-License-Identifier: Apache-2.0
// The block types with AVX2 kernels of their own: those that Facet writes. What the bytes mean
// stands in docs/quantization.md; the scalar kernels, which go through the codecs, are the
// definition. Internal to matmul_avx2.cc.
//
// Each type has kWidth, kBlocks (runs of 32 values in a file block) and kBytes (of a file block);
// Side, what a file block of eight rows has beside its values; LoadSide; Values, the 32 values of
// run j as bytes (signed for kByte, else without their offset); and Add, a step of the chain.
#pragma once

#include "compute/matmul_avx2.h"

namespace facet {
namespace {

inline int LoadDword(const std::byte* data) {
  int value;
  __builtin_memcpy(&value, data, sizeof(value));
  return value;
}

inline short LoadWord(const std::byte* data) {
  short value;
  __builtin_memcpy(&value, data, sizeof(value));
  return value;
}

// The rows of a group, each at the same block. Beyond the last row of a product the last one is
// repeated.
struct Group {
  const std::byte* rows[kRows];

  [[nodiscard]] Group At(int64_t offset) const {
    Group moved;
    for (int i = 0; i < kRows; ++i) {
      moved.rows[i] = rows[i] + offset;
    }
    return moved;
  }
  // The float16 at `offset` of each row.
  [[nodiscard]] __m256 Halves(int offset) const {
    return _mm256_cvtph_ps(_mm_setr_epi16(LoadWord(rows[0] + offset), LoadWord(rows[1] + offset),
                                          LoadWord(rows[2] + offset), LoadWord(rows[3] + offset),
                                          LoadWord(rows[4] + offset), LoadWord(rows[5] + offset),
                                          LoadWord(rows[6] + offset), LoadWord(rows[7] + offset)));
  }
  [[nodiscard]] __m256i Dwords(int offset) const {
    return _mm256_setr_epi32(LoadDword(rows[0] + offset), LoadDword(rows[1] + offset),
                             LoadDword(rows[2] + offset), LoadDword(rows[3] + offset),
                             LoadDword(rows[4] + offset), LoadDword(rows[5] + offset),
                             LoadDword(rows[6] + offset), LoadDword(rows[7] + offset));
  }
};

// --- pieces of values ---

// 16 bytes: value k in the low nibble of byte k, value k + 16 in the high one.
inline __m256i Nibbles(const std::byte* packed) {
  const auto* bytes = reinterpret_cast<const __m128i*>(packed);
  const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes));
  const __m256i shifted = _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
  return _mm256_and_si256(shifted, _mm256_set1_epi8(15));
}

// Bits [shift, shift + width) of 32 bytes.
inline __m256i BitsOf(const std::byte* packed, int shift, int width) {
  const __m256i shifted = _mm256_srl_epi16(Load256(packed), _mm_cvtsi32_si128(shift));
  return _mm256_and_si256(shifted, _mm256_set1_epi8(static_cast<char>((1 << width) - 1)));
}

// 16 in byte k where bit k of the four bytes is set.
inline __m256i FifthBits(const std::byte* packed) {
  const __m256i bits = _mm256_set1_epi32(LoadDword(packed));
  const __m256i spread = _mm256_shuffle_epi8(
      bits, _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const __m256i one_each = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, one_each), one_each);
  return _mm256_and_si256(is_set, _mm256_set1_epi8(16));
}

// The bytes of `levels` that the nibbles number.
inline __m256i LookUp(__m128i levels, __m256i nibbles) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), nibbles);
}

inline __m128i Iq4Levels() {
  return _mm_setr_epi8(-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113);
}

inline __m128i E2m1Levels() {
  return _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
}

// --- 32 values with one scale ---

struct Scaled32 {
  static constexpr Width kWidth = Width::kByte;
  static constexpr int kBlocks = 1;
  struct Side {
    float d[kRows];
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(0));
  }
  static __m256 Add(const Dots& dots, const Side& side, int, const ActivationBlock& a, __m256 acc) {
    return AddScaled(dots.first, _mm256_loadu_ps(side.d), a.scale, acc);
  }
};

struct Q8_0 : Scaled32 {
  static constexpr int kBytes = 34;
  static __m256i Values(const std::byte* block, int) { return Load256(block + 2); }
};

struct Q5_0 : Scaled32 {
  static constexpr int kBytes = 22;
  static __m256i Values(const std::byte* block, int) {
    const __m256i five = _mm256_or_si256(Nibbles(block + 6), FifthBits(block + 2));
    return _mm256_sub_epi8(five, _mm256_set1_epi8(16));
  }
};

struct Q4_0 : Scaled32 {
  static constexpr Width kWidth = Width::kNibble;
  static constexpr int kBytes = 18;
  static __m256i Values(const std::byte* block, int) { return Nibbles(block + 2); }
  // Σ (q − 8) a = Σ q a − 8 Σ a
  static __m256 Add(const Dots& dots, const Side& side, int, const ActivationBlock& a, __m256 acc) {
    const __m256i dot = _mm256_sub_epi32(dots.first, _mm256_set1_epi32(8 * a.sum));
    return AddScaled(dot, _mm256_loadu_ps(side.d), a.scale, acc);
  }
};

struct IQ4NL : Scaled32 {
  static constexpr int kBytes = 18;
  static __m256i Values(const std::byte* block, int) {
    return LookUp(Iq4Levels(), Nibbles(block + 2));
  }
};

struct MXFP4 : Scaled32 {
  static constexpr int kBytes = 17;
  // 2^(e − 128); below e = 2 subnormal, where a shift does what the exponent cannot.
  static void LoadSide(const Group& group, Side* side) {
    const __m256i e = _mm256_and_si256(group.Dwords(0), _mm256_set1_epi32(0xff));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    Store256(side->d, _mm256_blendv_epi8(normal, small, is_small));
  }
  static __m256i Values(const std::byte* block, int) {
    return LookUp(E2m1Levels(), Nibbles(block + 1));
  }
};

// --- 32 values with a scale and an offset ---

struct Offset32 {
  static constexpr int kBlocks = 1;
  struct Side {
    float d[kRows];
    float offset[kRows];
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(0));
    _mm256_storeu_ps(side->offset, group.Halves(2));
  }
  static __m256 Add(const Dots& dots, const Side& side, int, const ActivationBlock& a, __m256 acc) {
    acc = AddScaled(dots.first, _mm256_loadu_ps(side.d), a.scale, acc);
    return AddScaled(_mm256_set1_epi32(a.sum), _mm256_loadu_ps(side.offset), a.scale, acc);
  }
};

struct Q4_1 : Offset32 {
  static constexpr Width kWidth = Width::kNibble;
  static constexpr int kBytes = 20;
  static __m256i Values(const std::byte* block, int) { return Nibbles(block + 4); }
};

struct Q5_1 : Offset32 {
  static constexpr Width kWidth = Width::kByte;
  static constexpr int kBytes = 24;
  static __m256i Values(const std::byte* block, int) {
    return _mm256_or_si256(Nibbles(block + 8), FifthBits(block + 4));
  }
};

// --- 256 values ---

// acc − (sum, an exact integer) · (dmin · scale of the activations)
inline __m256 SubtractMinimum(__m256i sum, const float* dmin, float activation_scale, __m256 acc) {
  const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(dmin), _mm256_set1_ps(activation_scale));
  return _mm256_fnmadd_ps(_mm256_cvtepi32_ps(sum), scale, acc);
}

// Bits [shift, shift + width) of eight words.
inline __m256i Field(const uint32_t (&words)[kRows], int shift, int width) {
  return _mm256_and_si256(_mm256_srl_epi32(Load256(words), _mm_cvtsi32_si128(shift)),
                          _mm256_set1_epi32((1 << width) - 1));
}

inline __m256i Weighted(__m256i w0, __m256i x0, __m256i w1, __m256i x1) {
  return _mm256_add_epi32(_mm256_mullo_epi32(w0, x0), _mm256_mullo_epi32(w1, x1));
}

// Half sums of an activation block times `factor`.
inline __m256i HalfSum(const ActivationBlock& a, int half, int factor) {
  return _mm256_set1_epi32(factor * a.half_sums[half]);
}

// Q4_K and Q5_K: d, dmin and eight 6-bit scales and minima.
struct ScalesAndMinima {
  static constexpr int kBlocks = 8;
  static constexpr int kScales = 4;
  struct Side {
    float d[kRows];
    float dmin[kRows];
    uint32_t scales[2][kRows];  // four 6-bit scales of a row in the bytes of a word
    uint32_t minima[2][kRows];
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(0));
    _mm256_storeu_ps(side->dmin, group.Halves(2));
    const __m256i a = group.Dwords(kScales);
    const __m256i b = group.Dwords(kScales + 4);
    const __m256i c = group.Dwords(kScales + 8);
    const __m256i six = _mm256_set1_epi8(0x3f);
    const __m256i four = _mm256_set1_epi8(0x0f);
    const __m256i two = _mm256_set1_epi8(0x30);
    const __m256i c_high = _mm256_and_si256(_mm256_srli_epi32(c, 4), four);
    Store256(side->scales[0], _mm256_and_si256(a, six));
    Store256(side->minima[0], _mm256_and_si256(b, six));
    Store256(side->scales[1], _mm256_or_si256(_mm256_and_si256(c, four),
                                              _mm256_and_si256(_mm256_srli_epi32(a, 2), two)));
    Store256(side->minima[1],
             _mm256_or_si256(c_high, _mm256_and_si256(_mm256_srli_epi32(b, 2), two)));
  }
  static __m256 Add(const Dots& dots, const Side& side, int j, const ActivationBlock& a,
                    __m256 acc) {
    const __m256i s = Field(side.scales[j / 4], 8 * (j % 4), 8);
    const __m256i m = Field(side.minima[j / 4], 8 * (j % 4), 8);
    acc = AddScaled(_mm256_mullo_epi32(dots.first, s), _mm256_loadu_ps(side.d), a.scale, acc);
    return SubtractMinimum(_mm256_mullo_epi32(m, _mm256_set1_epi32(a.sum)), side.dmin, a.scale,
                           acc);
  }
};

struct Q4K : ScalesAndMinima {
  static constexpr Width kWidth = Width::kNibble;
  static constexpr int kBytes = 144;
  static __m256i Values(const std::byte* block, int j) {
    return BitsOf(block + 16 + 32 * (j / 2), 4 * (j % 2), 4);
  }
};

struct Q5K : ScalesAndMinima {
  static constexpr Width kWidth = Width::kByte;
  static constexpr int kBytes = 176;
  static __m256i Values(const std::byte* block, int j) {
    const __m256i nibbles = BitsOf(block + 48 + 32 * (j / 2), 4 * (j % 2), 4);
    return _mm256_or_si256(nibbles, _mm256_slli_epi16(BitsOf(block + 16, j, 1), 4));
  }
};

struct Q2K {
  static constexpr Width kWidth = Width::kHalf;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 84;
  struct Side {
    float d[kRows];
    float dmin[kRows];
    uint32_t scales[4][kRows];  // four bytes of a row, each a scale (low) and a minimum (high)
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(80));
    _mm256_storeu_ps(side->dmin, group.Halves(82));
    for (int i = 0; i < 4; ++i) {
      Store256(side->scales[i], group.Dwords(4 * i));
    }
  }
  static __m256i Values(const std::byte* block, int j) {
    return BitsOf(block + 16 + 32 * (j / 4), 2 * (j % 4), 2);
  }
  static __m256 Add(const Dots& dots, const Side& side, int j, const ActivationBlock& a,
                    __m256 acc) {
    const uint32_t(&scales)[kRows] = side.scales[j / 2];
    const int at = j % 2 * 16;
    const __m256i dot =
        Weighted(Field(scales, at, 4), dots.first, Field(scales, at + 8, 4), dots.second);
    const __m256i sum = Weighted(Field(scales, at + 4, 4), HalfSum(a, 0, 1),
                                 Field(scales, at + 12, 4), HalfSum(a, 1, 1));
    acc = AddScaled(dot, _mm256_loadu_ps(side.d), a.scale, acc);
    return SubtractMinimum(sum, side.dmin, a.scale, acc);
  }
};

struct Q3K {
  static constexpr Width kWidth = Width::kHalf;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 110;
  struct Side {
    float d[kRows];
    uint32_t scales[4][kRows];  // four 6-bit scales of a row in the bytes of a word
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(108));
    const __m256i low[2] = {group.Dwords(96), group.Dwords(100)};
    const __m256i high = group.Dwords(104);
    for (int i = 0; i < 4; ++i) {
      const __m256i nibbles = _mm256_and_si256(
          _mm256_srl_epi32(low[i % 2], _mm_cvtsi32_si128(4 * (i / 2))), _mm256_set1_epi8(15));
      const __m256i pairs =
          _mm256_and_si256(_mm256_srl_epi32(high, _mm_cvtsi32_si128(2 * i)), _mm256_set1_epi8(3));
      Store256(side->scales[i], _mm256_or_si256(nibbles, _mm256_slli_epi32(pairs, 4)));
    }
  }
  static __m256i Values(const std::byte* block, int j) {
    const __m256i pairs = BitsOf(block + 32 + 32 * (j / 4), 2 * (j % 4), 2);
    return _mm256_or_si256(pairs, _mm256_slli_epi16(BitsOf(block, j, 1), 2));
  }
  // Σ (q − 4) a = Σ q a − 4 Σ a, per half
  static __m256 Add(const Dots& dots, const Side& side, int j, const ActivationBlock& a,
                    __m256 acc) {
    const int at = j % 2 * 16;
    const __m256i offset = _mm256_set1_epi32(32);
    const __m256i s0 = _mm256_sub_epi32(Field(side.scales[j / 2], at, 8), offset);
    const __m256i s1 = _mm256_sub_epi32(Field(side.scales[j / 2], at + 8, 8), offset);
    const __m256i dot = Weighted(s0, _mm256_sub_epi32(dots.first, HalfSum(a, 0, 4)), s1,
                                 _mm256_sub_epi32(dots.second, HalfSum(a, 1, 4)));
    return AddScaled(dot, _mm256_loadu_ps(side.d), a.scale, acc);
  }
};

struct Q6K {
  static constexpr Width kWidth = Width::kHalf;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 210;
  struct Side {
    float d[kRows];
    int32_t scales[4][kRows];  // four int8 scales of a row in the bytes of a word
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(208));
    for (int i = 0; i < 4; ++i) {
      Store256(side->scales[i], group.Dwords(192 + 4 * i));
    }
  }
  static __m256i Values(const std::byte* block, int j) {
    const __m256i nibbles = BitsOf(block + 64 * (j / 4) + 32 * (j % 2), j % 4 / 2 * 4, 4);
    const __m256i pairs = BitsOf(block + 128 + 32 * (j / 4), j % 4 * 2, 2);
    return _mm256_or_si256(nibbles, _mm256_slli_epi16(pairs, 4));
  }
  // Σ (q − 32) a = Σ q a − 32 Σ a, per half
  static __m256 Add(const Dots& dots, const Side& side, int j, const ActivationBlock& a,
                    __m256 acc) {
    const __m256i scales = Load256(side.scales[j / 2]);
    const int up = j % 2 * 16;
    const __m256i s0 = _mm256_srai_epi32(_mm256_sll_epi32(scales, _mm_cvtsi32_si128(24 - up)), 24);
    const __m256i s1 = _mm256_srai_epi32(_mm256_sll_epi32(scales, _mm_cvtsi32_si128(16 - up)), 24);
    const __m256i dot = Weighted(s0, _mm256_sub_epi32(dots.first, HalfSum(a, 0, 32)), s1,
                                 _mm256_sub_epi32(dots.second, HalfSum(a, 1, 32)));
    return AddScaled(dot, _mm256_loadu_ps(side.d), a.scale, acc);
  }
};

struct IQ4XS {
  static constexpr Width kWidth = Width::kByte;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = 136;
  struct Side {
    float d[kRows];
    uint32_t low[kRows];   // eight nibbles
    uint32_t high[kRows];  // d, then eight pairs
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(0));
    Store256(side->high, group.Dwords(0));
    Store256(side->low, group.Dwords(4));
  }
  static __m256i Values(const std::byte* block, int j) {
    return LookUp(Iq4Levels(), Nibbles(block + 8 + 16 * j));
  }
  static __m256 Add(const Dots& dots, const Side& side, int j, const ActivationBlock& a,
                    __m256 acc) {
    const __m256i six = _mm256_or_si256(Field(side.low, 4 * j, 4),
                                        _mm256_slli_epi32(Field(side.high, 16 + 2 * j, 2), 4));
    const __m256i s = _mm256_sub_epi32(six, _mm256_set1_epi32(32));
    return AddScaled(_mm256_mullo_epi32(dots.first, s), _mm256_loadu_ps(side.d), a.scale, acc);
  }
};

}  // namespace
}  // namespace facet
