// SPDX-License-Identifier: Apache-2.0
#include "chat/tool_schema.h"

#include <gtest/gtest.h>

#include <string>

namespace facet {
namespace {

Json Schema(const char* text) {
  auto schema = ParseJson(text, "schema");
  EXPECT_TRUE(schema.ok());
  return *std::move(schema);
}

/// The types allowed, by their first letters: s, n, b, 0 for null, o, a; * for anything.
std::string TypesOf(const ValueSchema& schema) {
  if (!schema.IsOnly(63)) {
    return "*";
  }
  std::string types;
  for (int n = 0; n < 6; ++n) {
    types +=
        schema.Allows(static_cast<ValueSchema::Type>(1 << n)) ? std::string(1, "snb0oa"[n]) : "";
  }
  return types;
}

TEST(ValueSchema, FindsTheTypes) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({})", "*"},
      {R"(true)", "*"},
      {R"({"type":"string"})", "s"},
      {R"({"type":"STRING"})", "s"},
      {R"({"type":"integer"})", "n"},
      {R"({"type":"number"})", "n"},
      {R"({"type":"widget"})", "*"},
      {R"({"type":["string","null"]})", "s0"},
      {R"({"type":"boolean","nullable":true})", "b0"},
      {R"({"nullable":true})", "*"},
      {R"({"enum":["a",1,null]})", "sn0"},
      {R"({"type":"string","enum":[1]})", "s"},
      {R"({"const":true})", "b"},
      {R"({"properties":{"a":{}}})", "o"},
      {R"({"items":{}})", "a"},
      {R"({"anyOf":[{"type":"integer"},{"oneOf":[{"type":"array"},{"type":"null"}]}]})", "n0a"},
      {R"({"allOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":{"type":"object"}}})", "o"},
      {R"({"$ref":"#/nowhere"})", "*"},
      {R"({"$ref":"http://example.com/x"})", "*"},
      {R"({"$ref":"#"})", "*"},
      {R"({"anyOf":[{"$ref":"#/anyOf/0"}]})", "*"},  // ends
  };
  for (const auto& [text, types] : kCases) {
    const Json json = Schema(text);
    EXPECT_EQ(TypesOf(ValueSchema(json)), types) << text;
  }
  EXPECT_EQ(TypesOf(ValueSchema()), "*");
}

TEST(ValueSchema, IsOnlyWhatIsKnown) {
  const Json json = Schema(R"({"type":["string","null"]})");
  EXPECT_TRUE(ValueSchema(json).IsOnly(ValueSchema::kString | ValueSchema::kNull));
  EXPECT_FALSE(ValueSchema(json).IsOnly(ValueSchema::kString));
  EXPECT_FALSE(ValueSchema().IsOnly(ValueSchema::kString));
}

TEST(ValueSchema, LeadsToMembersAndItems) {
  const Json json = Schema(R"({"type":"object","properties":{
      "a":{"type":"string"},
      "list":{"anyOf":[{"type":"array","items":{"type":"number"}},{"type":"null"}]},
      "node":{"$ref":"#/$defs/Node"}},
    "additionalProperties":{"type":"boolean"},
    "$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},
                                                   "v":{"type":"integer"}}}}})");
  const ValueSchema schema(json);
  EXPECT_TRUE(schema.HasProperties());
  EXPECT_TRUE(schema.HasProperty("a"));
  EXPECT_FALSE(schema.HasProperty("b"));
  EXPECT_EQ(TypesOf(schema.Property("a")), "s");
  EXPECT_EQ(TypesOf(schema.Property("b")), "b");
  EXPECT_EQ(TypesOf(schema.Property("list")), "0a");
  EXPECT_EQ(TypesOf(schema.Property("list").Item()), "n");
  EXPECT_EQ(TypesOf(schema.Property("a").Item()), "*");
  EXPECT_EQ(TypesOf(schema.Property("node").Property("next").Property("next").Property("v")), "n");
  EXPECT_EQ(TypesOf(schema.Property("node").Property("other")), "*");
  EXPECT_FALSE(ValueSchema().HasProperties());
}

TEST(ValueSchema, LooksAtABoundedNumberOfAlternatives) {
  std::string text = R"({"type":"string"})";
  for (int depth = 0; depth < 300; ++depth) {
    text = R"({"anyOf":[)" + text + "]}";
  }
  const Json json = *ParseJson(text, "schema", {.max_depth = 1000});
  EXPECT_EQ(TypesOf(ValueSchema(json)), "*");
}

TEST(ValueSchema, LooksAtAnAlternativeOnce) {
  std::string references;
  for (int n = 0; n < 200; ++n) {
    references += R"({"$ref":"#/$defs/A"},)";
  }
  const Json json = *ParseJson(R"({"$defs":{"A":{"oneOf":[{"type":"string"}]}},"properties":{"p":
      {"anyOf":[)" + references + R"({}]}},"anyOf":[)" +
                                   references + "{}]}",
                               "schema");
  EXPECT_EQ(TypesOf(ValueSchema(json)), "so");
  EXPECT_EQ(TypesOf(ValueSchema(json).Property("p")), "s");
}

}  // namespace
}  // namespace facet
