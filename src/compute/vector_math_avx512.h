// SPDX-License-Identifier: Apache-2.0
// Sixteen lanes at a time: the operations of vector_math.h in the same order, and the fixed trees.
// Everything lies in an anonymous namespace (vector_math_avx2.h says why); include it in
// *_avx512.cc and *_amx.cc only.
#pragma once

#include <immintrin.h>

#include "compute/vector_math.h"

namespace facet {
namespace {

inline __m512 Exp16(__m512 x) {
  // min and max return their second operand when one is a NaN.
  x = _mm512_min_ps(_mm512_set1_ps(math::kExpMax), x);
  x = _mm512_max_ps(_mm512_set1_ps(math::kExpMin), x);
  const __m512 round = _mm512_set1_ps(math::kRound);
  const __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(math::kLog2E), round);
  const __m512 n = _mm512_sub_ps(shifted, round);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-math::kLn2High), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-math::kLn2Low), r);
  __m512 p = _mm512_set1_ps(math::kExpPoly[0]);
  for (int i = 1; i < 5; ++i) {
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(math::kExpPoly[i]));
  }
  const __m512 tail = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
  const __m512 y = _mm512_add_ps(_mm512_set1_ps(1.0f), tail);
  const __m512i exponent =
      _mm512_sub_epi32(_mm512_castps_si512(shifted), _mm512_castps_si512(round));
  const __m512i half = _mm512_srai_epi32(exponent, 1);
  const __m512i bias = _mm512_set1_epi32(127);
  const __m512i first = _mm512_slli_epi32(_mm512_add_epi32(half, bias), 23);
  const __m512i second =
      _mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(exponent, half), bias), 23);
  return _mm512_mul_ps(_mm512_mul_ps(y, _mm512_castsi512_ps(first)), _mm512_castsi512_ps(second));
}

// The end of every tree: lane i += lane i + 8, + 4, + 2, + 1.
inline float Tree16(__m512 lanes) {
  const __m256 halves =
      _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

// The largest of sixteen; no lane is a NaN.
inline float Max16(__m512 lanes) {
  const __m256 halves =
      _mm256_max_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  __m128 most = _mm_max_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  return _mm_cvtss_f32(_mm_max_ss(most, _mm_movehdup_ps(most)));
}

}  // namespace
}  // namespace facet
