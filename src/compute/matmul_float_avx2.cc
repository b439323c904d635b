// SPDX-License-Identifier: Apache-2.0
// Matrix products of float weights with AVX2: equal to matmul_scalar.cc bit for bit. 16 lanes of a
// row's chain lie in two vectors. Compiled with -mavx2 -mfma -mf16c; uses no inline function of the
// library or the standard library (vector_math_avx2.h says why).
//
// One activation row meets 4 weight rows at once, which is bound by memory. A few run in tiles of 2
// weight rows and 3 activation rows: 12 multiply-adds for 10 loads in the 16 registers. Many come
// one by one to 4 rows that are widened once and stay in the first cache (64 rows: 76 GOPS, tiles
// 68).
#include "compute/kernels.h"
#include "compute/matmul_avx2.h"

namespace facet {
namespace {

struct F32 {
  static constexpr int kBytes = 4;
  static __m256 Load(const std::byte* w) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(w));
  }
};

struct F16 {
  static constexpr int kBytes = 2;
  static __m256 Load(const std::byte* w) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
};

struct Bf16 {
  static constexpr int kBytes = 2;
  static __m256 Load(const std::byte* w) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

constexpr int kFloatRows = 4;  // weight rows of a group
constexpr int kTileOut = 2;    // of which so many meet several activation rows
constexpr int kTileRows = 3;   // activation rows of a tile
constexpr int kManyRows = 12;  // from so many on the weights are widened
constexpr int kLanes = 16;

// The last n < 16 products of a row; lanes without one stay as they are.
template <typename Type>
inline void AddTail(const std::byte* w, const float* x, int64_t n, __m256 (&lanes)[2]) {
  alignas(32) std::byte w_tail[kLanes * Type::kBytes] = {};
  alignas(32) float x_tail[kLanes] = {};
  __builtin_memcpy(w_tail, w, static_cast<size_t>(n) * Type::kBytes);
  __builtin_memcpy(x_tail, x, static_cast<size_t>(n) * sizeof(float));
  for (int half = 0; half < 2; ++half) {
    const __m256 sum = _mm256_fmadd_ps(Type::Load(w_tail + half * 8 * Type::kBytes),
                                       _mm256_load_ps(x_tail + half * 8), lanes[half]);
    const __m256 mask = _mm256_castsi256_ps(FirstLanes(n - half * 8));
    lanes[half] = _mm256_blendv_ps(lanes[half], sum, mask);
  }
}

// The products of kOut weight rows with kN activation rows.
template <typename Type, int kOut, int kN>
inline void FloatDots(const std::byte* const* rows, const float* x, int64_t n_in,
                      float (&dots)[kN][kOut]) {
  __m256 lanes[kN][kOut][2];
  for (auto& row : lanes) {
    for (auto& pair : row) {
      pair[0] = _mm256_setzero_ps();
      pair[1] = _mm256_setzero_ps();
    }
  }
  int64_t k = 0;
  for (; k + kLanes <= n_in; k += kLanes) {
    for (int half = 0; half < 2; ++half) {
      const int64_t at = k + 8 * half;
      __m256 w[kOut];
      for (int i = 0; i < kOut; ++i) {
        w[i] = Type::Load(rows[i] + at * Type::kBytes);
      }
      for (int r = 0; r < kN; ++r) {
        const __m256 a = _mm256_loadu_ps(x + r * n_in + at);
        for (int i = 0; i < kOut; ++i) {
          lanes[r][i][half] = _mm256_fmadd_ps(w[i], a, lanes[r][i][half]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kN; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kOut; ++i) {
      if (k < n_in) {
        AddTail<Type>(rows[i] + k * Type::kBytes, x + r * n_in + k, n_in - k, lanes[r][i]);
      }
      dots[r][i] = Tree8(_mm256_add_ps(lanes[r][i][0], lanes[r][i][1]));
    }
  }
}

template <typename Type>
inline void WidenRows(const MatMulTask& task, const std::byte* (&rows)[kFloatRows]) {
  auto* floats = reinterpret_cast<float*>(task.scratch);
  for (int i = 0; i < kFloatRows; ++i, floats += task.n_in) {
    int64_t k = 0;
    for (; k + 8 <= task.n_in; k += 8) {
      _mm256_storeu_ps(floats + k, Type::Load(rows[i] + k * Type::kBytes));
    }
    if (k < task.n_in) {
      alignas(32) std::byte tail[8 * Type::kBytes] = {};
      __builtin_memcpy(tail, rows[i] + k * Type::kBytes,
                       static_cast<size_t>(task.n_in - k) * Type::kBytes);
      _mm256_maskstore_ps(floats + k, FirstLanes(task.n_in - k), Type::Load(tail));
    }
    rows[i] = reinterpret_cast<const std::byte*>(floats);
  }
}

// Activation rows [row, row + kN) with the weight rows of outputs [out, end).
template <typename Type, int kOut, int kN>
void MultiplyTile(const MatMulTask& task, const std::byte* const* rows, int64_t row, int64_t out,
                  int64_t end) {
  float dots[kN][kOut];
  FloatDots<Type, kOut, kN>(rows, task.x + row * task.n_in, task.n_in, dots);
  const int64_t n = end - out < kOut ? end - out : kOut;
  for (int r = 0; r < kN; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      task.y[(row + r) * task.n_out + out + i] = dots[r][i];
    }
  }
}

// A few activation rows, in tiles of sizes as equal as can be.
template <typename Type>
inline void MultiplyFloats(const MatMulTask& task, const std::byte* const (&rows)[kFloatRows],
                           int64_t out, int64_t end) {
  constexpr void (*kMultiply[kTileRows])(const MatMulTask&, const std::byte* const*, int64_t,
                                         int64_t, int64_t) = {MultiplyTile<Type, kTileOut, 1>,
                                                              MultiplyTile<Type, kTileOut, 2>,
                                                              MultiplyTile<Type, kTileOut, 3>};
  const int64_t n_tiles = (task.n_rows + kTileRows - 1) / kTileRows;
  for (int64_t i = 0; i < kFloatRows && out + i < end; i += kTileOut) {
    for (int64_t t = 0; t < n_tiles; ++t) {
      const int64_t row = task.n_rows * t / n_tiles;
      const int64_t n = task.n_rows * (t + 1) / n_tiles - row;
      kMultiply[n - 1](task, rows + i, row, out + i, end);
    }
  }
}

template <typename Type>
void MatMulFloats(const MatMulTask& task, int64_t begin, int64_t end) {
  for (int64_t out = begin; out < end; out += kFloatRows) {
    const std::byte* rows[kFloatRows];
    SetRows(task, out, end, rows);
    if (task.n_rows == 1) {
      MultiplyTile<Type, kFloatRows, 1>(task, rows, 0, out, end);
    } else if (task.n_rows < kManyRows) {
      MultiplyFloats<Type>(task, rows, out, end);
    } else {
      if constexpr (Type::kBytes != 4) {
        WidenRows<Type>(task, rows);
      }
      for (int64_t row = 0; row < task.n_rows; ++row) {
        MultiplyTile<F32, kFloatRows, 1>(task, rows, row, out, end);
      }
    }
  }
}

}  // namespace

void MatMulF32Avx2(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<F32>(task, begin, end);
}

void MatMulF16Avx2(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<F16>(task, begin, end);
}

void MatMulBf16Avx2(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<Bf16>(task, begin, end);
}

}  // namespace facet
