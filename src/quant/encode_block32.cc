// SPDX-License-Identifier: Apache-2.0
// Blocks of 32 values that share a scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
#include <cmath>

#include "quant/encode.h"
#include "quant/encode_block.h"

namespace facet {
namespace {

constexpr int kHalfBytes = 2;
constexpr int kQ4_0Bytes = 18;
constexpr int kQ8_0Bytes = 34;

// Bit k holds bit 4 of index k.
void PackFifthBits(const uint8_t* indices, std::byte* bytes) {
  for (int k = 0; k < kBlock32; k += 8) {
    unsigned bits = 0;
    for (int i = 0; i < 8; ++i) {
      bits |= static_cast<unsigned>((indices[k + i] >> 4) & 1) << i;
    }
    bytes[k / 8] = static_cast<std::byte>(bits);
  }
}

void PackIndices(const uint8_t* indices, bool has_fifth_bits, std::byte* bytes) {
  uint8_t nibbles[kBlock32];
  for (int k = 0; k < kBlock32; ++k) {
    nibbles[k] = indices[k] & 15;
  }
  if (has_fifth_bits) {
    PackFifthBits(indices, bytes);
    bytes += 4;
  }
  PackNibbles32(nibbles, bytes);
}

void PackScaled(const IntegerLevels& levels, const EncoderBlock<kBlock32>& block,
                std::byte* bytes) {
  const float d = NearestHalf(FitScale(levels, block.weighted()));
  uint8_t indices[kBlock32];
  RoundToIndices(levels, block.weighted(), {d, 0.0f}, indices);
  StoreHalf(d, bytes);
  PackIndices(indices, levels.highest > 7.0f, bytes + kHalfBytes);
}

void PackAffine(const IntegerLevels& levels, const EncoderBlock<kBlock32>& block,
                std::byte* bytes) {
  const Affine fit = FitAffine(levels.highest, INFINITY, block.weighted());
  const Affine stored = {NearestHalf(fit.scale), NearestHalf(fit.offset)};
  uint8_t indices[kBlock32];
  RoundToIndices(levels, block.weighted(), stored, indices);
  StoreHalf(stored.scale, bytes);
  StoreHalf(stored.offset, bytes + kHalfBytes);
  PackIndices(indices, levels.highest > 15.0f, bytes + 2 * kHalfBytes);
}

}  // namespace

void EncodeQ4_1(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlock32>(values, importance, n, 20, blocks, [](const auto& block, auto* out) {
    PackAffine({0, 15}, block, out);
  });
}

void EncodeQ5_0(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlock32>(values, importance, n, 22, blocks, [](const auto& block, auto* out) {
    PackScaled({-16, 15}, block, out);
  });
}

void EncodeQ5_1(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlock32>(values, importance, n, 24, blocks, [](const auto& block, auto* out) {
    PackAffine({0, 31}, block, out);
  });
}

namespace {

// The value shifted to [0.5, 16.5) and cut: 0 to 15. What is not a number gives 0.
int NibbleOf(float scaled) {
  const float shifted = scaled + 8.5f;
  if (shifted >= 15.0f) {
    return 15;
  }
  return shifted >= 0.0f ? static_cast<int>(shifted) : 0;
}

// The rule of ggml's reference: the value farthest from zero becomes -8.
void PackQ4_0ByExtreme(const float* values, std::byte* block) {
  float extreme = 0.0f;
  for (int k = 0; k < kBlock32; ++k) {
    extreme = std::fabs(values[k]) > std::fabs(extreme) ? values[k] : extreme;
  }
  const float scale = extreme / -8.0f;
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  StoreHalf(scale, block);
  uint8_t indices[kBlock32];
  for (int k = 0; k < kBlock32; ++k) {
    indices[k] = static_cast<uint8_t>(NibbleOf(values[k] * inverse));
  }
  PackNibbles32(indices, block + kHalfBytes);
}

}  // namespace

void EncodeQ4_0(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  if (importance != nullptr) {
    ForEachBlock<kBlock32>(values, importance, n, kQ4_0Bytes, blocks,
                           [](const auto& block, auto* out) {
                             PackScaled({-8, 7}, block, out);
                           });
    return;
  }
  for (int64_t i = 0; i < n; i += kBlock32, blocks += kQ4_0Bytes) {
    PackQ4_0ByExtreme(values + i, blocks);
  }
}

void EncodeQ8_0(const float* values, const float* /*importance*/, int64_t n, std::byte* blocks) {
  for (int64_t i = 0; i < n; i += kBlock32, blocks += kQ8_0Bytes, values += kBlock32) {
    float largest = 0.0f;
    for (int k = 0; k < kBlock32; ++k) {
      largest = std::fmax(largest, std::fabs(values[k]));
    }
    const float scale = largest / 127.0f;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    StoreHalf(scale, blocks);
    for (int k = 0; k < kBlock32; ++k) {
      const float q = std::round(values[k] * inverse);
      const float clamped = std::fmin(std::fmax(q, -127.0f), 127.0f);
      blocks[kHalfBytes + k] = static_cast<std::byte>(static_cast<int8_t>(clamped));
    }
  }
}

}  // namespace facet
