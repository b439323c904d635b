// SPDX-License-Identifier: Apache-2.0
// Q4_K and Q6_K: blocks of 256 values whose sub-blocks have integer scales. Layouts:
// docs/quantization.md.
#include <cstring>

#include "base/half.h"
#include "quant/codec_tables.h"

namespace facet {
namespace {

constexpr int kBlock = 256;

float LoadF16(const std::byte* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return FloatFromF16(bits);
}

int ByteAt(const std::byte* bytes, int i) { return static_cast<int>(bytes[i]); }

// Q4_K: d, dmin (float16), 12 bytes with eight 6-bit scales and minima, 128 bytes of nibbles.
constexpr int kQ4KBytes = 144;
constexpr int kQ4KScales = 4;
constexpr int kQ4KNibbles = 16;

struct ScaleAndMinimum {
  int scale;
  int minimum;
};

ScaleAndMinimum UnpackQ4KScale(const std::byte* packed, int j) {
  if (j < 4) {
    return {ByteAt(packed, j) & 63, ByteAt(packed, j + 4) & 63};
  }
  return {(ByteAt(packed, j + 4) & 15) | ((ByteAt(packed, j - 4) >> 6) << 4),
          (ByteAt(packed, j + 4) >> 4) | ((ByteAt(packed, j) >> 6) << 4)};
}

void DecodeQ4K(const std::byte* blocks, int64_t n, float* values) {
  for (int64_t i = 0; i < n; i += kBlock, blocks += kQ4KBytes, values += kBlock) {
    const float d = LoadF16(blocks);
    const float dmin = LoadF16(blocks + 2);
    for (int j = 0; j < 8; ++j) {
      const auto [s, m] = UnpackQ4KScale(blocks + kQ4KScales, j);
      const float scale = d * static_cast<float>(s);
      const float minimum = dmin * static_cast<float>(m);
      const std::byte* nibbles = blocks + kQ4KNibbles + 32 * (j / 2);
      const int shift = 4 * (j % 2);
      for (int k = 0; k < 32; ++k) {
        const int q = (ByteAt(nibbles, k) >> shift) & 15;
        values[32 * j + k] = scale * static_cast<float>(q) - minimum;
      }
    }
  }
}

// Q6_K: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 int8 scales (one per 16 values), d
// (float16).
constexpr int kQ6KBytes = 210;
constexpr int kQ6KHigh = 128;
constexpr int kQ6KScales = 192;
constexpr int kQ6KD = 208;

void DecodeQ6K(const std::byte* blocks, int64_t n, float* values) {
  for (int64_t i = 0; i < n; i += kBlock, blocks += kQ6KBytes, values += kBlock) {
    const float d = LoadF16(blocks + kQ6KD);
    for (int j = 0; j < 8; ++j) {  // 32 values each: quarter j % 4 of half j / 4
      const std::byte* low = blocks + 64 * (j / 4) + 32 * (j % 2);
      const std::byte* high = blocks + kQ6KHigh + 32 * (j / 4);
      const int low_shift = (j % 4) / 2 * 4;
      const int high_shift = j % 4 * 2;
      for (int k = 0; k < 32; ++k) {
        const int q =
            ((ByteAt(low, k) >> low_shift) & 15) | (((ByteAt(high, k) >> high_shift) & 3) << 4);
        const auto scale = static_cast<int8_t>(blocks[kQ6KScales + 2 * j + k / 16]);
        values[32 * j + k] = d * static_cast<float>(scale) * static_cast<float>(q - 32);
      }
    }
  }
}

}  // namespace

const Codec kQ4_KCodec = {TensorType::kQ4_K, DecodeQ4K, nullptr, nullptr};
const Codec kQ6_KCodec = {TensorType::kQ6_K, DecodeQ6K, nullptr, nullptr};

}  // namespace facet
