// SPDX-License-Identifier: Apache-2.0
#include "format/gguf.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace facet::gguf {
namespace {

TEST(ValueTest, NamesOfTypes) {
  EXPECT_EQ(NameOf(ValueType::kUint8), "uint8");
  EXPECT_EQ(NameOf(ValueType::kArray), "array");
  EXPECT_EQ(NameOf(ValueType::kFloat64), "float64");
}

TEST(ValueTest, MakersKeepTypeAndValue) {
  EXPECT_EQ(Value::U32(7).type, ValueType::kUint32);
  EXPECT_EQ(Value::U32(7).AsInt(), 7);
  EXPECT_EQ(Value::F32(0.5f).AsDouble(), 0.5);
  EXPECT_EQ(Value::Bool(true).AsBool(), true);
  EXPECT_EQ(*Value::String("x").AsString(), "x");
  EXPECT_EQ(*Value::Strings({"a", "b"}).AsStrings(), (std::vector<std::string>{"a", "b"}));
  const Value u32s = Value::U32s({1, 4294967295u});
  EXPECT_EQ(u32s.element_type, ValueType::kUint32);
  EXPECT_EQ(u32s.IntAt(1), 4294967295);
  const Value i32s = Value::I32s({-1});
  EXPECT_EQ(i32s.element_type, ValueType::kInt32);
  EXPECT_EQ(i32s.IntAt(0), -1);
  EXPECT_EQ(i32s.DoubleAt(0), -1.0);
  EXPECT_EQ(Value::F32s({0.25f}).DoubleAt(0), 0.25);
  const Value bools = Value::Bools({true, false});
  EXPECT_EQ(bools.element_type, ValueType::kBool);
  EXPECT_EQ(bools.IntAt(0), 1);
  EXPECT_EQ(bools.IntAt(1), 0);
  EXPECT_TRUE(bools.is_array());
  EXPECT_EQ(bools.array_size(), 2u);
}

TEST(ValueTest, OtherKindsAreNothing) {
  const Value text = Value::String("12");
  EXPECT_EQ(text.AsInt(), std::nullopt);
  EXPECT_EQ(text.AsDouble(), std::nullopt);
  EXPECT_EQ(text.AsBool(), std::nullopt);
  EXPECT_EQ(text.AsStrings(), nullptr);
  EXPECT_EQ(text.array_size(), 0u);
  EXPECT_EQ(text.IntAt(0), std::nullopt);
  EXPECT_FALSE(text.is_array());
  EXPECT_EQ(Value::F32(1).AsInt(), std::nullopt);
  EXPECT_EQ(Value::U32(1).AsBool(), std::nullopt);
  EXPECT_EQ(Value::U32(1).AsString(), nullptr);
  EXPECT_EQ(Value::Bool(true).AsInt(), 1);
  EXPECT_EQ(Value::Bool(true).AsDouble(), std::nullopt);
  EXPECT_EQ(Value::U32s({1}).AsInt(), std::nullopt);
  EXPECT_EQ(Value::U32s({1}).IntAt(1), std::nullopt);
  EXPECT_EQ(Value::F32s({1}).IntAt(0), std::nullopt);
  EXPECT_EQ(Value::F32s({1}).DoubleAt(1), std::nullopt);
}

TEST(ValueTest, IntegersThatDoNotFitAreNothing) {
  const Value large{ValueType::kUint64, ValueType::kUint32, uint64_t{1} << 63};
  EXPECT_EQ(large.AsInt(), std::nullopt);
  EXPECT_EQ(large.AsDouble(), 0x1p63);
  const Value list{ValueType::kArray, ValueType::kUint64, std::vector<uint64_t>{UINT64_MAX, 5}};
  EXPECT_EQ(list.IntAt(0), std::nullopt);
  EXPECT_EQ(list.IntAt(1), 5);
  EXPECT_EQ(list.DoubleAt(1), 5.0);
}

TEST(MetadataTest, SetAddsAtTheEndOrReplacesInPlace) {
  Metadata metadata(Metadata::Entries{{"a", Value::U32(1)}});
  metadata.Set("b", Value::U32(2));
  metadata.Set("a", Value::U32(3));
  ASSERT_EQ(metadata.entries().size(), 2u);
  EXPECT_EQ(metadata.entries()[0].first, "a");
  EXPECT_EQ(metadata.Find("a")->AsInt(), 3);
  EXPECT_EQ(metadata.Find("b")->AsInt(), 2);
  EXPECT_EQ(metadata.Find("c"), nullptr);
}

}  // namespace
}  // namespace facet::gguf
