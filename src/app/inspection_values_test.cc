// SPDX-License-Identifier: Apache-2.0
#include "app/inspection_values.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

using gguf::Value;

TEST(InspectionValues, ScalarsAreOneWord) {
  EXPECT_EQ(ValueText(Value::U32(7), 4), "7");
  EXPECT_EQ(ValueText(Value::Bool(true), 4), "true");
  EXPECT_EQ(ValueText(Value::F32(0.95F), 4), "0.95");
  EXPECT_EQ(ValueText(Value::F32(1e-6F), 4), "1e-06");
  EXPECT_EQ(ValueText(Value::String("a \"b\"\n\xff"), 4), "\"a \\\"b\\\"\\n\xef\xbf\xbd\"");
  EXPECT_EQ(TypeText(Value::F32(1)), "float32");
}

TEST(InspectionValues, ArraysAreCut) {
  EXPECT_EQ(ValueText(Value::I32s({1, -2, 3}), 2), "[3] 1, -2, ...");
  EXPECT_EQ(ValueText(Value::U32s({1, 2}), 2), "[2] 1, 2");
  EXPECT_EQ(ValueText(Value::Bools({true, false}), 4), "[2] true, false");
  EXPECT_EQ(ValueText(Value::Strings({"a", "b"}), 1), "[2] \"a\", ...");
  EXPECT_EQ(ValueText(Value::F32s({}), 4), "[0]");
  EXPECT_EQ(ItemText(Value::F32s({0.1F}), 0), "0.1");
  EXPECT_EQ(TypeText(Value::Strings({})), "[string]");
  EXPECT_EQ(ValueJson(Value::I32s({1, -2, 3}), 2), Json::MakeArray({1, -2}));
  EXPECT_EQ(ValueJson(Value::Bools({true}), 2), Json::MakeArray({true}));
}

TEST(InspectionValues, ShapesHaveTheSlowestAxisFirst) {
  EXPECT_EQ(ShapeText({128, 1408, 2816}), "128x1408x2816");
  EXPECT_EQ(ShapeText({}), "scalar");
}

TEST(InspectionValues, TextIsCutAtColumns) {
  EXPECT_EQ(CutText("abcdef", 6), "abcdef");
  EXPECT_EQ(CutText("abcdefg", 6), "abc...");
  EXPECT_EQ(CutText("a\x1b[31m", 20), "a^[[31m");
  EXPECT_EQ(CutText("\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 5),
            "\xe4\xb8\xad...");  // two columns each
}

}  // namespace
}  // namespace facet
