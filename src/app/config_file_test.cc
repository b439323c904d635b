// SPDX-License-Identifier: Apache-2.0
#include "app/config_file.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

std::string ErrorOf(std::string_view text) {
  const auto entries = ParseConfig(text, "c.toml");
  return entries.ok() ? "no error" : entries.error().Message();
}

TEST(ParseConfig, ReadsEveryFormOfValue) {
  const auto entries = ParseConfig(
      "# settings\r\n"
      "\n"
      "  temperature = 0.5   # cool\n"
      "model = /models/a b#1.gguf\n"
      "system = \"two\\nlines # no comment \\\"quoted\\\" \\\\\" # a comment\n"
      "stop = [ \"a\" , \"b]\", 'c\\', ]\n"
      "think=true\n"
      "api_key_file = 'C:\\n \"x\" # y' # a comment\n"
      "alias = ''",
      "c.toml");
  ASSERT_TRUE(entries.ok()) << entries.error().Message();
  ASSERT_EQ(entries->size(), 7U);
  EXPECT_EQ(entries->at(0).option->name, "--temp");
  EXPECT_EQ(entries->at(0).values, std::vector<std::string>{"0.5"});
  EXPECT_EQ(entries->at(0).where, "c.toml:3: temperature");
  EXPECT_EQ(entries->at(1).values, std::vector<std::string>{"/models/a b#1.gguf"});
  EXPECT_EQ(entries->at(2).values,
            std::vector<std::string>{"two\nlines # no comment \"quoted\" \\"});
  EXPECT_EQ(entries->at(3).values, (std::vector<std::string>{"a", "b]", "c\\"}));
  EXPECT_EQ(entries->at(4).values, std::vector<std::string>{"true"});
  EXPECT_EQ(entries->at(5).values, std::vector<std::string>{"C:\\n \"x\" # y"});
  EXPECT_EQ(entries->at(6).values, std::vector<std::string>{""});
}

TEST(ParseConfig, AnEmptyListSetsNothing) {
  const auto entries = ParseConfig("stop = []\n", "c.toml");
  ASSERT_TRUE(entries.ok());
  EXPECT_TRUE(entries->empty());
}

TEST(ParseConfig, RefusesWithTheLine) {
  EXPECT_EQ(ErrorOf("\n[run]\n"), "c.toml:2: no =, wanted KEY = VALUE");
  EXPECT_EQ(ErrorOf("tempreature = 1"),
            "c.toml:1: unknown key \"tempreature\", did you mean temperature");
  EXPECT_EQ(ErrorOf("top_k = 1\ntop_k = 2"),
            "c.toml:2: key \"top_k\" for the second time, wanted each key once");
  EXPECT_EQ(ErrorOf("top_k ="), "c.toml:1: top_k: no value, wanted KEY = VALUE");
  EXPECT_EQ(ErrorOf("top_k = # none"), "c.toml:1: top_k: no value, wanted KEY = VALUE");
  EXPECT_EQ(ErrorOf("system = \"a"),
            "c.toml:1: system: no closing \", wanted a \"text\" within one line");
  EXPECT_EQ(ErrorOf("system = \"a\" b"),
            "c.toml:1: system: more after the value, wanted the end of the line");
  EXPECT_EQ(ErrorOf("system = \"\\q\""),
            "c.toml:1: system: an unknown escape after \\, wanted one of \\n \\t \\r \\\" \\\\");
  EXPECT_EQ(ErrorOf("stop = [\"a\""), "c.toml:1: stop: no closing ], wanted a comma or ]");
  EXPECT_EQ(ErrorOf("stop = [a]"), "c.toml:1: stop: an item without quotes, wanted [\"a\", \"b\"]");
  EXPECT_EQ(ErrorOf("stop = [\"a\" \"b\"]"),
            "c.toml:1: stop: more after an item, wanted a comma or ]");
  EXPECT_EQ(ErrorOf("system = 'a"),
            "c.toml:1: system: no closing ', wanted a 'text' within one line");
  EXPECT_EQ(ErrorOf("\xff"), "c.toml: bytes that are not UTF-8, wanted UTF-8 text");
}

TEST(ParseConfig, ReadsJson) {
  const auto entries = ParseConfig(
      "\n {\"temperature\": 0.5, \"top_k\": 40, \"think\": true, \"system\": \"two\\nlines\","
      " \"stop\": [\"a\", \"b\"], \"cors\": []}",
      "c.json");
  ASSERT_TRUE(entries.ok()) << entries.error().Message();
  ASSERT_EQ(entries->size(), 5U);
  EXPECT_EQ(entries->at(0).option->name, "--temp");
  EXPECT_EQ(entries->at(0).values, std::vector<std::string>{"0.5"});
  EXPECT_EQ(entries->at(0).where, "c.json: temperature");
  EXPECT_EQ(entries->at(1).values, std::vector<std::string>{"40"});
  EXPECT_EQ(entries->at(2).values, std::vector<std::string>{"true"});
  EXPECT_EQ(entries->at(3).values, std::vector<std::string>{"two\nlines"});
  EXPECT_EQ(entries->at(4).values, (std::vector<std::string>{"a", "b"}));
}

TEST(ParseConfig, RefusesJsonThatIsNoTable) {
  const auto error_of = [](std::string_view text) {
    const auto entries = ParseConfig(text, "c.json");
    return entries.ok() ? "no error" : entries.error().Message();
  };
  EXPECT_EQ(error_of(R"({"tempreature": 1})"),
            "c.json: unknown key \"tempreature\", did you mean temperature");
  EXPECT_EQ(error_of(R"({"top_k": {"a": 1}})"),
            "c.json: top_k: an object, wanted a string, a number, true or false");
  EXPECT_EQ(error_of(R"({"stop": ["a", null]})"),
            "c.json: stop: null, wanted a string, a number, true or false");
  EXPECT_NE(error_of(R"({"top_k": 1)").find("c.json"), std::string::npos);
}

}  // namespace
}  // namespace facet
