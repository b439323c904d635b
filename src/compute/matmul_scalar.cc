// SPDX-License-Identifier: Apache-2.0
// The matrix products in plain C++: the chains of matmul.h as they stand there. Defines the result
// of every set.
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "compute/block_layout.h"
#include "compute/kernels.h"

namespace facet {
namespace {

float LoadF16(const std::byte* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return FloatFromF16(bits);
}

int ByteAt(const std::byte* bytes, int i) { return static_cast<int>(bytes[i]); }

// --- integer-weight types ---

// The part of an activation row that meets one block of weights.
struct ActivationBlock {
  const int8_t* values;
  const float* scales;
  const int32_t* sums;
};

float AddQ8_0(const std::byte* block, const ActivationBlock& a, float acc) {
  int dot = 0;
  for (int k = 0; k < 32; ++k) {
    dot += static_cast<int8_t>(block[layout::kQ8_0Values + k]) * a.values[k];
  }
  return std::fma(static_cast<float>(dot), LoadF16(block) * a.scales[0], acc);
}

float AddQ4_0(const std::byte* block, const ActivationBlock& a, float acc) {
  int dot = 0;
  for (int k = 0; k < 16; ++k) {
    const int pair = ByteAt(block, layout::kQ4_0Nibbles + k);
    dot += ((pair & 15) - 8) * a.values[k] + ((pair >> 4) - 8) * a.values[k + 16];
  }
  return std::fma(static_cast<float>(dot), LoadF16(block) * a.scales[0], acc);
}

float AddQ4K(const std::byte* block, const ActivationBlock& a, float acc) {
  const float d = LoadF16(block);
  const float dmin = LoadF16(block + 2);
  const std::byte* packed = block + layout::kQ4_KScales;
  for (int j = 0; j < 8; ++j) {
    int s = ByteAt(packed, j) & 63;
    int m = ByteAt(packed, j + 4) & 63;
    if (j >= 4) {
      s = (ByteAt(packed, j + 4) & 15) | ((ByteAt(packed, j - 4) >> 6) << 4);
      m = (ByteAt(packed, j + 4) >> 4) | ((ByteAt(packed, j) >> 6) << 4);
    }
    const std::byte* nibbles = block + layout::kQ4_KNibbles + 32 * (j / 2);
    int dot = 0;
    for (int k = 0; k < 32; ++k) {
      dot += ((ByteAt(nibbles, k) >> (4 * (j % 2))) & 15) * a.values[32 * j + k];
    }
    acc = std::fma(static_cast<float>(s * dot), d * a.scales[j], acc);
    acc = std::fma(-static_cast<float>(m * a.sums[j]), dmin * a.scales[j], acc);
  }
  return acc;
}

float AddQ6K(const std::byte* block, const ActivationBlock& a, float acc) {
  const float d = LoadF16(block + layout::kQ6_KD);
  for (int j = 0; j < 8; ++j) {
    const std::byte* low = block + 64 * (j / 4) + 32 * (j % 2);
    const std::byte* high = block + layout::kQ6_KHigh + 32 * (j / 4);
    int dots[2] = {0, 0};
    for (int k = 0; k < 32; ++k) {
      const int q = ((ByteAt(low, k) >> (j % 4 / 2 * 4)) & 15) |
                    (((ByteAt(high, k) >> (j % 4 * 2)) & 3) << 4);
      dots[k / 16] += (q - 32) * a.values[32 * j + k];
    }
    const std::byte* scales = block + layout::kQ6_KScales + 2 * j;
    const int dot =
        static_cast<int8_t>(scales[0]) * dots[0] + static_cast<int8_t>(scales[1]) * dots[1];
    acc = std::fma(static_cast<float>(dot), d * a.scales[j], acc);
  }
  return acc;
}

template <int kElements, int kBytes,
          float (*Accumulate)(const std::byte*, const ActivationBlock&, float)>
void MatMulBlocks(const MatMulTask& task, int64_t begin, int64_t end) {
  const int64_t n_blocks = task.n_in / kElements;
  for (int64_t row = 0; row < task.n_rows; ++row) {
    for (int64_t out = begin; out < end; ++out) {
      const std::byte* w = task.w + out * task.row_bytes;
      float acc = 0.0f;
      for (int64_t b = 0; b < n_blocks; ++b) {
        const int64_t k = row * task.n_in + b * kElements;
        const ActivationBlock a = {task.values + k, task.scales + k / 32, task.sums + k / 32};
        acc = Accumulate(w + b * kBytes, a, acc);
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
    .q8_0 = MatMulBlocks<32, layout::kQ8_0Bytes, AddQ8_0>,
    .q4_0 = MatMulBlocks<32, layout::kQ4_0Bytes, AddQ4_0>,
    .q4_k = MatMulBlocks<256, layout::kQ4_KBytes, AddQ4K>,
    .q6_k = MatMulBlocks<256, layout::kQ6_KBytes, AddQ6K>,
    .quantize = Quantize,
};

}  // namespace facet
