// SPDX-License-Identifier: Apache-2.0
#include "jinja/template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "support/testing.h"

namespace facet::jinja {
namespace {

using facet::testing::JsonLinesOrDie;
using facet::testing::TestdataPath;

Result<std::string> RenderText(std::string_view source, const Json& context,
                               const Limits& limits = {}) {
  FACET_ASSIGN(const Template compiled, Template::Compile(source, "t", limits));
  FACET_ASSIGN(const std::vector<Run> runs, compiled.Render(context, {"bos_token"}, 0));
  return JoinRuns(runs);
}

std::string ErrorOf(std::string_view source, const Json& context = Json::MakeObject({}),
                    const Limits& limits = {}) {
  const Result<std::string> result = RenderText(source, context, limits);
  return result.ok() ? "no error, but: " + *result : result.error().Message();
}

TEST(TemplateTest, LanguageCases) {
  int n_errors = 0;
  for (const Json& row : JsonLinesOrDie(TestdataPath("template/jinja_cases.jsonl"))) {
    const std::string& id = row["id"].as_string();
    const Result<std::string> result = RenderText(row["template"].as_string(), row["context"]);
    if (row.contains("error")) {
      ++n_errors;
      EXPECT_FALSE(result.ok()) << id << " wanted " << row["message"].as_string() << ", got "
                                << *result;
      continue;
    }
    EXPECT_TRUE(result.ok()) << id << ": " << (result.ok() ? "" : result.error().Message());
    if (result.ok()) {
      EXPECT_EQ(*result, row["output"].as_string()) << id;
    }
  }
  EXPECT_EQ(n_errors, 62);
}

TEST(TemplateTest, CompileTimeErrors) {
  for (const Json& row : JsonLinesOrDie(TestdataPath("template/jinja_cases.jsonl"))) {
    const std::string& error = row["error"].as_string();
    if (error == "TemplateSyntaxError" || error == "TemplateAssertionError") {
      EXPECT_FALSE(Template::Compile(row["template"].as_string(), "t").ok())
          << row["id"].as_string();
    }
  }
}

void CheckConversations(const std::string& file, std::string_view source) {
  const Result<Template> compiled = Template::Compile(source, file);
  ASSERT_TRUE(compiled.ok()) << compiled.error().Message();
  EXPECT_EQ(compiled->findings().size(), 0u);
  for (const Json& row : JsonLinesOrDie(TestdataPath(file))) {
    Json context = row["vars"];
    context.Set("messages", row["messages"]);
    if (row.contains("tools")) {
      context.Set("tools", row["tools"]);
    }
    const auto runs = compiled->Render(context, {"bos_token", "eos_token"}, 0);
    if (row.contains("error")) {
      EXPECT_FALSE(runs.ok()) << row["id"].as_string();
      continue;
    }
    ASSERT_TRUE(runs.ok()) << row["id"].as_string() << ": " << runs.error().Message();
    EXPECT_EQ(JoinRuns(*runs), row["expected"].as_string()) << row["id"].as_string();
  }
}

TEST(TemplateTest, TinyConversations) {
  CheckConversations(
      "template/template_cases_tiny.jsonl",
      facet::testing::ReadOrDie(facet::testing::SourcePath("models/tiny/chat_template.jinja")));
}

/// The template inside a GGUF: key, type 8, 64-bit length, bytes.
std::string TemplateInGguf(std::span<const std::byte> bytes) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  const size_t key = AsText(bytes).find(kKey);
  if (key == std::string_view::npos) {
    return "";
  }
  ByteCursor cursor(bytes.subspan(key + kKey.size()), "gguf");
  const auto type = cursor.Read<uint32_t>("type");
  const auto size = cursor.Read<uint64_t>("length");
  if (!type.ok() || *type != 8 || !size.ok()) {
    return "";
  }
  const auto text = cursor.Take(*size, "template");
  return text.ok() ? std::string(AsText(*text)) : "";
}

TEST(TemplateTest, GgufConversations) {
  const auto path = facet::testing::SharedPath("data/gemma4-vocab.gguf");
  if (!path.has_value()) {
    GTEST_SKIP() << facet::testing::kNoShared;
  }
  const auto file = MappedFile::Open(*path);
  ASSERT_TRUE(file.ok());
  const std::string source = TemplateInGguf(file->bytes());
  ASSERT_EQ(source.size(), 12045u);
  CheckConversations("template/template_cases.jsonl", source);
}

TEST(TemplateTest, ErrorsHaveAPlace) {
  EXPECT_EQ(ErrorOf("a\n {{ nope.x }}"),
            "t, line 2, column 9: 'nope' is undefined, wanted a value");
  EXPECT_EQ(ErrorOf("é{{ 1 + 'a' }}"),
            "t, line 1, column 7: unsupported operand type(s) for +: 'int' and 'str'");
  EXPECT_EQ(ErrorOf("{% if true %}x"),
            "t, line 1, column 15: end of template, wanted elif or else or endif");
  EXPECT_EQ(ErrorOf("{{ l | nosuch }}"),
            "t, line 1, column 8: unknown filter \"nosuch\", wanted one that Jinja has");
  EXPECT_EQ(ErrorOf("{{ raise_exception('bad role') }}"), "t, line 1, column 19: bad role");
  EXPECT_EQ(ErrorOf("{% for a, b in [[1]] %}{% endfor %}"),
            "t, line 1, column 8: 1 values to unpack, wanted 2");
  EXPECT_EQ(ErrorOf("\xff"), "t: a template that is not UTF-8, wanted UTF-8");
  EXPECT_EQ(ErrorOf("x", Json(1)), "t: a context that is an integer, wanted an object");
}

TEST(TemplateTest, FindingsOfBranches) {
  const auto compiled = Template::Compile(
      "{% if a %}{{ a | nosuch }}{% endif %}\n{{ f(1) if a }}{{ strftime_now('%Y') }}", "t");
  ASSERT_TRUE(compiled.ok());
  ASSERT_EQ(compiled->findings().size(), 2u);
  EXPECT_EQ(compiled->findings()[0].text, "unknown filter \"nosuch\"");
  EXPECT_EQ(compiled->findings()[1].text, "call of the unknown function \"f\"");
  EXPECT_EQ(compiled->findings()[1].line, 2);
  EXPECT_EQ(compiled->findings()[1].column, 4);
}

TEST(TemplateTest, Mentions) {
  const auto compiled =
      Template::Compile("{% if m.tool_call_id and m['role'] == 'tool' %}text{% endif %}", "t");
  ASSERT_TRUE(compiled.ok());
  EXPECT_TRUE(compiled->Mentions("tool_call_id"));
  EXPECT_TRUE(compiled->Mentions("role"));
  EXPECT_TRUE(compiled->Mentions("tool"));
  EXPECT_TRUE(compiled->Mentions("m"));
  EXPECT_FALSE(compiled->Mentions("text"));
}

std::vector<Run> RunsOf(std::string_view source, const Json& context) {
  const auto compiled = Template::Compile(source, "t");
  EXPECT_TRUE(compiled.ok());
  auto runs = compiled->Render(context, {"bos_token"}, 0);
  EXPECT_TRUE(runs.ok()) << (runs.ok() ? "" : runs.error().Message());
  return runs.ok() ? *std::move(runs) : std::vector<Run>();
}

TEST(TemplateTest, MarksFollowEveryByte) {
  const Json context = Json::MakeObject({{"u", "aXb"},
                                         {"bos_token", "<bos>"},
                                         {"l", Json::MakeArray({"p", "q"})},
                                         {"d", Json::MakeObject({{"k", "v"}})}});
  const auto t = [](std::string text) { return jinja::Run{std::move(text), Origin::kTemplate}; };
  const auto u = [](std::string text) { return jinja::Run{std::move(text), Origin::kUser}; };
  using Runs = std::vector<jinja::Run>;
  EXPECT_EQ(RunsOf("{{ bos_token }}<{{ u }}>", context), (Runs{t("<bos><"), u("aXb"), t(">")}));
  EXPECT_EQ(RunsOf("{{ (u ~ '|' + u)[2:5] }}", context), (Runs{u("b"), t("|"), u("a")}));
  EXPECT_EQ(RunsOf("{{ u.split('X') | join('-') }}", context), (Runs{u("a"), t("-"), u("b")}));
  EXPECT_EQ(RunsOf("{{ u.replace('X', '+') }}", context), (Runs{u("a"), t("+"), u("b")}));
  EXPECT_EQ(RunsOf("{{ ('<' ~ u) | upper | trim }}", context), (Runs{t("<"), u("AXB")}));
  EXPECT_EQ(RunsOf("{{ '%s!' % u }}{{ '{}?'.format(u) }}", context),
            (Runs{u("aXb"), t("!"), u("aXb"), t("?")}));
  EXPECT_EQ(RunsOf("{{ d | tojson }}", context),
            (Runs{t("{\""), u("k"), t("\": \""), u("v"), t("\"}")}));
  EXPECT_EQ(RunsOf("{{ l }}", context), (Runs{t("['"), u("p"), t("', '"), u("q"), t("']")}));
  EXPECT_EQ(RunsOf("{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(u) * 2 }}", context),
            (Runs{t("["), u("aXb"), t("]["), u("aXb"), t("]")}));
  EXPECT_EQ(RunsOf("{% set s %}{{ u[::-1] }}.{% endset %}{{ s }}", context),
            (Runs{u("bXa"), t(".")}));
  EXPECT_EQ(RunsOf("{% for c in u %}{{ c }}{% endfor %}{{ u | indent(1, true) }}", context),
            (Runs{u("aXb"), t(" "), u("aXb")}));
  EXPECT_EQ(RunsOf("{{ 'aXb' if u == 'aXb' }}", context), (Runs{t("aXb")}));
  EXPECT_EQ(RunsOf("", context), Runs());
}

Limits Small() {
  Limits limits;
  limits.max_steps = 10'000;
  limits.max_output_bytes = 1000;
  limits.max_value_bytes = 1'000'000;
  return limits;
}

TEST(TemplateTest, LimitsHold) {
  const Json none = Json::MakeObject({});
  EXPECT_EQ(
      ErrorOf("{% for i in range(99999) %}{% endfor %}", none, Small()),
      "t, line 1, column 18: the template makes too many values, wanted at most 1000000 bytes");
  EXPECT_EQ(ErrorOf("{% for i in range(9999) %}{{ i }}{% endfor %}", none, Small()).substr(0, 9),
            "t, line 1");
  EXPECT_EQ(
      ErrorOf("{{ 'a' * 1000000000 }}"),
      "t, line 1, column 8: the template makes too many values, wanted at most 536870912 bytes");
  EXPECT_EQ(ErrorOf("{{ [0] * 1000000000000 }}").substr(0, 24), "t, line 1, column 8: the");
  EXPECT_EQ(ErrorOf("{{ range(1000000000000) }}"),
            "t, line 1, column 9: a range of 1000000000000 numbers, wanted at most 100000");
  EXPECT_EQ(ErrorOf("{{ 'abcdefghij' * 101 }}", none, Small()),
            "t, line 1, column 1: too much output, wanted at most 1000 bytes");
  EXPECT_EQ(
      ErrorOf("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("calls nested too deeply") !=
          std::string::npos,
      true);
  EXPECT_EQ(ErrorOf("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}")
                    .find("nested too deeply") != std::string::npos,
            true);
  EXPECT_EQ(ErrorOf("{{ 1" + std::string(5000, '.') + " }}").find("wanted") != std::string::npos,
            true);
  std::string chain = "{{ a";
  for (int i = 0; i < 5000; ++i) {
    chain += ".a";
  }
  EXPECT_EQ(ErrorOf(chain + " }}").find("nested too deeply") != std::string::npos, true);
  EXPECT_EQ(ErrorOf(std::string(2000000, 'x')),
            "t: a template of 2000000 bytes, wanted at most 1048576");
  EXPECT_EQ(ErrorOf("{{ '%999999999d' % 1 }}", none, Small()).find("too many values") !=
                std::string::npos,
            true);
}

TEST(TemplateTest, LongChainsOfOperatorsAreNotDeep) {
  std::string source = "{{ 1";
  for (int i = 0; i < 3000; ++i) {
    source += " + 1";
  }
  EXPECT_EQ(*RenderText(source + " }}", Json::MakeObject({})), "3001");
}

TEST(TemplateTest, NestedValuesAndCirclesEnd) {
  EXPECT_EQ(ErrorOf("{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] "
                    "%}{% endfor %}")
                    .find("nested too deeply") != std::string::npos,
            true);
  EXPECT_EQ(ErrorOf("{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% set ns.x = "
                    "namespace(x=ns.x) %}{% endfor %}{{ ns.x }}")
                    .find("nested too deeply") != std::string::npos,
            true);
  EXPECT_EQ(ErrorOf("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}")
                    .find("nested too deeply") != std::string::npos,
            true);
  EXPECT_EQ(*RenderText("{% set ns = namespace() %}{% set ns.x = ns %}{% macro m() %}{{ m }}{% "
                        "endmacro %}{% set ns.m = m %}ok",
                        Json::MakeObject({})),
            "ok");
  // Doubling a list by reference: its printed size and its comparison grow without bound, its
  // memory does not.
  const std::string doubling =
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] "
      "%}{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  EXPECT_EQ(ErrorOf(doubling + "{{ ns.x == ns.y }}").find("too many steps") != std::string::npos,
            true);
  EXPECT_EQ(ErrorOf(doubling + "{{ ns.x }}").find("too many") != std::string::npos, true);
}

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(TemplateTest, FastEnough) {
  const std::string source =
      facet::testing::ReadOrDie(facet::testing::SourcePath("models/tiny/chat_template.jinja"));
  const auto compiled = Template::Compile(source, "tiny");
  ASSERT_TRUE(compiled.ok());
  Json messages = Json(Json::Array());
  for (int i = 0; i < 50; ++i) {
    messages.Append(Json::MakeObject({{"role", i % 2 == 0 ? "user" : "assistant"},
                                      {"content", "What is the weather in Oslo, and why?"}}));
  }
  const Json context = Json::MakeObject({{"messages", messages}, {"bos_token", "<bos>"}});
  const double seconds =
      Seconds([&] { EXPECT_TRUE(compiled->Render(context, {"bos_token"}, 0).ok()); });
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 1.0);  // a bound for sanitizers; without them it is a few milliseconds
  std::string text;
  for (int i = 0; i < 200000; ++i) {
    text += "é<|x|>";
  }
  const Json large = Json::MakeObject(
      {{"messages", Json::MakeArray({Json::MakeObject({{"role", "user"}, {"content", text}})})},
       {"bos_token", "<bos>"}});
  EXPECT_LT(Seconds([&] { EXPECT_TRUE(compiled->Render(large, {"bos_token"}, 0).ok()); }), 5.0);
}

}  // namespace
}  // namespace facet::jinja
