// SPDX-License-Identifier: Apache-2.0
// Matrix products of float weights with NEON: equal to matmul_scalar.cc bit for bit. The 16 lanes
// of a chain lie in four registers; two weight rows and up to three activation rows run together
// (24 registers of sums, 5 loads for 6 fused multiply-adds). Compiled for Armv8.2; uses no inline
// function of the library or the standard library (vector_math_neon.h says why).
#include "compute/kernels_neon.h"
#include "compute/vector_math_neon.h"

namespace facet {
namespace {

struct F32 {
  static constexpr int64_t kBytes = 4;
  static float32x4_t Load(const std::byte* w) {
    return vld1q_f32(reinterpret_cast<const float*>(w));
  }
};

struct F16 {
  static constexpr int64_t kBytes = 2;
  static float32x4_t Load(const std::byte* w) { return LoadF16(w); }
};

struct Bf16 {
  static constexpr int64_t kBytes = 2;
  static float32x4_t Load(const std::byte* w) { return LoadBf16(w); }
};

constexpr int kFloatRows = 2;  // weight rows of a group
constexpr int kFloatTile = 3;  // activation rows that run together at most
constexpr int kRegisters = 4;  // of a chain
constexpr int kLanes = 16;

struct WeightRows {
  const std::byte* rows[kFloatRows];
};

// The last n < 16 products of a chain; lanes without one stay as they are.
template <typename Type>
inline void AddTail(const std::byte* w, const float* x, int64_t n,
                    float32x4_t (&lanes)[kRegisters]) {
  std::byte w_tail[kLanes * Type::kBytes] = {};
  float x_tail[kLanes] = {};
  __builtin_memcpy(w_tail, w, static_cast<size_t>(n * Type::kBytes));
  __builtin_memcpy(x_tail, x, static_cast<size_t>(n) * sizeof(float));
  for (int i = 0; i < kRegisters; ++i) {
    const float32x4_t sum =
        vfmaq_f32(lanes[i], Type::Load(w_tail + 4 * i * Type::kBytes), vld1q_f32(x_tail + 4 * i));
    lanes[i] = vbslq_f32(FirstLanes(n - 4 * i), sum, lanes[i]);
  }
}

// Outputs of two weight rows for kN activation rows that lie n_in apart.
template <typename Type, int kN>
inline void FloatDots(const WeightRows& w, const float* x, int64_t n_in,
                      float (&dots)[kN][kFloatRows]) {
  float32x4_t lanes[kN][kFloatRows][kRegisters];
  for (auto& row : lanes) {
    for (auto& chain : row) {
      for (float32x4_t& lane : chain) {
        lane = vdupq_n_f32(0.0f);
      }
    }
  }
  int64_t k = 0;
  for (; k + kLanes <= n_in; k += kLanes) {
    for (int i = 0; i < kRegisters; ++i) {
      const int64_t at = k + 4 * i;
      const float32x4_t first = Type::Load(w.rows[0] + at * Type::kBytes);
      const float32x4_t second = Type::Load(w.rows[1] + at * Type::kBytes);
      for (int r = 0; r < kN; ++r) {
        const float32x4_t a = vld1q_f32(x + r * n_in + at);
        lanes[r][0][i] = vfmaq_f32(lanes[r][0][i], first, a);
        lanes[r][1][i] = vfmaq_f32(lanes[r][1][i], second, a);
      }
    }
  }
  for (int r = 0; r < kN; ++r) {
    for (int j = 0; j < kFloatRows; ++j) {
      if (k < n_in) {
        AddTail<Type>(w.rows[j] + k * Type::kBytes, x + r * n_in + k, n_in - k, lanes[r][j]);
      }
      dots[r][j] = Tree16(lanes[r][j]);
    }
  }
}

template <typename Type, int kN>
void MultiplyRows(const MatMulTask& task, const WeightRows& w, int64_t row, int64_t out,
                  int64_t end) {
  float dots[kN][kFloatRows];
  FloatDots<Type, kN>(w, task.x + row * task.n_in, task.n_in, dots);
  for (int r = 0; r < kN; ++r) {
    float* y = task.y + (row + r) * task.n_out + out;
    y[0] = dots[r][0];
    if (out + 1 < end) {
      y[1] = dots[r][1];
    }
  }
}

// All rows, in tiles of sizes as equal as can be.
template <typename Type>
inline void MultiplyAllRows(const MatMulTask& task, const WeightRows& w, int64_t out, int64_t end) {
  constexpr void (*kMultiply[kFloatTile])(const MatMulTask&, const WeightRows&, int64_t, int64_t,
                                          int64_t) = {MultiplyRows<Type, 1>, MultiplyRows<Type, 2>,
                                                      MultiplyRows<Type, 3>};
  const int64_t n_tiles = (task.n_rows + kFloatTile - 1) / kFloatTile;
  for (int64_t t = 0; t < n_tiles; ++t) {
    const int64_t row = task.n_rows * t / n_tiles;
    const int64_t n = task.n_rows * (t + 1) / n_tiles - row;
    kMultiply[n - 1](task, w, row, out, end);
  }
}

// The weight rows as floats in the scratch memory.
template <typename Type>
inline WeightRows Widen(const MatMulTask& task, const WeightRows& w) {
  WeightRows wide = {};
  auto* floats = reinterpret_cast<float*>(task.scratch);
  for (int j = 0; j < kFloatRows; ++j, floats += task.n_in) {
    int64_t k = 0;
    for (; k + 4 <= task.n_in; k += 4) {
      vst1q_f32(floats + k, Type::Load(w.rows[j] + k * Type::kBytes));
    }
    if (k < task.n_in) {
      std::byte tail[4 * Type::kBytes] = {};
      __builtin_memcpy(tail, w.rows[j] + k * Type::kBytes,
                       static_cast<size_t>((task.n_in - k) * Type::kBytes));
      StoreFirst(floats + k, Type::Load(tail), task.n_in - k);
    }
    wide.rows[j] = reinterpret_cast<const std::byte*>(floats);
  }
  return wide;
}

template <typename Type>
void MatMulFloats(const MatMulTask& task, int64_t begin, int64_t end) {
  for (int64_t out = begin; out < end; out += kFloatRows) {
    const std::byte* first = task.w + out * task.row_bytes;
    const WeightRows w = {{first, out + 1 < end ? first + task.row_bytes : first}};
    if (task.n_rows <= kFloatTile || Type::kBytes == F32::kBytes) {
      MultiplyAllRows<Type>(task, w, out, end);
    } else {
      MultiplyAllRows<F32>(task, Widen<Type>(task, w), out, end);
    }
  }
}

}  // namespace

void MatMulF32Neon(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<F32>(task, begin, end);
}

void MatMulF16Neon(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<F16>(task, begin, end);
}

void MatMulBf16Neon(const MatMulTask& task, int64_t begin, int64_t end) {
  MatMulFloats<Bf16>(task, begin, end);
}

}  // namespace facet
