// SPDX-License-Identifier: Apache-2.0
// Q8_0, Q4_0, Q4_1, Q5_0, Q5_1: blocks of 32 values that share a float16 scale and, in the types
// that end in 1, a float16 offset. The encoders follow ggml's reference rules, so that a file made
// here equals one made there; values that are not finite give some block, never undefined
// behaviour.
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/codec_blocks.h"
#include "quant/codec_tables.h"

namespace facet {
namespace {

constexpr int kBlock = 32;
constexpr int kQ8Bytes = 34;
constexpr int kQ4Bytes = 18;

// value = d · q + offset: the offset is a minimum of weight 1 with its sign turned.
void SetScaleAndOffset(float d, float offset, UnpackedBlock* unpacked) {
  SetScales(d, 1, 1, unpacked);
  unpacked->m[0] = unpacked->m[1] = 1;
  unpacked->dmin = -offset;
}

// Adds bit k of `high` to value k as its fifth bit.
void AddFifthBits(uint32_t high, int8_t* q) {
  for (int k = 0; k < kBlock; ++k) {
    q[k] = static_cast<int8_t>(q[k] | static_cast<int>((high >> k) & 1) << 4);
  }
}

void Subtract(int offset, int8_t* q) {
  for (int k = 0; k < kBlock; ++k) {
    q[k] = static_cast<int8_t>(q[k] - offset);
  }
}

struct Q8_0 {  // d, 32 int8
  static constexpr TensorType kType = TensorType::kQ8_0;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = kQ8Bytes;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    std::memcpy(unpacked->q, block + 2, kBlock);
    SetScales(LoadF16(block), 1, 1, unpacked);
  }
};

struct Q4_0 {  // d, nibbles
  static constexpr TensorType kType = TensorType::kQ4_0;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = kQ4Bytes;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    UnpackNibbles(block + 2, unpacked->q);
    Subtract(8, unpacked->q);
    SetScales(LoadF16(block), 1, 1, unpacked);
  }
};

struct Q4_1 {  // d, offset, nibbles
  static constexpr TensorType kType = TensorType::kQ4_1;
  static constexpr BlockForm kForm = BlockForm::kWithMinimum;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 20;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    UnpackNibbles(block + 4, unpacked->q);
    SetScaleAndOffset(LoadF16(block), LoadF16(block + 2), unpacked);
  }
};

struct Q5_0 {  // d, 32 fifth bits, nibbles
  static constexpr TensorType kType = TensorType::kQ5_0;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 22;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    UnpackNibbles(block + 6, unpacked->q);
    AddFifthBits(LoadU32(block + 2), unpacked->q);
    Subtract(16, unpacked->q);
    SetScales(LoadF16(block), 1, 1, unpacked);
  }
};

struct Q5_1 {  // d, offset, 32 fifth bits, nibbles
  static constexpr TensorType kType = TensorType::kQ5_1;
  static constexpr BlockForm kForm = BlockForm::kWithMinimum;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 24;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    UnpackNibbles(block + 8, unpacked->q);
    AddFifthBits(LoadU32(block + 4), unpacked->q);
    SetScaleAndOffset(LoadF16(block), LoadF16(block + 2), unpacked);
  }
};

void StoreScale(float scale, std::byte* block) {
  const uint16_t bits = F16FromFloat(scale);
  std::memcpy(block, &bits, sizeof(bits));
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

const Codec kQ8_0Codec = CodecOf<Q8_0>(EncodeQ8);
const Codec kQ4_0Codec = CodecOf<Q4_0>(EncodeQ4);
const Codec kQ4_1Codec = CodecOf<Q4_1>(nullptr);
const Codec kQ5_0Codec = CodecOf<Q5_0>(nullptr);
const Codec kQ5_1Codec = CodecOf<Q5_1>(nullptr);

}  // namespace facet
