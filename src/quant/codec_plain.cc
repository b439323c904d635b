// SPDX-License-Identifier: Apache-2.0
// F32, F16, BF16: one value, one element.
#include <cstring>

#include "base/half.h"
#include "quant/codec_tables.h"

namespace facet {
namespace {

void CopyFloats(const std::byte* blocks, int64_t n, float* values) {
  std::memcpy(values, blocks, static_cast<size_t>(n) * sizeof(float));
}

void CopyFloats(const float* values, const float* /*importance*/, int64_t n, std::byte* blocks) {
  std::memcpy(blocks, values, static_cast<size_t>(n) * sizeof(float));
}

template <float (*Convert)(uint16_t)>
void Decode16(const std::byte* blocks, int64_t n, float* values) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, blocks + 2 * i, sizeof(bits));
    values[i] = Convert(bits);
  }
}

template <uint16_t (*Convert)(float)>
void Encode16(const float* values, const float* /*importance*/, int64_t n, std::byte* blocks) {
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t bits = Convert(values[i]);
    std::memcpy(blocks + 2 * i, &bits, sizeof(bits));
  }
}

constexpr BlockForm kPlain = BlockForm::kScaled;  // says nothing: there are no unpacked blocks

}  // namespace

const Codec kF32Codec = {TensorType::kF32, kPlain, CopyFloats, nullptr, CopyFloats};
const Codec kF16Codec = {TensorType::kF16, kPlain, Decode16<FloatFromF16>, nullptr,
                         Encode16<F16FromFloat>};
const Codec kBf16Codec = {TensorType::kBF16, kPlain, Decode16<FloatFromBf16>, nullptr,
                          Encode16<Bf16FromFloat>};

}  // namespace facet
