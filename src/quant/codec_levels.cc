// SPDX-License-Identifier: Apache-2.0
// Types whose values are one of a few fixed levels: the 16 of IQ4 and of FP4 (E2M1), the 3 of TQ1_0
// and the 4 of TQ2_0.
#include <bit>

#include "quant/codec_blocks.h"
#include "quant/codec_tables.h"
#include "quant/encode.h"

namespace facet {
namespace {

// Twice the values of sign, two exponent bits and one of mantissa.
constexpr int8_t kE2m1Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// n bytes of nibbles to levels: value k from the low nibble of byte k, value k + n from the high
// one.
void LookUp(const int8_t (&levels)[16], const std::byte* packed, int n, int8_t* q) {
  for (int k = 0; k < n; ++k) {
    q[k] = levels[ByteAt(packed, k) & 15];
    q[k + n] = levels[ByteAt(packed, k) >> 4];
  }
}

struct IQ4NL {  // d, nibbles
  static constexpr TensorType kType = TensorType::kIQ4_NL;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 18;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    LookUp(kIq4Levels, block + 2, 16, unpacked->q);
    SetScales(LoadF16(block), 1, 1, unpacked);
  }
};

struct IQ4XS {  // d, 16 bits with the high pairs of eight scales, 4 bytes with the low nibbles,
                // nibbles
  static constexpr TensorType kType = TensorType::kIQ4_XS;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 136;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block);
    const auto high = static_cast<int>(LoadU16(block + 2));
    for (int j = 0; j < 8; ++j, ++unpacked) {
      const int low = (ByteAt(block, 4 + j / 2) >> (4 * (j % 2))) & 15;
      const int s = (low | ((high >> (2 * j)) & 3) << 4) - 32;
      LookUp(kIq4Levels, block + 8 + 16 * j, 16, unpacked->q);
      SetScales(d, s, s, unpacked);
    }
  }
};

// 2^(e - 128): half of the scale's value, because the levels are doubled. The two smallest are
// subnormal floats.
float HalfOfE8m0(int e) {
  return std::bit_cast<float>(e < 2 ? uint32_t{0x200000} << e : static_cast<uint32_t>(e - 1) << 23);
}

struct MXFP4 {  // exponent, nibbles
  static constexpr TensorType kType = TensorType::kMXFP4;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 17;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    LookUp(kE2m1Levels, block + 1, 16, unpacked->q);
    SetScales(HalfOfE8m0(ByteAt(block, 0)), 1, 1, unpacked);
  }
};

// Half of the value of four exponent bits (bias 7) and three of mantissa; the eighth bit means
// nothing. 0x7f, which would not be a number, stands for 0.
float HalfOfE4m3(int bits) {
  if (bits == 0x7f) {
    return 0.0F;
  }
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  const int significand = exponent == 0 ? mantissa : mantissa + 8;  // times 2^-3
  const int power = (exponent == 0 ? 1 : exponent) - 7 - 3 - 1;
  const auto scale = std::bit_cast<float>(static_cast<uint32_t>(power + 127) << 23);
  return static_cast<float>(significand) * scale;
}

struct NVFP4 {  // four scales, one for each 16 values, nibbles
  static constexpr TensorType kType = TensorType::kNVFP4;
  static constexpr BlockForm kForm = BlockForm::kTwoScales;
  static constexpr int kElements = 64;
  static constexpr int kBytes = 36;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    for (int j = 0; j < 2; ++j, ++unpacked) {
      SetScales(0.0F, 1, 1, unpacked);
      for (int half = 0; half < 2; ++half) {
        const int i = 2 * j + half;
        LookUp(kE2m1Levels, block + 4 + 8 * i, 8, unpacked->q + 16 * half);
        unpacked->d[half] = HalfOfE4m3(ByteAt(block, i));
      }
    }
  }
};

struct TQ1_0 {  // 52 bytes of base-3 digits, d
  static constexpr TensorType kType = TensorType::kTQ1_0;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 54;
  // Digit i of the fraction bytes / 256 in base 3, less 1, for n bytes and n_digits digits: value
  // n · i + k from byte k.
  static int8_t* Digits(const std::byte* packed, int n, int n_digits, int8_t* q) {
    int power = 1;
    for (int i = 0; i < n_digits; ++i, power *= 3) {
      for (int k = 0; k < n; ++k) {
        const int rest = (ByteAt(packed, k) * power) & 255;
        *q++ = static_cast<int8_t>((rest * 3 >> 8) - 1);
      }
    }
    return q;
  }
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    int8_t values[kElements];
    int8_t* q = Digits(block, 32, 5, values);
    q = Digits(block + 32, 16, 5, q);
    Digits(block + 48, 4, 4, q);
    const float d = LoadF16(block + 52);
    for (int j = 0; j < 8; ++j) {
      std::memcpy(unpacked[j].q, values + 32 * j, 32);
      SetScales(d, 1, 1, unpacked + j);
    }
  }
};

struct TQ2_0 {  // 64 bytes of pairs, d
  static constexpr TensorType kType = TensorType::kTQ2_0;
  static constexpr BlockForm kForm = BlockForm::kScaled;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 66;
  static void Unpack(const std::byte* block, UnpackedBlock* unpacked) {
    const float d = LoadF16(block + 64);
    for (int j = 0; j < 8; ++j, ++unpacked) {
      const std::byte* bytes = block + 32 * (j / 4);
      const int shift = 2 * (j % 4);
      for (int k = 0; k < 32; ++k) {
        unpacked->q[k] = static_cast<int8_t>(((ByteAt(bytes, k) >> shift) & 3) - 1);
      }
      SetScales(d, 1, 1, unpacked);
    }
  }
};

}  // namespace

const Codec kIQ4_NLCodec = CodecOf<IQ4NL>(EncodeIQ4_NL);
const Codec kIQ4_XSCodec = CodecOf<IQ4XS>(EncodeIQ4_XS);
const Codec kMXFP4Codec = CodecOf<MXFP4>(EncodeMXFP4);
const Codec kNVFP4Codec = CodecOf<NVFP4>(nullptr);
const Codec kTQ1_0Codec = CodecOf<TQ1_0>(nullptr);
const Codec kTQ2_0Codec = CodecOf<TQ2_0>(nullptr);

}  // namespace facet
