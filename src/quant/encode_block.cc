// SPDX-License-Identifier: Apache-2.0
#include "quant/encode_block.h"

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace facet {
namespace {

constexpr float kLargestHalf = 65504.0f;

// Comparisons with NaN are false: it becomes 0.
float FiniteOf(float value) {
  if (value > kLargestHalf) {
    return kLargestHalf;
  }
  if (value < -kLargestHalf) {
    return -kLargestHalf;
  }
  return value == value ? value : 0.0f;
}

}  // namespace

template <int kN>
EncoderBlock<kN>::EncoderBlock(const float* values, const float* importance) {
  // What does not matter at all still counts a millionth, so that every group has a best fit.
  constexpr float kLeastWeight = 1e-6f;
  float mean = 0.0f;
  for (int k = 0; k < kN && importance != nullptr; ++k) {
    mean += importance[k] / static_cast<float>(kN);
  }
  const bool is_weighted = importance != nullptr && std::isnormal(mean) && mean > 0.0f;
  const float inverse = is_weighted ? 1.0f / mean : 0.0f;
  for (int k = 0; k < kN; ++k) {
    x[k / 4][k % 4] = FiniteOf(values[k]);
    w[k / 4][k % 4] = is_weighted ? std::fmax(importance[k] * inverse, kLeastWeight) : 1.0f;
  }
}

template struct EncoderBlock<kBlock32>;
template struct EncoderBlock<kBlockK>;

float NearestHalf(float value) { return FloatFromF16(F16FromFloat(FiniteOf(value))); }

void StoreHalf(float value, std::byte* bytes) {
  const uint16_t bits = F16FromFloat(value);
  std::memcpy(bytes, &bits, sizeof(bits));
}

void PackNibbles32(const uint8_t* indices, std::byte* bytes) {
  for (int k = 0; k < 16; ++k) {
    bytes[k] = static_cast<std::byte>(indices[k] | (indices[k + 16] << 4));
  }
}

}  // namespace facet
