// SPDX-License-Identifier: Apache-2.0
// Matrix products of float weights with AVX-512: equal to matmul_scalar.cc bit for bit. The 16
// lanes of a chain are one register. Compiled with -mavx512*; uses no inline function of the
// library or the standard library (vector_math_avx2.h says why).
//
// One activation row is bound by memory: 8 weight rows run at once, so that enough loads and chains
// are under way. With many rows a tile of 4 weight rows and 6 activation rows takes 24
// multiply-adds for 10 loads; to widen 16-bit weights once for all rows was tried and lost, because
// they then need twice the cache (64 rows of BF16: 174 against 110 GOPS). The bfloat16 products of
// AVX512-BF16 and AMX are not used: they would round the activations, and results would depend on
// the processor.
#include <immintrin.h>

#include "compute/kernels_avx512.h"
#include "compute/vector_math_avx2.h"

namespace facet {
namespace {

struct F32 {
  static constexpr int kBytes = 4;
  static __m512 Load(const std::byte* w) { return _mm512_loadu_ps(w); }
  static __m512 Load(const std::byte* w, __mmask16 lanes) {
    return _mm512_maskz_loadu_ps(lanes, w);
  }
};

struct F16 {
  static constexpr int kBytes = 2;
  static __m512 Load(const std::byte* w) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
  }
  static __m512 Load(const std::byte* w, __mmask16 lanes) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, w));
  }
};

struct Bf16 {
  static constexpr int kBytes = 2;
  static __m512 Load(const std::byte* w) {
    return Widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
  }
  static __m512 Load(const std::byte* w, __mmask16 lanes) {
    return Widen(_mm256_maskz_loadu_epi16(lanes, w));
  }

 private:
  static __m512 Widen(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
};

constexpr int kLanes = 16;
constexpr int kGroup = 8;     // weight rows of a border between threads
constexpr int kTileOut = 4;   // weight rows of a tile
constexpr int kTileRows = 6;  // activation rows of a tile

inline __mmask16 FirstLanes16(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }

// Lane i += lane i + 8, + 4, + 2, + 1.
inline float Tree16(__m512 lanes) {
  return Tree8(_mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1)));
}

// Weight rows `stride` bytes apart and activation rows that meet: kOut · kN outputs.
struct Operands {
  const std::byte* w;
  int64_t w_stride;
  const float* x;
  int64_t n_in;  // also the stride of x
};

template <typename Type, int kOut, int kN>
inline void Multiply(const Operands& in, __m512 (&lanes)[kN][kOut]) {
  for (int r = 0; r < kN; ++r) {
    for (int i = 0; i < kOut; ++i) {
      lanes[r][i] = _mm512_setzero_ps();
    }
  }
  int64_t k = 0;
  for (; k + kLanes <= in.n_in; k += kLanes) {
    __m512 w[kOut];
    for (int i = 0; i < kOut; ++i) {
      w[i] = Type::Load(in.w + i * in.w_stride + k * Type::kBytes);
    }
    for (int r = 0; r < kN; ++r) {
      const __m512 x = _mm512_loadu_ps(in.x + r * in.n_in + k);
      for (int i = 0; i < kOut; ++i) {
        lanes[r][i] = _mm512_fmadd_ps(w[i], x, lanes[r][i]);
      }
    }
  }
  if (k == in.n_in) {
    return;
  }
  // Lanes without a product stay as they are.
  const __mmask16 rest = FirstLanes16(in.n_in - k);
#pragma GCC unroll 8
  for (int i = 0; i < kOut; ++i) {
    const __m512 w = Type::Load(in.w + i * in.w_stride + k * Type::kBytes, rest);
#pragma GCC unroll 8
    for (int r = 0; r < kN; ++r) {
      const __m512 x = _mm512_maskz_loadu_ps(rest, in.x + r * in.n_in + k);
      lanes[r][i] = _mm512_mask3_fmadd_ps(w, x, lanes[r][i], rest);
    }
  }
}

template <typename Type, int kOut, int kN>
void MultiplyRows(const Operands& in, float* y, int64_t y_stride) {
  __m512 lanes[kN][kOut];
  Multiply<Type, kOut, kN>(in, lanes);
#pragma GCC unroll 8
  for (int r = 0; r < kN; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kOut; ++i) {
      y[r * y_stride + i] = Tree16(lanes[r][i]);
    }
  }
}

// All activation rows with kOut weight rows, in tiles of sizes as equal as can be.
template <typename Type, int kOut>
inline void MultiplyGroup(const MatMulTask& task, int64_t out) {
  constexpr void (*kMultiply[kTileRows])(const Operands&, float*, int64_t) = {
      MultiplyRows<Type, kOut, 1>, MultiplyRows<Type, kOut, 2>, MultiplyRows<Type, kOut, 3>,
      MultiplyRows<Type, kOut, 4>, MultiplyRows<Type, kOut, 5>, MultiplyRows<Type, kOut, 6>};
  const int64_t n_tiles = (task.n_rows + kTileRows - 1) / kTileRows;
  for (int64_t t = 0; t < n_tiles; ++t) {
    const int64_t row = task.n_rows * t / n_tiles;
    const int64_t n = task.n_rows * (t + 1) / n_tiles - row;
    kMultiply[n - 1](
        {task.w + out * task.row_bytes, task.row_bytes, task.x + row * task.n_in, task.n_in},
        task.y + row * task.n_out + out, task.n_out);
  }
}

template <typename Type>
void MatMulFloats(const MatMulTask& task, int64_t begin, int64_t end) {
  int64_t out = begin;
  for (; task.n_rows == 1 && out + kGroup <= end; out += kGroup) {
    MultiplyRows<Type, kGroup, 1>(
        {task.w + out * task.row_bytes, task.row_bytes, task.x, task.n_in}, task.y + out, 0);
  }
  for (; out + kTileOut <= end; out += kTileOut) {
    MultiplyGroup<Type, kTileOut>(task, out);
  }
  for (; out < end; ++out) {
    MultiplyGroup<Type, 1>(task, out);
  }
}

}  // namespace

void MatMulF32Avx512(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<F32>(task, begin, end);
}

void MatMulF16Avx512(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<F16>(task, begin, end);
}

void MatMulBf16Avx512(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<Bf16>(task, begin, end);
}

}  // namespace facet
