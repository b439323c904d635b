// SPDX-License-Identifier: Apache-2.0
#include "chat/tool_call.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace facet {
namespace {

OfferedTools Offered() {
  return OfferedTools(*ParseJson(R"([{"name":"f"},{"type":"function","function":
      {"name":"callback","parameters":{"type":"object","properties":{"id":{"type":"string"}}}}}])",
                                 "tools"));
}

/// The calls as `NAME{...}` with a space between; "-" when refused. `~` is the mark of a string.
std::string Parse(std::string text, bool is_closed = true) {
  std::replace(text.begin(), text.end(), '~', kStringMark);
  const OfferedTools tools = Offered();
  const auto parsed = ParseCalls(text, tools, is_closed);
  if (!parsed) {
    return "-";
  }
  std::string all;
  for (const ToolCall& call : parsed->calls) {
    all += (all.empty() ? "" : " ") + call.name + call.arguments;
  }
  return all + (parsed->rest.empty() ? "" : " + " + std::string(parsed->rest));
}

TEST(OfferedTools, KnowsWrappedAndBareTools) {
  const OfferedTools tools = Offered();
  EXPECT_FALSE(tools.empty());
  EXPECT_TRUE(tools.Contains("f"));
  EXPECT_TRUE(tools.Contains("callback"));
  EXPECT_FALSE(tools.Contains("call"));
  EXPECT_TRUE(tools.HasNameThatBegins("call"));
  EXPECT_TRUE(tools.Parameters("callback").HasProperty("id"));
  EXPECT_TRUE(tools.Parameters("f").allows_anything());
  EXPECT_TRUE(tools.Parameters("g").allows_anything());
  EXPECT_TRUE(OfferedTools(Json()).empty());
  EXPECT_TRUE(OfferedTools(Json::MakeArray({Json::MakeObject({{"x", 1}})})).empty());
}

TEST(ParseCalls, Names) {
  EXPECT_EQ(Parse("call:f{}"), "f{}");
  EXPECT_EQ(Parse("call:callback{id:7}"), R"(callback{"id":"7"})");
  EXPECT_EQ(Parse("callback{}"), "callback{}");
  EXPECT_EQ(Parse("call:mcp.srv-1/look_up{}"), "mcp.srv-1/look_up{}");
  EXPECT_EQ(Parse("call:город{}"), "город{}");
  for (const char* text : {":f{}", "f{}", "call f{}", "callf{}", "call::f{}", "call:call:f{}",
                           " call: f {}", "call:~f~{}", "call:\"f\"{}", "callf:{}", "call:f"}) {
    EXPECT_EQ(Parse(text), "f{}") << text;
  }
  for (const char* text : {"g{}", ":g{}", "call g{}", "call:{}", "call:a b{}", "call:g", "{}", "",
                           "call:<b>{}", "print(1)"}) {
    EXPECT_EQ(Parse(text), "-") << text;
  }
  EXPECT_EQ(Parse("call:" + std::string(1000, 'n') + "{}"), "-");
}

TEST(ParseCalls, SeveralInOneSpan) {
  EXPECT_EQ(Parse("call:f{a:1}call:g{b:2}"), R"(f{"a":1} g{"b":2})");
  EXPECT_EQ(Parse("call:f{a:1},\ncall:g{}}"), R"(f{"a":1} g{})");
  EXPECT_EQ(Parse("call:f{a:1}call:"), "-");
}

TEST(ParseCalls, NothingMayFollowInAClosedSpan) {
  EXPECT_EQ(Parse("call:f{a:1}} \n"), R"(f{"a":1})");
  EXPECT_EQ(Parse("call:f{a:1} and more"), "-");
  EXPECT_EQ(Parse("call:f{a:1} and more", false), R"(f{"a":1} + and more)");
}

TEST(ParseCalls, OnlyAClosedSpanIsCompleted) {
  EXPECT_EQ(Parse("call:f{a:[1"), R"(f{"a":[1]})");
  EXPECT_EQ(Parse("call:f{a:[1", false), "-");
  EXPECT_EQ(Parse("call:f", false), "-");
  EXPECT_EQ(Parse("call:f{a:1}", false), R"(f{"a":1})");
}

TEST(FindCallStart, KnowsTheOfferedNames) {
  const OfferedTools tools = Offered();
  for (const std::string_view text : {"", "c", "call", "call:", "call:f", "call:callb"}) {
    EXPECT_EQ(FindCallStart(text, tools), CallStart::kMaybe) << text;
  }
  for (const std::string_view text : {"call:f{", "call:f(a", "call:callback{id"}) {
    EXPECT_EQ(FindCallStart(text, tools), CallStart::kYes) << text;
  }
  for (const std::string_view text : {"x", "calm", "call f", "call:g", "call:g{", "call:ff{"}) {
    EXPECT_EQ(FindCallStart(text, tools), CallStart::kNo) << text;
  }
  EXPECT_EQ(FindCallStart("", OfferedTools(Json())), CallStart::kNo);
}

}  // namespace
}  // namespace facet
