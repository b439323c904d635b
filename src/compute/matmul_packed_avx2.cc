// SPDX-License-Identifier: Apache-2.0
// Matrix products of packed weights with AVX2. Compiled with -mavx2 -mfma -mf16c; uses no inline
// function of the library or the standard library (vector_math_avx2.h says why).
#include "compute/matmul_packed_avx2.h"

#include <immintrin.h>

namespace facet {
namespace {

// Compilers turn a chain of integer additions into a tree, all of whose terms then want a register
// at once. They do not see through this.
inline __m256i KeepChain(__m256i sum) {
  asm("" : "+x"(sum));
  return sum;
}

constexpr int Larger(int a, int b) { return a > b ? a : b; }

// Sums of 16 bits, two for an output: vpmaddubsw and vpaddw for 4 columns. They may wrap on the
// way, because the total lies within 16 bits: its start takes the offset back, and |value| · 127 ·
// 16 of a block's pairs (or 8 of a half's) is below 2^15. No single vpmaddubsw saturates: 63 · 127
// · 2. Scales multiply as the two sums become one.
template <typename Type, bool kIsByte>
struct SumsOf {
  static constexpr bool kHasStarts = Type::kOffset != 0;
  static constexpr int kMaxValue = Larger(Type::Codes::kMax - Type::kOffset, Type::kOffset);
  static constexpr int kParts = kMaxValue * 127 * 16 < (1 << 15) ? Type::kHalves : 2;
  static_assert(kMaxValue * 127 * 16 / kParts < (1 << 15));
  static_assert(Type::Codes::kMax * 127 * 2 < (1 << 15));
  using Parts = __m256i[kParts];
  using Scale = __m256i;  // twice each, in 16 bits

  static __m256i Weights(const std::byte* codes, int quad, int v) {
    return Type::Codes::Quad(codes, quad, v);
  }
  static void Starts(const MatMulTask& task, int64_t block, int32_t (&starts)[2]) {
    if constexpr (!kHasStarts) {
      return;
    }
    // Pairs, then those of the four quads in each half: one word, twice 16 bits.
    __m256i sums = _mm256_maddubs_epi16(_mm256_set1_epi8(1), Load256(task.values + kBlock * block));
    sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0x4e));
    sums = _mm256_add_epi16(sums, _mm256_shuffle_epi32(sums, 0xb1));
    __m128i first = _mm256_castsi256_si128(sums);
    const __m128i second = _mm256_extracti128_si256(sums, 1);
    const __m128i factor = _mm_set1_epi16(static_cast<int16_t>(-Type::kOffset));
    if constexpr (kParts == 1) {
      first = _mm_add_epi16(first, second);
    } else {
      starts[1] = _mm_cvtsi128_si32(_mm_mullo_epi16(second, factor));
    }
    starts[0] = _mm_cvtsi128_si32(_mm_mullo_epi16(first, factor));
  }
  static __m256i Add(__m256i w, __m256i a, __m256i sum) {
    return KeepChain(_mm256_add_epi16(sum, _mm256_maddubs_epi16(w, a)));
  }
  static Scale LoadScale(const std::byte* scales) {
    const __m128i bytes = Load64(scales);
    return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(bytes, bytes));
  }
  template <int kScales>
  static __m256 Scaled(const Parts& sums, const Scale (&s)[kScales]) {
    __m256i total = _mm256_madd_epi16(sums[0], s[0]);
    for (int part = 1; part < kParts; ++part) {
      total = _mm256_add_epi32(total, _mm256_madd_epi16(sums[part], s[part * kScales / kParts]));
    }
    return _mm256_cvtepi32_ps(total);
  }
  static __m256 Total(const Parts& sums) {
    const Scale ones[1] = {_mm256_set1_epi16(1)};
    return Scaled(sums, ones);
  }
};

// Weights of 8 bits with sign: a product of two pairs fills 16 bits (|-128| · 127 · 2), so that
// each is widened. A weight gives its sign to the activation, which has no -128.
template <typename Type>
struct SumsOf<Type, true> : DwordSums<1> {
  static_assert(Type::kOffset == 128 && Type::kHalves == 1);
  static constexpr bool kHasStarts = false;
  static void Starts(const MatMulTask&, int64_t, int32_t (&)[2]) {}
  static __m256i Weights(const std::byte* codes, int quad, int v) {
    return Type::Codes::Signed(codes, quad, v);
  }
  static __m256i Add(__m256i w, __m256i a, __m256i sum) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
    return KeepChain(_mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
  }
};

template <typename Type>
using Sums = SumsOf<Type, (Type::Codes::kMax > 127)>;

}  // namespace

const TypeKernel kPackedKernelsAvx2[kNPackedKernelsAvx2] = {
    {TensorType::kQ4_0, MatMulPacked<PackedQ4_0, Sums>},
    {TensorType::kQ4_1, MatMulPacked<PackedQ4_1, Sums>},
    {TensorType::kQ5_0, MatMulPacked<PackedQ5_0, Sums>},
    {TensorType::kQ5_1, MatMulPacked<PackedQ5_1, Sums>},
    {TensorType::kQ8_0, MatMulPacked<PackedQ8_0, Sums>},
    {TensorType::kQ4_K, MatMulPacked<PackedQ4K, Sums>},
    {TensorType::kQ5_K, MatMulPacked<PackedQ5K, Sums>},
    {TensorType::kQ6_K, MatMulPacked<PackedQ6K, Sums>},
    {TensorType::kIQ4_NL, MatMulPacked<PackedIQ4NL, Sums>},
    {TensorType::kIQ4_XS, MatMulPacked<PackedIQ4XS, Sums>},
    {TensorType::kMXFP4, MatMulPacked<PackedMXFP4, Sums>}};

}  // namespace facet
