// SPDX-License-Identifier: Apache-2.0
#include "chat/tool_call.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chat/call_text.h"

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
  constexpr int kAllTypes = 63;
  EXPECT_FALSE(tools.Parameters("f").IsOnly(kAllTypes));
  EXPECT_FALSE(tools.Parameters("g").IsOnly(kAllTypes));
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
  EXPECT_EQ(Parse(R"(call:f{a:"x},call:f{a:"y"})"), R"(f{"a":"x},call:f{a:\"y"})");
}

TEST(ParseCalls, WholeCallsAreTakenBeforeOneThatIsNot) {
  EXPECT_EQ(Parse("call:f{n:1}call:g{s:~x", false), "f{\"n\":1} + call:g{s:\xFFx");
  EXPECT_EQ(Parse("call:f{}call:g{}, call:f", false), "f{} g{} + call:f");
  EXPECT_EQ(Parse("call:f{}\ncall: 555-1234", false), "f{} + call: 555-1234");
  EXPECT_EQ(Parse("call:f{a:1}call:"), R"(f{"a":1} + call:)");
  EXPECT_EQ(Parse("call:f{}call:g{no key}"), "f{} + call:g{no key}");
  EXPECT_EQ(Parse("call:f{}call:g{a:[1"), R"(f{} g{"a":[1]})");
  EXPECT_TRUE(ParseCalls("call:f{}call:g{s:", Offered(), false)->has_unread_call);
  EXPECT_FALSE(ParseCalls("call:f{}call it", Offered(), false)->has_unread_call);
}

TEST(ParseCalls, AreCertainWhereNoSearchFailed) {
  for (const std::string_view text : {"call:f{}", "call:f{a:\"x\",b:c} d", "call:f(a='x')"}) {
    EXPECT_TRUE(ParseCalls(text, Offered(), false)->is_certain) << text;
  }
  for (const std::string_view text : {"call:f{a:\"x}", "call:f{a:\xFFx}", "call:f{a:x(}"}) {
    EXPECT_FALSE(ParseCalls(text, Offered(), false)->is_certain) << text;
  }
}

TEST(ParseCalls, LongTextsEndSoon) {
  // Quadratic time would be minutes.
  for (const char* piece : {"call:f{a:\"x},", "call:f{a:'x},", "call:f{a:x(},", "call:f{a:~x},",
                            "call:f{a:[\"x]},", "call:f{a:~x~},", "call:f", "call:f{} ", "}"}) {
    for (const char* begin : {"", "call:f{", "call:f{a:"}) {
      std::string text = begin;
      while (text.size() < 200'000) {
        text += piece;
      }
      Parse(text);
      Parse(text, false);
    }
  }
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

/// The text with a `|` at each place where unmarked calls may end.
std::string Ends(std::string text) {
  std::replace(text.begin(), text.end(), '~', kStringMark);
  const OfferedTools tools = Offered();
  UnmarkedCalls calls;
  std::string marked;
  for (const char c : text) {
    marked += calls.Add(c, tools) ? "|" : "";
    marked += c == kStringMark ? '~' : c;
  }
  return marked;
}

TEST(UnmarkedCalls, MayEndWhereNoOtherCallFollowsTheLastBracket) {
  EXPECT_EQ(Ends("call:f{} Done {}."), "call:f{} |Done {}|.");
  EXPECT_EQ(Ends("call:f{a:{b:[1]}}} ;\ncall:f(x=1)\ncall: me"),
            "call:f{a:{b:[1]}}} ;\ncall:f(x=1)\ncall:| me");
  EXPECT_EQ(Ends("call:f{a:~}} x~}~"), "call:f{a:~}} x~}|~");
  EXPECT_EQ(Ends("call:f{a:1"), "call:f{a:1");
  std::string many;
  for (int n = 0; n < 100; ++n) {
    many += "}x";
  }
  const std::string ends = Ends(many);
  EXPECT_EQ(std::count(ends.begin(), ends.end(), '|'), 16);
}

}  // namespace
}  // namespace facet
