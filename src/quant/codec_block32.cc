// SPDX-License-Identifier: Apache-2.0
// Q8_0 and Q4_0: blocks of 32 values that share one float16 scale. The encoders follow ggml's
// reference rules, so that a file made here equals one made there; values that are not finite give
// some block, never undefined behaviour.
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/codec_tables.h"

namespace facet {
namespace {

constexpr int kBlock = 32;
constexpr int kQ8Bytes = 34;
constexpr int kQ4Bytes = 18;

float LoadScale(const std::byte* block) {
  uint16_t bits;
  std::memcpy(&bits, block, sizeof(bits));
  return FloatFromF16(bits);
}

void StoreScale(float scale, std::byte* block) {
  const uint16_t bits = F16FromFloat(scale);
  std::memcpy(block, &bits, sizeof(bits));
}

void DecodeQ8(const std::byte* blocks, int64_t n, float* values) {
  for (int64_t i = 0; i < n; i += kBlock, blocks += kQ8Bytes, values += kBlock) {
    const float scale = LoadScale(blocks);
    for (int k = 0; k < kBlock; ++k) {
      values[k] = static_cast<float>(static_cast<int8_t>(blocks[2 + k])) * scale;
    }
  }
}

void EncodeQ8(const float* values, const float* /*importance*/, int64_t n, std::byte* blocks) {
  for (int64_t i = 0; i < n; i += kBlock, blocks += kQ8Bytes, values += kBlock) {
    float largest = 0.0f;
    for (int k = 0; k < kBlock; ++k) {
      largest = std::fmax(largest, std::fabs(values[k]));
    }
    const float scale = largest / 127.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    StoreScale(scale, blocks);
    for (int k = 0; k < kBlock; ++k) {
      const float q = std::round(values[k] * inverse);
      const float clamped = std::fmin(std::fmax(q, -127.0f), 127.0f);
      blocks[2 + k] = static_cast<std::byte>(static_cast<int8_t>(clamped));
    }
  }
}

void DecodeQ4(const std::byte* blocks, int64_t n, float* values) {
  for (int64_t i = 0; i < n; i += kBlock, blocks += kQ4Bytes, values += kBlock) {
    const float scale = LoadScale(blocks);
    for (int k = 0; k < kBlock / 2; ++k) {
      const auto pair = static_cast<int>(blocks[2 + k]);
      values[k] = static_cast<float>((pair & 15) - 8) * scale;
      values[k + kBlock / 2] = static_cast<float>((pair >> 4) - 8) * scale;
    }
  }
}

// The value shifted to [0.5, 16.5) and cut: 0 to 15. What is not a number gives 0.
int NibbleOf(float scaled) {
  const float shifted = scaled + 8.5f;
  if (shifted >= 15.0f) {
    return 15;
  }
  return shifted >= 0.0f ? static_cast<int>(shifted) : 0;
}

void EncodeQ4(const float* values, const float* /*importance*/, int64_t n, std::byte* blocks) {
  for (int64_t i = 0; i < n; i += kBlock, blocks += kQ4Bytes, values += kBlock) {
    float extreme = 0.0f;  // the value farthest from zero, with its sign: it becomes -8
    for (int k = 0; k < kBlock; ++k) {
      extreme = std::fabs(values[k]) > std::fabs(extreme) ? values[k] : extreme;
    }
    const float scale = extreme / -8.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    StoreScale(scale, blocks);
    for (int k = 0; k < kBlock / 2; ++k) {
      const int low = NibbleOf(values[k] * inverse);
      const int high = NibbleOf(values[k + kBlock / 2] * inverse);
      blocks[2 + k] = static_cast<std::byte>(low | (high << 4));
    }
  }
}

}  // namespace

const Codec kQ8_0Codec = {TensorType::kQ8_0, DecodeQ8, nullptr, EncodeQ8};
const Codec kQ4_0Codec = {TensorType::kQ4_0, DecodeQ4, nullptr, EncodeQ4};

}  // namespace facet
