// SPDX-License-Identifier: Apache-2.0
// Q8_0, Q4_0, Q4_1, Q5_0, Q5_1: blocks of 32 values that share a float16 scale and, in the types
// that end in 1, a float16 offset.
#include "quant/codec_blocks.h"
#include "quant/codec_tables.h"
#include "quant/encode.h"

namespace facet {
namespace {

constexpr int kBlock = 32;

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
  static constexpr int kBytes = 34;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    std::memcpy(unpacked->q, block + 2, kBlock);
    SetScales(LoadF16(block), 1, 1, unpacked);
  }
};

struct Q4_0 {  // d, nibbles
  static constexpr TensorType kType = TensorType::kQ4_0;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 18;
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

}  // namespace

const Codec kQ8_0Codec = CodecOf<Q8_0>(EncodeQ8_0);
const Codec kQ4_0Codec = CodecOf<Q4_0>(EncodeQ4_0);
const Codec kQ4_1Codec = CodecOf<Q4_1>(EncodeQ4_1);
const Codec kQ5_0Codec = CodecOf<Q5_0>(EncodeQ5_0);
const Codec kQ5_1Codec = CodecOf<Q5_1>(EncodeQ5_1);

}  // namespace facet
