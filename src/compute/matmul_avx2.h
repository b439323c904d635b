// SPDX-License-Identifier: Apache-2.0
// What the AVX2 kernels of matrix products share. Eight weight rows lie in the lanes of a vector,
// so that each lane runs the chain of its own output element. Dot products of a block are exact in
// integers, hence their order is free: activation rows share a panel of unpacked weights in which
// the eight rows are interleaved. Everything that is defined here lies in an anonymous namespace
// (vector_math_avx2.h says why); include it in matmul_*avx2.cc only.
#pragma once

#include <immintrin.h>

#include "compute/kernels_avx2.h"
#include "compute/vector_math_avx2.h"

namespace facet {

namespace {

inline constexpr int kRows = 8;    // weight rows of a group
inline constexpr int kBlock = 32;  // values that share an activation scale
inline constexpr int kQuads = 8;   // groups of 4 values in a block
inline constexpr int kPanelBlock = kRows * kBlock;

inline __m256i Load256(const void* data) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(data));
}

inline void Store256(void* data, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(data), value);
}

// What multiplies the integers of one block of one activation row.
struct ActivationBlock {
  float scale;
  int32_t sum;
  const int16_t* half_sums;  // two
};

// Integer dot products of a block for the eight rows; `second` is the second half's where a type
// needs them apart.
struct Dots {
  __m256i first;
  __m256i second;
};

inline __m256 AddScaled(__m256i dots, __m256 d, float activation_scale, __m256 acc) {
  const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(activation_scale));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), scale, acc);
}

// How far products of weights and activations can be added up in 16 bits: kNibble 8 pairs (15 · 127
// · 16 = 30480), kHalf 2 pairs (63 · 127 · 4 = 32004), kByte and kByteHalf 1 pair (|-128| · 127 · 2
// = 32512). Weights are signed in the last two, else without sign. The halves of a block are kept
// apart in kHalf and kByteHalf.
enum class Width { kNibble, kHalf, kByte, kByteHalf };

constexpr bool IsSigned(Width width) { return width == Width::kByte || width == Width::kByteHalf; }
constexpr bool HasHalves(Width width) { return width == Width::kHalf || width == Width::kByteHalf; }

// Products of 32 weights with 32 activations, added in pairs: 16 exact sums of 16 bits. A signed
// weight gives its sign to the activation, which has no -128.
template <Width kWidth>
inline __m256i PairSums(__m256i w, __m256i a) {
  if constexpr (IsSigned(kWidth)) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
  } else {
    return _mm256_maddubs_epi16(w, a);
  }
}

inline __m256i Widen(__m256i sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }

// Dword g of row i goes to dword i of vector g.
inline void Transpose8(__m256i (&v)[kRows]) {
  __m256i pairs[kRows];
  for (int i = 0; i < kRows; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  __m256i fours[kRows];
  for (int i = 0; i < kRows; i += 4) {
    fours[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    v[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

// Room in the scratch memory for a group of weight rows: blocks of [8 quads][8 rows][4 values],
// then what each of the type's blocks has beside its values (Type::Side).
template <typename Type>
struct Panel {
  std::byte* values;
  typename Type::Side* sides;

  explicit Panel(const MatMulTask& task) {
    values = task.scratch;
    sides = reinterpret_cast<typename Type::Side*>(values + kRows * task.n_in);
  }
};

// Stores 32 values of each of the eight rows as a block of the panel.
inline void StorePanelBlock(__m256i (&rows)[kRows], std::byte* block) {
  Transpose8(rows);
  for (int i = 0; i < kRows; ++i) {
    Store256(block + 32 * i, rows[i]);
  }
}

inline __m256i BroadcastQuad(const int8_t* values) {
  int quad;
  __builtin_memcpy(&quad, values, sizeof(quad));
  return _mm256_set1_epi32(quad);
}

// The dot products of one panel block with kN activation rows that lie `stride` apart.
template <Width kWidth, int kN>
inline void PanelDots(const std::byte* block, const int8_t* values, int64_t stride,
                      Dots (&dots)[kN]) {
  constexpr int kPairs = kWidth == Width::kNibble ? 8 : kWidth == Width::kHalf ? 2 : 1;
  for (int r = 0; r < kN; ++r) {
    dots[r] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  for (int first = 0; first < kQuads; first += kPairs) {
    __m256i sums[kN];
    for (int r = 0; r < kN; ++r) {
      sums[r] = PairSums<kWidth>(Load256(block + 32 * first),
                                 BroadcastQuad(values + r * stride + 4 * first));
    }
    for (int quad = first + 1; quad < first + kPairs; ++quad) {
      const __m256i w = Load256(block + 32 * quad);
      for (int r = 0; r < kN; ++r) {
        const __m256i a = BroadcastQuad(values + r * stride + 4 * quad);
        sums[r] = _mm256_add_epi16(sums[r], PairSums<kWidth>(w, a));
      }
    }
    for (int r = 0; r < kN; ++r) {
      __m256i& total = HasHalves(kWidth) && first >= kQuads / 2 ? dots[r].second : dots[r].first;
      total = _mm256_add_epi32(total, Widen(sums[r]));
    }
  }
}

// Stores the lanes of outputs [out, end) of one row.
inline void StoreOutputs(const MatMulTask& task, int64_t row, int64_t out, int64_t end,
                         __m256 acc) {
  float* y = task.y + row * task.n_out + out;
  if (end - out >= kRows) {
    _mm256_storeu_ps(y, acc);
  } else {
    _mm256_maskstore_ps(y, FirstLanes(end - out), acc);
  }
}

template <typename Type, int kN>
inline void MultiplyPanel(const MatMulTask& task, const Panel<Type>& panel, int64_t row,
                          int64_t out, int64_t end) {
  const int64_t n_blocks = task.n_in / kBlock;
  const int8_t* values = task.values + row * task.n_in;
  const float* scales = task.scales + row * n_blocks;
  const int32_t* sums = task.sums + row * n_blocks;
  const int16_t* half_sums = task.half_sums + 2 * row * n_blocks;
  __m256 acc[kN];
  for (int r = 0; r < kN; ++r) {
    acc[r] = _mm256_setzero_ps();
  }
  for (int64_t b = 0; b < n_blocks; ++b) {
    Dots dots[kN];
    PanelDots<Type::kWidth, kN>(panel.values + b * kPanelBlock, values + b * kBlock, task.n_in,
                                dots);
    const auto& side = panel.sides[b / Type::kBlocks];
    for (int r = 0; r < kN; ++r) {
      const int64_t at = r * n_blocks + b;
      acc[r] = Type::Add(dots[r], side, static_cast<int>(b % Type::kBlocks),
                         {scales[at], sums[at], half_sums + 2 * at}, acc[r]);
    }
  }
  for (int r = 0; r < kN; ++r) {
    StoreOutputs(task, row + r, out, end, acc[r]);
  }
}

template <int kN>
inline void SetRows(const MatMulTask& task, int64_t out, int64_t end,
                    const std::byte* (&rows)[kN]) {
  for (int i = 0; i < kN; ++i) {
    const int64_t row = out + i < end ? out + i : end - 1;
    rows[i] = task.w + row * task.row_bytes;
  }
}

// All activation rows with the panel that holds outputs [out, end).
template <typename Type>
inline void MultiplyPanelRows(const MatMulTask& task, const Panel<Type>& panel, int64_t out,
                              int64_t end) {
  int64_t row = 0;
  for (; row + 4 <= task.n_rows; row += 4) {
    MultiplyPanel<Type, 4>(task, panel, row, out, end);
  }
  for (; row + 2 <= task.n_rows; row += 2) {
    MultiplyPanel<Type, 2>(task, panel, row, out, end);
  }
  for (; row < task.n_rows; ++row) {
    MultiplyPanel<Type, 1>(task, panel, row, out, end);
  }
}

}  // namespace
}  // namespace facet
