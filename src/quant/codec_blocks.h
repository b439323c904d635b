// SPDX-License-Identifier: Apache-2.0
// From the definition of one file block to the functions of its codec. A format is a struct with
// kType, kElements, kBytes, kForm and Unpack, which writes kElements / 32 unpacked blocks. Internal
// to quant/.
#pragma once

#include <cstring>

#include "base/half.h"
#include "quant/codec.h"

namespace facet {

inline int ByteAt(const std::byte* bytes, int i) { return static_cast<int>(bytes[i]); }

inline uint32_t LoadU16(const std::byte* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

inline uint32_t LoadU32(const std::byte* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

inline float LoadF16(const std::byte* bytes) {
  return FloatFromF16(static_cast<uint16_t>(LoadU16(bytes)));
}

/// The scales of a block without minimum.
inline void SetScales(float d, int s0, int s1, UnpackedBlock* unpacked) {
  unpacked->s[0] = s0;
  unpacked->s[1] = s1;
  unpacked->m[0] = unpacked->m[1] = 0;
  unpacked->d[0] = unpacked->d[1] = d;
  unpacked->dmin = 0.0F;
}

/// 16 bytes of nibbles: value k is the low one of byte k, value k + 16 the high one.
inline void UnpackNibbles(const std::byte* packed, int8_t* q) {
  for (int k = 0; k < 16; ++k) {
    q[k] = static_cast<int8_t>(ByteAt(packed, k) & 15);
    q[k + 16] = static_cast<int8_t>(ByteAt(packed, k) >> 4);
  }
}

template <typename Format>
void Unpack(const std::byte* blocks, int64_t n, UnpackedBlock* unpacked) {
  for (int64_t i = 0; i < n; i += Format::kElements) {
    Format::Unpack(blocks, unpacked);
    blocks += Format::kBytes;
    unpacked += Format::kElements / 32;
  }
}

/// d · s · q is exact in float: a float16 or a power of two times at most 13 bits of integers
/// (NVFP4: 4 bits times 5). So it does not matter in which order ggml multiplies, and the one
/// rounding is that of subtracting the minimum.
template <typename Format>
void Decode(const std::byte* blocks, int64_t n, float* values) {
  UnpackedBlock unpacked[Format::kElements / 32];
  for (int64_t i = 0; i < n; i += Format::kElements, blocks += Format::kBytes) {
    Format::Unpack(blocks, unpacked);
    for (const UnpackedBlock& block : unpacked) {
      for (int half = 0; half < 2; ++half, values += 16) {
        const float scale = block.d[half] * static_cast<float>(block.s[half]);
        const float minimum = block.dmin * static_cast<float>(block.m[half]);
        for (int k = 0; k < 16; ++k) {
          const float product = scale * static_cast<float>(block.q[16 * half + k]);
          values[k] = Format::kForm == BlockForm::kWithMinimum ? product - minimum : product;
        }
      }
    }
  }
}

template <typename Format>
constexpr Codec CodecOf(EncodeFunction encode) {
  return {Format::kType, Format::kForm, Decode<Format>, Unpack<Format>, encode};
}

}  // namespace facet
