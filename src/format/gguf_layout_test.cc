// SPDX-License-Identifier: Apache-2.0
#include "format/gguf_layout.h"

#include <gtest/gtest.h>

namespace facet::gguf {
namespace {

std::string SizeError(TensorType type, const std::vector<int64_t>& shape) {
  const auto size = TensorBytes("t", type, shape);
  return size.ok() ? "no error" : size.error().Message();
}

TEST(GgufLayoutTest, SizesOfTensors) {
  EXPECT_EQ(*TensorBytes("t", TensorType::kF32, {1}), 4u);
  EXPECT_EQ(*TensorBytes("t", TensorType::kQ4_0, {3, 64}), 108u);
  EXPECT_EQ(*TensorBytes("t", TensorType::kQ6_K, {2, 3, 4, 256}), 24u * 210);
  // The limit itself, whose bytes fit no int64_t.
  EXPECT_EQ(*TensorBytes("t", TensorType::kF64, {int64_t{1} << 60}), uint64_t{1} << 63);
}

TEST(GgufLayoutTest, RefusesShapes) {
  EXPECT_EQ(SizeError(TensorType::kF32, {}), "t: 0 dimensions, wanted 1 to 4");
  EXPECT_EQ(SizeError(TensorType::kF32, {1, 1, 1, 1, 1}), "t: 5 dimensions, wanted 1 to 4");
  EXPECT_EQ(SizeError(TensorType::kF32, {4, 0}), "t: shape [4, 0], wanted dimensions of 1 or more");
  EXPECT_EQ(SizeError(TensorType::kF32, {INT64_MIN}),
            "t: shape [-9223372036854775808], wanted dimensions of 1 or more");
  EXPECT_EQ(SizeError(TensorType::kF32, {(int64_t{1} << 60) + 1}),
            "t: shape [1152921504606846977], wanted at most 2^60 elements");
  // The product is 2^64, which an unchecked multiplication would make 0.
  EXPECT_EQ(SizeError(TensorType::kF32, {int64_t{1} << 32, int64_t{1} << 32}),
            "t: shape [4294967296, 4294967296], wanted at most 2^60 elements");
  EXPECT_EQ(SizeError(TensorType::kF32, {INT64_MAX, -1}),
            "t: shape [9223372036854775807, -1], wanted dimensions of 1 or more");
  EXPECT_EQ(SizeError(TensorType::kQ4_0, {32, 33}),
            "t: rows of 33 elements of Q4_0, wanted a multiple of 32");
  EXPECT_EQ(SizeError(TensorType::kQ4_K, {256, 128}),
            "t: rows of 128 elements of Q4_K, wanted a multiple of 256");
}

TEST(GgufLayoutTest, Alignment) {
  const auto error_of = [](Value value) {
    Metadata metadata;
    metadata.Set("general.alignment", std::move(value));
    const auto alignment = AlignmentOf(metadata, "f");
    return alignment.ok() ? std::to_string(*alignment) : alignment.error().Message();
  };
  EXPECT_EQ(*AlignmentOf({}, "f"), 32u);
  EXPECT_EQ(error_of(Value::U32(8)), "8");
  EXPECT_EQ(error_of(Value::U32(65536)), "65536");
  for (const uint32_t bad : {0u, 4u, 33u, 96u, 131072u, 0x80000000u}) {
    EXPECT_EQ(error_of(Value::U32(bad)), "f, key \"general.alignment\": " + std::to_string(bad) +
                                             ", wanted a power of two from 8 to 65536");
  }
  EXPECT_EQ(error_of(Value::String("32")),
            "f, key \"general.alignment\": type string, wanted uint32");
  EXPECT_EQ(AlignUp(0, 32), 0u);
  EXPECT_EQ(AlignUp(1, 32), 32u);
  EXPECT_EQ(AlignUp(64, 32), 64u);
}

TEST(GgufLayoutTest, KeysAndNames) {
  EXPECT_TRUE(CheckKey("f", std::string(65535, 'k')).ok());
  EXPECT_EQ(CheckKey("f", std::string(65536, 'k')).error().Message(),
            "f: key of 65536 bytes, wanted 1 to 65535");
  EXPECT_EQ(CheckKey("f", "").error().Message(), "f: key of 0 bytes, wanted 1 to 65535");
  EXPECT_EQ(CheckKey("f", "a\xff").error().Message(),
            "f: key \"a\xef\xbf\xbd\", wanted valid UTF-8");
  EXPECT_TRUE(CheckTensorName("f", std::string(64, 't')).ok());
  EXPECT_EQ(CheckTensorName("f", std::string(65, 't')).error().Message(),
            "f: tensor name of 65 bytes, wanted 1 to 64");
  EXPECT_EQ(CheckTensorName("f", "\xc3").error().Message(),
            "f: tensor name \"\xef\xbf\xbd\", wanted valid UTF-8");
}

}  // namespace
}  // namespace facet::gguf
