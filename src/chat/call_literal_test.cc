// SPDX-License-Identifier: Apache-2.0
#include "chat/call_literal.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

TEST(ReadLiteral, TakesNumbersInJsonsOwnFormOnly) {
  for (const std::string_view text :
       {"0", "-0", "7", "-12", "0.5", "-0.5", "1e3", "1E+5", "1.50e-07", "10000000000",
        "123456789012345678901234567890", "1e-999"}) {
    const auto literal = ReadLiteral(text);
    ASSERT_TRUE(literal.has_value()) << text;
    EXPECT_EQ(literal->json, text);
    EXPECT_EQ(literal->type, ValueSchema::kNumber);
    EXPECT_TRUE(literal->is_json);
  }
  for (const std::string_view text : {"", "-", "+1", "01", "-01", ".5", "5.", "1e", "1e+", "0x10",
                                      "1_000", "1,000", "NaN", "Infinity", "1 ", "1e999", "--1"}) {
    EXPECT_FALSE(ReadLiteral(text).has_value()) << text;
  }
  EXPECT_FALSE(ReadLiteral(std::string(400, '9')).has_value());  // no double is as large
  EXPECT_TRUE(ReadLiteral("0." + std::string(400, '9')).has_value());
}

TEST(ReadLiteral, KnowsWords) {
  EXPECT_EQ(ReadLiteral("true")->type, ValueSchema::kBoolean);
  EXPECT_EQ(ReadLiteral("null")->type, ValueSchema::kNull);
  EXPECT_TRUE(ReadLiteral("false")->is_json);
  EXPECT_EQ(ReadLiteral("True")->json, "true");
  EXPECT_EQ(ReadLiteral("None")->json, "null");
  EXPECT_FALSE(ReadLiteral("False")->is_json);
  EXPECT_FALSE(ReadLiteral("TRUE").has_value());
  EXPECT_FALSE(ReadLiteral("nullable").has_value());
}

TEST(ReadJson, TakesContainersUpToADepth) {
  EXPECT_EQ(ReadJson(R"([1, "a"])", 3)->type, ValueSchema::kArray);
  EXPECT_EQ(ReadJson(R"({"a": 1.50})", 3)->json, R"({"a": 1.50})");
  EXPECT_EQ(ReadJson("7", 0)->type, ValueSchema::kNumber);
  EXPECT_FALSE(ReadJson("[1", 3).has_value());
  EXPECT_FALSE(ReadJson("[[[[1]]]]", 3).has_value());
  EXPECT_FALSE(ReadJson(R"("a")", 3).has_value());
}

TEST(UnescapeJson, ReadsEscapesAndKeepsWhatIsNone) {
  EXPECT_EQ(UnescapeJson(R"(a\n\t\"\\\/\')"), "a\n\t\"\\/'");
  EXPECT_EQ(UnescapeJson(R"(\u0041\u00e9\uD83D\uDE00)"), "Aé😀");
  EXPECT_EQ(UnescapeJson(R"(\uD83Dx\uDE00)"), "\uFFFDx\uFFFD");
  EXPECT_EQ(UnescapeJson(R"(\uD83D\u0041)"),
            "\uFFFD"
            "A");
  EXPECT_EQ(UnescapeJson(R"(\d+\u12\)"), R"(\d+\u12\)");
}

}  // namespace
}  // namespace facet
