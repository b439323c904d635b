// SPDX-License-Identifier: Apache-2.0
// IQ3_S, IQ3_XXS, IQ2_S, IQ2_XS, IQ2_XXS, IQ1_S, IQ1_M: blocks of 256 values that are named in
// groups of 4 or 8 by a point of a grid. The levels of IQ2 and IQ3 are magnitudes and have signs
// beside them. Scales are odd integers 2 s + 1 times a fraction of d.
#include <array>
#include <bit>

#include "quant/codec_blocks.h"
#include "quant/codec_tables.h"
#include "quant/grids.h"

namespace facet {
namespace {

constexpr int kBlock = 256;
constexpr int kGroups = 8;  // of 32 values

// Eight coordinates, in the bytes of a word, with the signs of eight bits: a set bit turns one
// around. No magnitude is 0, so that no byte of the sum carries into the next.
void PutSigned(uint64_t magnitudes, uint32_t signs, int8_t* q) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kOneBitEach = 0x8040201008040201;
  const uint64_t is_bit = (signs & 255) * kOnes & kOneBitEach;
  const uint64_t is_negative = (is_bit + 127 * kOnes) >> 7 & kOnes;
  const uint64_t values = (magnitudes ^ is_negative * 255) + is_negative;
  std::memcpy(q, &values, sizeof(values));
}

uint64_t Pair(const std::array<int8_t, 4>& first, const std::array<int8_t, 4>& second) {
  return std::bit_cast<uint32_t>(first) | uint64_t{std::bit_cast<uint32_t>(second)} << 32;
}

// Seven signs are stored; the eighth makes their number even.
uint32_t EightSigns(uint32_t seven) {
  seven &= 127;
  uint32_t parity = seven ^ (seven >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return seven | (parity & 1) << 7;
}

int OddScale(uint32_t s) { return static_cast<int>(2 * s + 1); }

uint32_t Bits(const std::byte* bytes, int i) { return static_cast<uint32_t>(bytes[i]); }

struct IQ3XXS {  // d, 64 indices, eight words of 4 × 7 signs and a 4-bit scale
  static constexpr TensorType kType = TensorType::kIQ3_XXS;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 98;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block) * 0.25F;
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      const std::byte* indices = block + 2 + 8 * j;
      const uint32_t word = LoadU32(block + 66 + 4 * j);
      for (int i = 0; i < 4; ++i) {
        const uint64_t magnitudes =
            Pair(kIq3XxsGrid[Bits(indices, 2 * i)], kIq3XxsGrid[Bits(indices, 2 * i + 1)]);
        PutSigned(magnitudes, EightSigns(word >> (7 * i)), unpacked->q + 8 * i);
      }
      const int s = OddScale(word >> 28);
      SetScales(d, s, s, unpacked);
    }
  }
};

struct IQ3S {  // d, 64 low bytes of indices, 8 bytes with their ninth bits, 32 of signs, 4 of
               // scales
  static constexpr TensorType kType = TensorType::kIQ3_S;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 110;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block);
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      const std::byte* indices = block + 2 + 8 * j;
      const uint32_t ninths = Bits(block, 66 + j) << 8;
      for (int i = 0; i < 8; i += 2) {
        const uint32_t first = Bits(indices, i) | (ninths >> i & 256);
        const uint32_t second = Bits(indices, i + 1) | (ninths >> (i + 1) & 256);
        PutSigned(Pair(kIq3SGrid[first], kIq3SGrid[second]), Bits(block, 74 + 4 * j + i / 2),
                  unpacked->q + 4 * i);
      }
      const int s = OddScale(Bits(block, 106 + j / 2) >> (4 * (j % 2)) & 15);
      SetScales(d, s, s, unpacked);
    }
  }
};

struct IQ2XXS {  // d, eight pairs of words: 4 indices; 4 × 7 signs and a 4-bit scale
  static constexpr TensorType kType = TensorType::kIQ2_XXS;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 66;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block) * 0.125F;
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      const std::byte* indices = block + 2 + 8 * j;
      const uint32_t word = LoadU32(indices + 4);
      for (int i = 0; i < 4; ++i) {
        PutSigned(std::bit_cast<uint64_t>(kIq2XxsGrid[Bits(indices, i)]),
                  EightSigns(word >> (7 * i)), unpacked->q + 8 * i);
      }
      const int s = OddScale(word >> 28);
      SetScales(d, s, s, unpacked);
    }
  }
};

// The two 4-bit scales of IQ2_XS and IQ2_S for the halves of 32 values.
void SetNibbleScales(float d, uint32_t nibbles, UnpackedBlock* unpacked) {
  SetScales(d, OddScale(nibbles & 15), OddScale(nibbles >> 4), unpacked);
}

struct IQ2XS {  // d, 32 × 16 bits: index of 9 and 7 signs, 8 bytes of scales
  static constexpr TensorType kType = TensorType::kIQ2_XS;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 74;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block) * 0.125F;
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      for (int i = 0; i < 4; ++i) {
        const uint32_t pair = LoadU16(block + 2 + 8 * j + 2 * i);
        PutSigned(std::bit_cast<uint64_t>(kIq2XsGrid[pair & 511]), EightSigns(pair >> 9),
                  unpacked->q + 8 * i);
      }
      SetNibbleScales(d, Bits(block, 66 + j), unpacked);
    }
  }
};

struct IQ2S {  // d, 32 low bytes of indices, 32 of signs, 8 with the high pairs, 8 of scales
  static constexpr TensorType kType = TensorType::kIQ2_S;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 82;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block) * 0.125F;
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      const uint32_t high = Bits(block, 66 + j);
      for (int i = 0; i < 4; ++i) {
        const uint32_t index = Bits(block, 2 + 4 * j + i) | (high >> (2 * i) & 3) << 8;
        PutSigned(std::bit_cast<uint64_t>(kIq2SGrid[index]), Bits(block, 34 + 4 * j + i),
                  unpacked->q + 8 * i);
      }
      SetNibbleScales(d, Bits(block, 74 + j), unpacked);
    }
  }
};

// value = d (g ± 1/8), g of -1, 0, 1: in eighths, the level of the grid and one more or less.
void PutShifted(const std::array<int8_t, 8>& point, bool is_less, int8_t* q) {
  const int shift = is_less ? -1 : 1;
  for (size_t k = 0; k < 8; ++k) {
    q[k] = static_cast<int8_t>(point[k] + shift);
  }
}

struct IQ1S {  // d, 32 low bytes of indices, 8 × 16 bits: 4 × 3 high bits, a scale of 3, the shift
  static constexpr TensorType kType = TensorType::kIQ1_S;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 50;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block) * 0.125F;
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      const uint32_t high = LoadU16(block + 34 + 2 * j);
      for (int i = 0; i < 4; ++i) {
        const uint32_t index = Bits(block, 2 + 4 * j + i) | (high >> (3 * i) & 7) << 8;
        PutShifted(kIq1Grid[index], high >> 15 != 0, unpacked->q + 8 * i);
      }
      const int s = OddScale(high >> 12 & 7);
      SetScales(d, s, s, unpacked);
    }
  }
};

struct IQ1M {  // 32 low bytes of indices, 32 nibbles: 3 high bits and the shift; 4 × 16 bits: 4
               // scales of 3 bits, a quarter of d
  static constexpr TensorType kType = TensorType::kIQ1_M;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = kBlock;
  static constexpr int kBytes = 56;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    uint32_t d_bits = 0;
    for (int i = 0; i < 4; ++i) {
      d_bits |= LoadU16(block + 48 + 2 * i) >> 12 << (4 * i);
    }
    const float d = FloatFromF16(static_cast<uint16_t>(d_bits)) * 0.125F;
    for (int j = 0; j < kGroups; ++j, ++unpacked) {
      for (int i = 0; i < 4; ++i) {
        const uint32_t high = Bits(block, 32 + 2 * j + i / 2) >> (4 * (i % 2)) & 15;
        const uint32_t index = Bits(block, 4 * j + i) | (high & 7) << 8;
        PutShifted(kIq1Grid[index], high >> 3 != 0, unpacked->q + 8 * i);
      }
      const uint32_t scales = LoadU16(block + 48 + 2 * (j / 2)) >> (6 * (j % 2));
      SetScales(d, OddScale(scales & 7), OddScale(scales >> 3 & 7), unpacked);
    }
  }
};

}  // namespace

const Codec kIQ3_SCodec = CodecOf<IQ3S>(nullptr);
const Codec kIQ3_XXSCodec = CodecOf<IQ3XXS>(nullptr);
const Codec kIQ2_SCodec = CodecOf<IQ2S>(nullptr);
const Codec kIQ2_XSCodec = CodecOf<IQ2XS>(nullptr);
const Codec kIQ2_XXSCodec = CodecOf<IQ2XXS>(nullptr);
const Codec kIQ1_SCodec = CodecOf<IQ1S>(nullptr);
const Codec kIQ1_MCodec = CodecOf<IQ1M>(nullptr);

}  // namespace facet
