// SPDX-License-Identifier: Apache-2.0
#include "quant/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "format/gguf.h"
#include "format/safetensors.h"
#include "support/testing.h"

namespace facet {
namespace {

constexpr int64_t kElements = 8 * 512;

std::string TypeName(TensorType type) { return std::string(InfoOf(type).name); }

class CodecTest : public ::testing::TestWithParam<TensorType> {
 protected:
  void SetUp() override {
    auto blocks = gguf::File::Open(testing::TestdataPath("text/quant/blocks.gguf"));
    ASSERT_TRUE(blocks.ok()) << blocks.error().Message();
    auto values = safetensors::File::Open(testing::TestdataPath("text/quant/values.safetensors"));
    ASSERT_TRUE(values.ok()) << values.error().Message();
    blocks_.emplace(*std::move(blocks));
    values_.emplace(*std::move(values));
  }

  // The bytes of a tensor of values.safetensors as floats.
  std::vector<float> Values(const std::string& name) const {
    const auto* view = values_->Find(name);
    EXPECT_NE(view, nullptr) << name;
    std::vector<float> values(static_cast<size_t>(kElements));
    if (view != nullptr && view->data.size() == values.size() * sizeof(float)) {
      std::memcpy(values.data(), view->data.data(), view->data.size());
    }
    return values;
  }

  std::optional<gguf::File> blocks_;
  std::optional<safetensors::File> values_;
};

TEST_P(CodecTest, DecodesWhatGgmlDecodes) {
  const auto* tensor = blocks_->Find("t." + TypeName(GetParam()));
  ASSERT_NE(tensor, nullptr);
  ASSERT_EQ(tensor->data.size(), static_cast<size_t>(BytesOf(GetParam(), kElements)));
  const std::vector<float> wanted = Values(TypeName(GetParam()));
  std::vector<float> found(wanted.size());
  FindCodec(GetParam())->decode(tensor->data.data(), kElements, found.data());
  EXPECT_EQ(std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)), 0);
}

TEST_P(CodecTest, EncodesWhatGgmlEncodes) {
  const Codec* codec = FindCodec(GetParam());
  if (codec->encode == nullptr) {
    EXPECT_TRUE(GetParam() == TensorType::kQ4_K || GetParam() == TensorType::kQ6_K);
    return;
  }
  const auto* tensor = blocks_->Find("t." + TypeName(GetParam()));
  ASSERT_NE(tensor, nullptr);
  const std::vector<float> source = Values("source");
  std::vector<std::byte> found(tensor->data.size());
  codec->encode(source.data(), nullptr, kElements, found.data());
  EXPECT_EQ(std::memcmp(found.data(), tensor->data.data(), found.size()), 0);
}

// Whatever stands in a file or comes from a computation: no undefined behaviour, and a zero block
// stays zero.
TEST_P(CodecTest, TakesAnyInput) {
  const Codec* codec = FindCodec(GetParam());
  std::vector<std::byte> bytes(static_cast<size_t>(BytesOf(GetParam(), 256)), std::byte{0xff});
  std::vector<float> values(256);
  codec->decode(bytes.data(), 256, values.data());
  if (codec->encode == nullptr) {
    return;
  }
  const float inf = std::numeric_limits<float>::infinity();
  const float extremes[] = {
      inf, -inf, std::numeric_limits<float>::quiet_NaN(), 3.4e38f, 1e-45f, -1e-40f, -3.4e38f, 0.0f};
  for (const float extreme : extremes) {
    values.assign(256, 0.0f);
    values[3] = extreme;
    values[40] = -extreme;
    values[41] = 1.0f;
    codec->encode(values.data(), nullptr, 256, bytes.data());
    codec->decode(bytes.data(), 256, values.data());
    EXPECT_EQ(values[128], 0.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CodecTest,
                         ::testing::Values(TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                           TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_K,
                                           TensorType::kQ6_K),
                         [](const auto& test) { return TypeName(test.param); });

TEST(FindCodec, KnowsOnlyTheSupportedTypes) {
  EXPECT_EQ(FindCodec(TensorType::kQ2_K), nullptr);
  EXPECT_EQ(FindCodec(TensorType::kI32), nullptr);
  ASSERT_NE(FindCodec(TensorType::kQ8_0), nullptr);
  EXPECT_EQ(FindCodec(TensorType::kQ8_0)->type, TensorType::kQ8_0);
}

}  // namespace
}  // namespace facet
