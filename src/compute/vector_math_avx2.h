// SPDX-License-Identifier: Apache-2.0
// Eight lanes at a time: the operations of vector_math.h in the same order, and the fixed trees.
// Everything lies in an anonymous namespace, so that no other file can be linked with code compiled
// for AVX2; include it in *_avx2.cc only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "compute/vector_math.h"

namespace facet {
namespace {

inline __m256 Exp8(__m256 x) {
  // min and max return their second operand when one is a NaN.
  x = _mm256_min_ps(_mm256_set1_ps(math::kExpMax), x);
  x = _mm256_max_ps(_mm256_set1_ps(math::kExpMin), x);
  const __m256 round = _mm256_set1_ps(math::kRound);
  const __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(math::kLog2E), round);
  const __m256 n = _mm256_sub_ps(shifted, round);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-math::kLn2High), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-math::kLn2Low), r);
  __m256 p = _mm256_set1_ps(math::kExpPoly[0]);
  for (int i = 1; i < 5; ++i) {
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(math::kExpPoly[i]));
  }
  const __m256 tail = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
  const __m256 y = _mm256_add_ps(_mm256_set1_ps(1.0f), tail);
  const __m256i exponent =
      _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(round));
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(exponent, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(y, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

inline __m256 Tanh8(__m256 x) {
  const __m256 sign_bit = _mm256_set1_ps(-0.0f);
  const __m256 a = _mm256_andnot_ps(sign_bit, x);
  const __m256 u = _mm256_mul_ps(a, a);
  __m256 p = _mm256_set1_ps(math::kTanhPoly[0]);
  for (int i = 1; i < 6; ++i) {
    p = _mm256_fmadd_ps(p, u, _mm256_set1_ps(math::kTanhPoly[i]));
  }
  const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(u, p), a, a);
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 e = _mm256_add_ps(Exp8(_mm256_add_ps(a, a)), one);
  const __m256 large = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), e));
  const __m256 is_small = _mm256_cmp_ps(a, _mm256_set1_ps(math::kTanhLimit), _CMP_LT_OQ);
  const __m256 y = _mm256_blendv_ps(large, small, is_small);
  return _mm256_or_ps(_mm256_andnot_ps(sign_bit, y), _mm256_and_ps(sign_bit, x));
}

inline __m256 GeluTanh8(__m256 z) {
  const __m256 cubic = _mm256_fmadd_ps(_mm256_mul_ps(z, z), _mm256_set1_ps(math::kGeluCubic),
                                       _mm256_set1_ps(math::kGeluLinear));
  const __m256 t = Tanh8(_mm256_mul_ps(z, cubic));
  return _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), z),
                       _mm256_add_ps(_mm256_set1_ps(1.0f), t));
}

// The end of every tree: lane i += lane i + 4, + 2, + 1.
inline float Tree8(__m256 lanes) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

// The largest of eight; no lane is a NaN.
inline float Max8(__m256 lanes) {
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}

// All bits set in the first `n` lanes; n may be above 8 or below 0.
inline __m256i FirstLanes(int64_t n) {
  const int limit = n > 8 ? 8 : static_cast<int>(n);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(limit), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace
}  // namespace facet
