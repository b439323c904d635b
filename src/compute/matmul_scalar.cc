// SPDX-License-Identifier: Apache-2.0
// The matrix products in plain C++: the chains of matmul.h as they stand there. Defines the result
// of every set.
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "compute/kernels.h"

namespace facet {
namespace {

float LoadF16(const std::byte* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return FloatFromF16(bits);
}

// --- integer-weight types: weights by way of their unpacked form, whatever the type ---

// The part of an activation row that meets one block of weights.
struct ActivationBlock {
  const int8_t* values;
  float scale;
  const int16_t* half_sums;  // two
};

// Where the sums of one block of |q| ≤ 128, |a| ≤ 127, |s| ≤ 128 stay below 2^27.
float AddBlock(const UnpackedBlock& w, BlockForm form, const ActivationBlock& a, float acc) {
  int32_t dots[2] = {0, 0};
  for (int k = 0; k < 32; ++k) {
    dots[k / 16] += w.q[k] * a.values[k];
  }
  if (form == BlockForm::kTwoScales) {
    acc = std::fma(static_cast<float>(dots[0]), w.d[0] * a.scale, acc);
    return std::fma(static_cast<float>(dots[1]), w.d[1] * a.scale, acc);
  }
  const int32_t dot = w.s[0] * dots[0] + w.s[1] * dots[1];
  acc = std::fma(static_cast<float>(dot), w.d[0] * a.scale, acc);
  if (form == BlockForm::kWithMinimum) {
    const int32_t sum = w.m[0] * a.half_sums[0] + w.m[1] * a.half_sums[1];
    acc = std::fma(-static_cast<float>(sum), w.dmin * a.scale, acc);
  }
  return acc;
}

void MatMulUnpacked(const MatMulTask& task, int64_t begin, int64_t end) {
  auto* w = reinterpret_cast<UnpackedBlock*>(task.scratch);
  const int64_t n_blocks = task.n_in / 32;
  for (int64_t out = begin; out < end; ++out) {
    task.unpack(task.w + out * task.row_bytes, task.n_in, w);
    for (int64_t row = 0; row < task.n_rows; ++row) {
      float acc = 0.0f;
      for (int64_t b = 0; b < n_blocks; ++b) {
        const int64_t at = row * n_blocks + b;
        acc = AddBlock(w[b], task.form,
                       {task.values + 32 * at, task.scales[at], task.half_sums + 2 * at}, acc);
      }
      task.y[row * task.n_out + out] = acc;
    }
  }
}

// --- float types ---

float LoadFloat(const std::byte* w, int64_t k) {
  float value;
  std::memcpy(&value, w + 4 * k, sizeof(value));
  return value;
}

float LoadHalf(const std::byte* w, int64_t k) { return LoadF16(w + 2 * k); }

float LoadBf16(const std::byte* w, int64_t k) {
  uint16_t bits;
  std::memcpy(&bits, w + 2 * k, sizeof(bits));
  return FloatFromBf16(bits);
}

template <float (*Load)(const std::byte*, int64_t)>
void MatMulFloats(const MatMulTask& task, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < task.n_rows; ++row) {
    const float* x = task.x + row * task.n_in;
    for (int64_t out = begin; out < end; ++out) {
      const std::byte* w = task.w + out * task.row_bytes;
      float lanes[16] = {};
      for (int64_t k = 0; k < task.n_in; ++k) {
        lanes[k % 16] = std::fma(Load(w, k), x[k], lanes[k % 16]);
      }
      for (int width = 8; width >= 1; width /= 2) {
        for (int i = 0; i < width; ++i) {
          lanes[i] += lanes[i + width];
        }
      }
      task.y[row * task.n_out + out] = lanes[0];
    }
  }
}

// --- activations ---

// Compared as integers, magnitudes order as floats do and a NaN is the largest: it reaches the
// scale.
float LargestMagnitude(const float* x) {
  uint32_t largest = 0;
  for (int k = 0; k < 32; ++k) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[k]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return std::bit_cast<float>(largest);
}

// The limits matter only where amax is subnormal and its inverse infinite.
int8_t QuantizeValue(float x, float inverse) {
  float scaled = x * inverse;
  scaled = std::isnan(scaled) ? 0.0f : scaled;
  scaled = scaled > 127.0f ? 127.0f : scaled;
  scaled = scaled < -127.0f ? -127.0f : scaled;
  return static_cast<int8_t>(std::nearbyint(scaled));
}

void Quantize(const float* x, int64_t n, int8_t* values, float* scales, int32_t* sums,
              int16_t* half_sums) {
  for (int64_t b = 0; b < n / 32; ++b) {
    const float amax = LargestMagnitude(x + 32 * b);
    const float scale = amax / 127.0f;
    const float inverse = scale != 0.0f ? 127.0f / amax : 0.0f;
    int halves[2] = {0, 0};
    for (int k = 0; k < 32; ++k) {
      values[32 * b + k] = QuantizeValue(x[32 * b + k], inverse);
      halves[k / 16] += values[32 * b + k];
    }
    scales[b] = scale;
    sums[b] = halves[0] + halves[1];
    half_sums[2 * b] = static_cast<int16_t>(halves[0]);
    half_sums[2 * b + 1] = static_cast<int16_t>(halves[1]);
  }
}

}  // namespace

const MatMulKernels kMatMulScalar = {
    .f32 = MatMulFloats<LoadFloat>,
    .f16 = MatMulFloats<LoadHalf>,
    .bf16 = MatMulFloats<LoadBf16>,
    .unpacked = MatMulUnpacked,
    .quantize = Quantize,
};

}  // namespace facet
