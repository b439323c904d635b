// SPDX-License-Identifier: Apache-2.0
#include "quant/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "format/gguf.h"
#include "format/safetensors.h"
#include "support/testing.h"

namespace facet {
namespace {

constexpr int64_t kElements = 8 * 512;

using T = TensorType;

// With goldens in testdata/text/quant.
constexpr T kCommonTypes[] = {T::kF32,   T::kF16,   T::kBF16,  T::kQ8_0,   T::kQ4_0,
                              T::kQ4_1,  T::kQ5_0,  T::kQ5_1,  T::kQ2_K,   T::kQ3_K,
                              T::kQ4_K,  T::kQ5_K,  T::kQ6_K,  T::kIQ4_NL, T::kIQ4_XS,
                              T::kMXFP4, T::kNVFP4, T::kTQ1_0, T::kTQ2_0};
// With goldens in testdata/quant-iq.
constexpr T kGridTypes[] = {T::kIQ3_S,   T::kIQ3_XXS, T::kIQ2_S, T::kIQ2_XS,
                            T::kIQ2_XXS, T::kIQ1_S,   T::kIQ1_M};

std::string TypeName(TensorType type) { return std::string(InfoOf(type).name); }

std::string TestName(const ::testing::TestParamInfo<TensorType>& test) {
  return TypeName(test.param);
}

/// Blocks and what they decode to.
class Goldens {
 public:
  explicit Goldens(const std::string& folder)
      : blocks_(*gguf::File::Open(testing::TestdataPath(folder + "/blocks.gguf"))),
        values_(*safetensors::File::Open(testing::TestdataPath(folder + "/values.safetensors"))) {}

  [[nodiscard]] std::vector<std::byte> Blocks(const std::string& name) const {
    const auto* tensor = blocks_.Find(name);
    EXPECT_NE(tensor, nullptr) << name;
    return tensor == nullptr ? std::vector<std::byte>()
                             : std::vector<std::byte>(tensor->data.begin(), tensor->data.end());
  }

  [[nodiscard]] std::vector<float> Values(const std::string& name) const {
    const auto* tensor = values_.Find(name);
    EXPECT_NE(tensor, nullptr) << name;
    std::vector<float> values(static_cast<size_t>(kElements));
    if (tensor != nullptr && tensor->data.size() == values.size() * sizeof(float)) {
      std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
    }
    return values;
  }

 private:
  gguf::File blocks_;
  safetensors::File values_;
};

void ExpectDecodes(TensorType type, const std::vector<std::byte>& blocks,
                   const std::vector<float>& wanted) {
  ASSERT_EQ(blocks.size(), static_cast<size_t>(BytesOf(type, kElements)));
  std::vector<float> found(wanted.size());
  FindCodec(type)->decode(blocks.data(), kElements, found.data());
  EXPECT_EQ(std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)), 0);
}

class CommonCodecTest : public ::testing::TestWithParam<TensorType> {};

TEST_P(CommonCodecTest, DecodesWhatGgmlDecodes) {
  const Goldens goldens("text/quant");
  const std::string name = TypeName(GetParam());
  ExpectDecodes(GetParam(), goldens.Blocks("t." + name), goldens.Values(name));
}

INSTANTIATE_TEST_SUITE_P(Types, CommonCodecTest, ::testing::ValuesIn(kCommonTypes), TestName);

class GridCodecTest : public ::testing::TestWithParam<TensorType> {};

// t: quantised by ggml; r: random bytes, which reach every point of a grid and every scale.
TEST_P(GridCodecTest, DecodesWhatGgmlDecodes) {
  const Goldens goldens("quant-iq");
  for (const char* prefix : {"t.", "r."}) {
    const std::string name = prefix + TypeName(GetParam());
    SCOPED_TRACE(name);
    ExpectDecodes(GetParam(), goldens.Blocks(name), goldens.Values(name));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GridCodecTest, ::testing::ValuesIn(kGridTypes), TestName);

class ExactEncoderTest : public ::testing::TestWithParam<TensorType> {};

TEST_P(ExactEncoderTest, EncodesWhatGgmlEncodes) {
  const Goldens goldens("text/quant");
  const std::vector<std::byte> wanted = goldens.Blocks("t." + TypeName(GetParam()));
  const std::vector<float> source = goldens.Values("source");
  std::vector<std::byte> found(wanted.size());
  FindCodec(GetParam())->encode(source.data(), nullptr, kElements, found.data());
  EXPECT_EQ(found, wanted);
}

// Whatever comes from a computation: no undefined behaviour, and a zero block stays zero.
TEST_P(ExactEncoderTest, TakesAnyValues) {
  const Codec* codec = FindCodec(GetParam());
  const int64_t n = 2 * 256;
  std::vector<std::byte> bytes(static_cast<size_t>(BytesOf(GetParam(), n)));
  const float inf = std::numeric_limits<float>::infinity();
  const float extremes[] = {
      inf, -inf, std::numeric_limits<float>::quiet_NaN(), 3.4e38f, 1e-45f, -1e-40f, -3.4e38f, 0.0f};
  for (const float extreme : extremes) {
    std::vector<float> values(static_cast<size_t>(n), 0.0f);
    values[3] = extreme;
    values[40] = -extreme;
    values[41] = 1.0f;
    codec->encode(values.data(), nullptr, n, bytes.data());
    codec->decode(bytes.data(), n, values.data());
    EXPECT_EQ(values[300], 0.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ExactEncoderTest,
                         ::testing::Values(T::kF32, T::kF16, T::kBF16, T::kQ8_0, T::kQ4_0),
                         TestName);

class CodecTest : public ::testing::TestWithParam<TensorType> {};

// Whatever stands in a file: no undefined behaviour, integers within the limits that products rely
// on, and decoded values that are what the unpacked blocks say.
TEST_P(CodecTest, TakesAnyBlocks) {
  const Codec* codec = FindCodec(GetParam());
  std::vector<std::byte> bytes(static_cast<size_t>(BytesOf(GetParam(), 256)));
  std::vector<float> values(256);
  std::vector<UnpackedBlock> unpacked(8);
  for (uint64_t round = 0; round < 300; ++round) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const uint64_t random = RandomBits(round, i);
      bytes[i] = static_cast<std::byte>(round == 0 ? 0xff : random);
    }
    codec->decode(bytes.data(), 256, values.data());
    if (codec->unpack == nullptr) {
      continue;
    }
    codec->unpack(bytes.data(), 256, unpacked.data());
    for (size_t k = 0; k < 256; ++k) {
      const UnpackedBlock& block = unpacked[k / 32];
      const size_t half = k / 16 % 2;
      ASSERT_LE(std::abs(block.s[half]), 128);
      ASSERT_GE(block.m[half], 0);
      ASSERT_LE(block.m[half], 63);
      const double wanted = static_cast<double>(block.d[half]) * block.s[half] * block.q[k % 32] -
                            static_cast<double>(block.dmin) * block.m[half];
      const auto rounded = static_cast<float>(wanted);
      if (std::isfinite(rounded)) {
        ASSERT_EQ(values[k], rounded) << "value " << k;
      }
    }
  }
}

// The fields that the form says are not used are neutral.
TEST_P(CodecTest, UnpacksInItsForm) {
  const Codec* codec = FindCodec(GetParam());
  if (codec->unpack == nullptr) {
    EXPECT_EQ(InfoOf(GetParam()).block_elements, 1);
    return;
  }
  const std::vector<std::byte> bytes(static_cast<size_t>(BytesOf(GetParam(), 256)),
                                     std::byte{0x35});
  std::vector<UnpackedBlock> unpacked(8);
  codec->unpack(bytes.data(), 256, unpacked.data());
  for (const UnpackedBlock& block : unpacked) {
    if (codec->form == BlockForm::kTwoScales) {
      EXPECT_EQ(block.s[0], 1);
      EXPECT_EQ(block.s[1], 1);
    } else {
      EXPECT_EQ(block.d[0], block.d[1]);
    }
    if (codec->form == BlockForm::kWithMinimum) {
      EXPECT_NE(block.dmin, 0.0f);
    } else {
      EXPECT_EQ(block.dmin, 0.0f);
      EXPECT_EQ(block.m[0], 0);
      EXPECT_EQ(block.m[1], 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Common, CodecTest, ::testing::ValuesIn(kCommonTypes), TestName);
INSTANTIATE_TEST_SUITE_P(Grid, CodecTest, ::testing::ValuesIn(kGridTypes), TestName);

TEST(FindCodec, KnowsOnlyTheSupportedTypes) {
  for (const T type : {T::kQ8_1, T::kQ8_K, T::kI8, T::kI32, T::kI64, T::kF64}) {
    EXPECT_EQ(FindCodec(type), nullptr) << TypeName(type);
  }
  ASSERT_NE(FindCodec(T::kQ8_0), nullptr);
  EXPECT_EQ(FindCodec(T::kQ8_0)->type, T::kQ8_0);
}

}  // namespace
}  // namespace facet
