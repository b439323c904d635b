// SPDX-License-Identifier: Apache-2.0
#include "base/tensor_type.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace facet {
namespace {

struct Known {
  uint32_t id;
  std::string_view name;
  int block_elements;
  int block_bytes;
};

// Derived from the layouts: a scale of 2 bytes, packed quants, sub-block scales (GGUF's
// quantisation formats).
constexpr Known kKnown[] = {
    {0, "F32", 1, 4},
    {1, "F16", 1, 2},
    {2, "Q4_0", 32, 2 + 16},
    {3, "Q4_1", 32, 2 + 2 + 16},
    {6, "Q5_0", 32, 2 + 4 + 16},
    {7, "Q5_1", 32, 2 + 2 + 4 + 16},
    {8, "Q8_0", 32, 2 + 32},
    {9, "Q8_1", 32, 2 + 2 + 32},
    {10, "Q2_K", 256, 16 + 64 + 2 + 2},
    {11, "Q3_K", 256, 32 + 64 + 12 + 2},
    {12, "Q4_K", 256, 2 + 2 + 12 + 128},
    {13, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    {14, "Q6_K", 256, 128 + 64 + 16 + 2},
    {15, "Q8_K", 256, 4 + 256 + 32},
    {16, "IQ2_XXS", 256, 2 + 64},
    {17, "IQ2_XS", 256, 2 + 64 + 8},
    {18, "IQ3_XXS", 256, 2 + 96},
    {19, "IQ1_S", 256, 2 + 32 + 16},
    {20, "IQ4_NL", 32, 2 + 16},
    {21, "IQ3_S", 256, 2 + 64 + 8 + 32 + 4},
    {22, "IQ2_S", 256, 2 + 64 + 8 + 8},
    {23, "IQ4_XS", 256, 2 + 2 + 4 + 128},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 32 + 16 + 8},
    {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 48 + 4 + 2},
    {35, "TQ2_0", 256, 64 + 2},
    {39, "MXFP4", 32, 1 + 16},
    {40, "NVFP4", 64, 4 + 32},
};

TEST(TensorTypeTest, KnowsEachTypeByIdAndName) {
  for (const Known& known : kKnown) {
    const auto by_id = FindTensorType(known.id);
    ASSERT_TRUE(by_id.has_value()) << known.name;
    EXPECT_EQ(static_cast<uint32_t>(by_id->type), known.id);
    EXPECT_EQ(by_id->name, known.name);
    EXPECT_EQ(by_id->block_elements, known.block_elements) << known.name;
    EXPECT_EQ(by_id->block_bytes, known.block_bytes) << known.name;
    const auto by_name = FindTensorTypeByName(known.name);
    ASSERT_TRUE(by_name.has_value()) << known.name;
    EXPECT_EQ(by_name->type, by_id->type);
    EXPECT_EQ(InfoOf(by_id->type).name, known.name);
  }
}

TEST(TensorTypeTest, KnowsNoOther) {
  std::set<uint32_t> ids;
  for (const Known& known : kKnown) {
    ids.insert(known.id);
  }
  for (uint32_t id = 0; id < 1000; ++id) {
    EXPECT_EQ(FindTensorType(id).has_value(), ids.count(id) == 1) << id;
  }
  EXPECT_FALSE(FindTensorType(UINT32_MAX).has_value());
}

TEST(TensorTypeTest, NamesAreComparedWithoutCase) {
  EXPECT_EQ(FindTensorTypeByName("q4_k")->type, TensorType::kQ4_K);
  EXPECT_EQ(FindTensorTypeByName("Bf16")->type, TensorType::kBF16);
  for (const std::string_view unknown : {"", "q4", "q4_k_m", "Q4_K ", "f"}) {
    EXPECT_FALSE(FindTensorTypeByName(unknown).has_value()) << unknown;
  }
}

TEST(TensorTypeTest, CountsBytes) {
  EXPECT_EQ(BytesOf(TensorType::kF32, 3), 12);
  EXPECT_EQ(BytesOf(TensorType::kQ4_0, 64), 36);
  EXPECT_EQ(BytesOf(TensorType::kQ6_K, 512), 420);
  EXPECT_EQ(BytesOf(TensorType::kQ4_K, 0), 0);
  EXPECT_EQ(BytesOf(TensorType::kBF16, int64_t{262144} * 5376), int64_t{262144} * 5376 * 2);
}

TEST(TensorTypeDeathTest, PartsOfBlocksAndUnknownTypesAbort) {
  EXPECT_DEATH((void)BytesOf(TensorType::kQ4_0, 33),
               "CHECK failed: n_elements % info.block_elements == 0");
  EXPECT_DEATH((void)InfoOf(static_cast<TensorType>(4)), "CHECK failed: info.has_value\\(\\)");
}

}  // namespace
}  // namespace facet
