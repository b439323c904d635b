// SPDX-License-Identifier: Apache-2.0
// Q2_K to Q6_K: blocks of 256 values whose sub-blocks have integer scales, in half of the types
// also integer minima. Layouts: docs/quantization.md.
#include "quant/codec_blocks.h"
#include "quant/codec_tables.h"
#include "quant/encode.h"

namespace facet {
namespace {

constexpr int kBlock = 256;
constexpr int kGroups = 8;  // of 32 values

void SetMinima(float dmin, int m0, int m1, UnpackedBlock* unpacked) {
  unpacked->m[0] = m0;
  unpacked->m[1] = m1;
  unpacked->dmin = dmin;
}

// 32 values of two bits: those of group j lie at bits 2 (j % 4) of the 32 bytes of its half.
void UnpackPairs(const std::byte* packed, int j, int8_t* q) {
  const std::byte* bytes = packed + 32 * (j / 4);
  const int shift = 2 * (j % 4);
  for (int k = 0; k < 32; ++k) {
    q[k] = static_cast<int8_t>((ByteAt(bytes, k) >> shift) & 3);
  }
}

struct Q2K {  // 16 bytes of scales (low nibbles) and minima (high), 64 of pairs, d, dmin
  static constexpr TensorType kType = TensorType::kQ2_K;
  static constexpr BlockForm kForm = BlockForm::kWithMinimum;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 84;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block + 80);
    const float dmin = LoadF16(block + 82);
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      const int first = ByteAt(block, 2 * j);
      const int second = ByteAt(block, 2 * j + 1);
      UnpackPairs(block + 16, j, unpacked->q);
      SetScales(d, first & 15, second & 15, unpacked);
      SetMinima(dmin, first >> 4, second >> 4, unpacked);
    }
  }
};

struct Q3K {  // 32 bytes of third bits, 64 of pairs, 12 of scales, d
  static constexpr TensorType kType = TensorType::kQ3_K;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 110;
  // Six bits each: the low four in the nibbles of bytes 0 to 7, the high two in bytes 8 to 11.
  static int Scale(const std::byte* packed, int i) {
    const int low = (ByteAt(packed, i % 8) >> (4 * (i / 8))) & 15;
    const int high = (ByteAt(packed, 8 + i % 4) >> (2 * (i / 4))) & 3;
    return (low | high << 4) - 32;
  }
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block + 108);
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      UnpackPairs(block + 32, j, unpacked->q);
      for (int k = 0; k < 32; ++k) {  // a third bit that is clear takes 4 away
        const int third = (ByteAt(block, k) >> j) & 1;
        unpacked->q[k] = static_cast<int8_t>(unpacked->q[k] + 4 * third - 4);
      }
      SetScales(d, Scale(block + 96, 2 * j), Scale(block + 96, 2 * j + 1), unpacked);
    }
  }
};

// Eight 6-bit scales and minima in 12 bytes.
struct ScaleAndMinimum {
  int scale;
  int minimum;
};

ScaleAndMinimum UnpackScale(const std::byte* packed, int j) {
  if (j < 4) {
    return {ByteAt(packed, j) & 63, ByteAt(packed, j + 4) & 63};
  }
  return {(ByteAt(packed, j + 4) & 15) | ((ByteAt(packed, j - 4) >> 6) << 4),
          (ByteAt(packed, j + 4) >> 4) | ((ByteAt(packed, j) >> 6) << 4)};
}

// What Q4_K and Q5_K share: d, dmin and the scales at the beginning; nibbles of group j in the 32
// bytes at 32 (j / 2).
void UnpackScaledNibbles(const std::byte* block, const std::byte* nibbles, int j,
                         UnpackedBlock* unpacked) {
  const auto [s, m] = UnpackScale(block + 4, j);
  SetScales(LoadF16(block), s, s, unpacked);
  SetMinima(LoadF16(block + 2), m, m, unpacked);
  const std::byte* bytes = nibbles + 32 * (j / 2);
  const int shift = 4 * (j % 2);
  for (int k = 0; k < 32; ++k) {
    unpacked->q[k] = static_cast<int8_t>((ByteAt(bytes, k) >> shift) & 15);
  }
}

struct Q4K {  // d, dmin, 12 bytes of scales and minima, 128 of nibbles
  static constexpr TensorType kType = TensorType::kQ4_K;
  static constexpr BlockForm kForm = BlockForm::kWithMinimum;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 144;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    for (int j = 0; j < kGroups; ++j) {
      UnpackScaledNibbles(block, block + 16, j, unpacked + j);
    }
  }
};

struct Q5K {  // d, dmin, 12 bytes of scales and minima, 32 of fifth bits, 128 of nibbles
  static constexpr TensorType kType = TensorType::kQ5_K;
  static constexpr BlockForm kForm = BlockForm::kWithMinimum;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 176;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      UnpackScaledNibbles(block, block + 48, j, unpacked);
      for (int k = 0; k < 32; ++k) {
        const int fifth = (ByteAt(block, 16 + k) >> j) & 1;
        unpacked->q[k] = static_cast<int8_t>(unpacked->q[k] | fifth << 4);
      }
    }
  }
};

struct Q6K {  // 128 bytes of low nibbles, 64 of high pairs, 16 int8 scales, d
  static constexpr TensorType kType = TensorType::kQ6_K;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 210;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block + 208);
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      int8_t high[32];
      UnpackPairs(block + 128, j, high);
      const std::byte* low = block + 64 * (j / 4) + 32 * (j % 2);
      const int shift = j % 4 / 2 * 4;
      for (int k = 0; k < 32; ++k) {
        const int nibble = (ByteAt(low, k) >> shift) & 15;
        unpacked->q[k] = static_cast<int8_t>((nibble | high[k] << 4) - 32);
      }
      SetScales(d, static_cast<int8_t>(block[192 + 2 * j]), static_cast<int8_t>(block[193 + 2 * j]),
                unpacked);
    }
  }
};

}  // namespace

const Codec kQ2_KCodec = CodecOf<Q2K>(EncodeQ2_K);
const Codec kQ3_KCodec = CodecOf<Q3K>(EncodeQ3_K);
const Codec kQ4_KCodec = CodecOf<Q4K>(EncodeQ4_K);
const Codec kQ5_KCodec = CodecOf<Q5K>(EncodeQ5_K);
const Codec kQ6_KCodec = CodecOf<Q6K>(EncodeQ6_K);

}  // namespace facet
