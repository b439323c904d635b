// SPDX-License-Identifier: Apache-2.0
// How much stack the deepest templates take: each runs on a thread whose stack was painted before.
#include "jinja/limits.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>

#include "jinja/template.h"

namespace facet::jinja {
namespace {

// The sanitizers surround each variable with red zones.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kAllowedBytes = size_t{6} << 20;
constexpr size_t kStackBytes = size_t{8} << 20;
#else
constexpr size_t kAllowedBytes = size_t{512} << 10;
constexpr size_t kStackBytes = size_t{1} << 20;
#endif
constexpr unsigned char kPaint = 0xA5;

void* CallFunction(void* function) {
  (*static_cast<std::function<void()>*>(function))();
  return nullptr;
}

/// Bytes of stack that `work` took.
size_t StackUsedBy(std::function<void()> work) {
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  EXPECT_NE(stack, MAP_FAILED);
  auto* const begin = static_cast<unsigned char*>(stack);
  std::fill(begin, begin + kStackBytes, kPaint);
  pthread_attr_t attributes;
  pthread_t thread;
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstack(&attributes, stack, kStackBytes), 0);
  EXPECT_EQ(pthread_create(&thread, &attributes, CallFunction, &work), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  const auto* const touched =
      std::find_if(begin, begin + kStackBytes, [](unsigned char byte) { return byte != kPaint; });
  const auto unused = static_cast<size_t>(touched - begin);
  munmap(stack, kStackBytes);
  return kStackBytes - unused;
}

std::string Repeated(std::string_view text, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) {
    out += text;
  }
  return out;
}

/// Empty, or the error.
std::string RenderError(const std::string& source) {
  const Result<Template> compiled = Template::Compile(source, "t");
  if (!compiled.ok()) {
    return compiled.error().found;
  }
  const auto runs = compiled->Render(
      Json::MakeObject({{"x", "a"}, {"y", Json::MakeArray({Json::MakeArray({1})})}}), {}, 0);
  return runs.ok() ? "" : runs.error().found;
}

struct Nest {
  std::string_view before;
  std::string_view open;
  std::string_view middle;
  std::string_view close;
  std::string_view after;
};

std::string Nested(const Nest& nest, int n) {
  return std::string(nest.before) + Repeated(nest.open, n) + std::string(nest.middle) +
         Repeated(nest.close, n) + std::string(nest.after);
}

constexpr Nest kNests[] = {
    {"{{ ", "(", "1", ")", " }}"},
    {"{{ ", "[", "1", "]", " }}"},
    {"{{ ", "{1:", "1", "}", " }}"},
    {"{{ ", "dict(a=", "1", ")", " }}"},
    {"{{ ", "x[", "0", "]", " }}"},
    {"{{ ", "x[0:", "0", "]", " }}"},
    {"{{ ", "-", "1", "", " }}"},
    {"{{ ", "not ", "1", "", " }}"},
    {"{{ ", "1 if x else ", "1", "", " }}"},
    {"{{ ", "(1 + ", "1", ")", " }}"},
    {"{{ ", "(x ~ ", "1", ")", " }}"},
    {"{{ ", "(1 < ", "1", ")", " }}"},
    {"{{ ", "(0 or ", "1", ")", " }}"},
    {"{{ ", "x|default(", "1", ")", " }}"},
    {"{{ ", "z|default(", "1", ")", " }}"},
    {"{{ ", "x.format(", "1", ")", " }}"},
    {"{{ ", "x is eq(", "1", ")", " }}"},
    {"{{ ", "x is eq ", "1", "", " }}"},
    {"{{ x", "|string", "", "", " }}"},
    {"{{ x", "[0]", "", "", " }}"},
    {"{{ x", ".a", "", "", " }}"},
    {"{{ x", "()", "", "", " }}"},
    {"", "{% if x %}", "{{ x }}", "{% endif %}", ""},
    {"", "{% for z in x %}", "{{ x }}", "{% endfor %}", ""},
    {"", "{% with a = x %}", "{{ x }}", "{% endwith %}", ""},
    {"", "{% set a %}", "{{ x }}", "{% endset %}", ""},
    {"", "{% filter upper %}", "{{ x }}", "{% endfilter %}", ""},
    {"", "{% generation %}", "{{ x }}", "{% endgeneration %}", ""},
    {"", "{% macro m() %}", "{{ x }}", "{% endmacro %}", "{{ m() }}"},
    {"{% macro m() %}{{ caller() }}{% endmacro %}", "{% call m() %}", "{{ x }}", "{% endcall %}",
     ""},
    {"{% set ", "(", "a", ")", " = 1 %}"},
    {"{% set ", "(", "a,", "),", " = 1 %}"},
};

/// The largest n for which the template is still rendered.
int DeepestThatWorks(const Nest& nest) {
  int works = 0;
  for (int step = 128; step > 0; step /= 2) {
    if (RenderError(Nested(nest, works + step)).find("too deeply") == std::string::npos) {
      works += step;
    }
  }
  return works;
}

TEST(LimitsTest, StackOfNestedText) {
  for (const Nest& nest : kNests) {
    const int deepest = DeepestThatWorks(nest);
    EXPECT_LE(deepest, 100) << nest.open;
    EXPECT_GE(deepest, 30) << nest.open;
    for (const int n : {deepest, deepest + 1, 5000}) {
      const size_t used = StackUsedBy([&] { static_cast<void>(RenderError(Nested(nest, n))); });
      EXPECT_LT(used, kAllowedBytes) << nest.open << " " << n;
    }
  }
}

/// Expressions with a call of the macro m in them, to be its body.
constexpr std::string_view kCalls[] = {
    "{{ m() }}",
    "{{ ((((m())))) }}",
    "{{ [[[m()]]] }}",
    "{{ {1:{1:m()}} }}",
    "{{ -m() }}",
    "{{ 1 + (1 + (1 + m())) }}",
    "{{ x ~ (x ~ (x ~ m())) }}",
    "{{ 1 < (1 < (1 < m())) }}",
    "{{ x|default(z|default(x|default(m()))) }}",
    "{{ 'a'.replace('a', 'a'.replace('a', 'a'.replace('a', m()))) }}",
    "{{ x is eq(x is eq(x is eq(m()))) }}",
    "{{ x[x[x[m():]:]:] }}",
    "{{ m()|upper|lower|trim }}",
    "{{ dict(a=dict(a=dict(a=m()))) }}",
    "{% if x %}{% if x %}{% if x %}{{ m() }}{% endif %}{% endif %}{% endif %}",
    "{% for a in x %}{% for a in x %}{{ m() }}{% endfor %}{% endfor %}",
    "{% for a in x if m() %}{% endfor %}",
    "{% with a = m() %}{% endwith %}",
    "{% set a %}{% set a %}{{ m() }}{% endset %}{% endset %}",
    "{% filter upper %}{% filter upper %}{{ m() }}{% endfilter %}{% endfilter %}",
    "{% if caller %}{% endif %}{% call m() %}{% endcall %}",
    "{% macro k(a=m()) %}{% endmacro %}{{ k() }}",
    "{% for a in y recursive %}{{ loop(y) }}{% endfor %}",
};

TEST(LimitsTest, StackOfCalls) {
  for (const std::string_view call : kCalls) {
    const std::string source = "{% macro m() %}" + std::string(call) + "{% endmacro %}{{ m() }}";
    std::string error;
    const size_t used = StackUsedBy([&] { error = RenderError(source); });
    EXPECT_EQ(error, "calls nested too deeply") << call;
    EXPECT_LT(used, kAllowedBytes) << call;
  }
}

TEST(LimitsTest, StackOfFiltersThatCallFilters) {
  std::string error;
  const size_t used =
      StackUsedBy([&] { error = RenderError("{{ 'a' | map(*(['map'] * 300)) | list }}"); });
  EXPECT_EQ(error, "calls nested too deeply");
  EXPECT_LT(used, kAllowedBytes);
}

TEST(LimitsTest, StackOfNestedValues) {
  const std::string nested =
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(398) %}"
      "{% set ns.x = OPEN ns.x CLOSE %}{% set ns.y = OPEN ns.y CLOSE %}{% endfor %}";
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("(", ",)"),
                                    std::pair("{1:", "}"), std::pair("namespace(a=", ")")}) {
    std::string making = nested;
    for (const auto& [word, text] : {std::pair("OPEN", open), std::pair("CLOSE", close)}) {
      for (size_t at = making.find(word); at != std::string::npos; at = making.find(word)) {
        making.replace(at, std::string_view(word).size(), text);
      }
    }
    for (const std::string_view use : {"{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x == ns.y }}",
                                       "{{ ns.x < ns.y }}", "{{ {ns.x: 1, ns.y: 1} | length }}"}) {
      const size_t used =
          StackUsedBy([&] { static_cast<void>(RenderError(making + std::string(use))); });
      EXPECT_LT(used, kAllowedBytes) << open << " " << use;
    }
  }
}

/// Loops remember what loop.changed() was given: a chain of loops must not be destroyed by
/// recursion, and one that remembers itself must not leak.
TEST(LimitsTest, StackOfObjectsThatHoldEachOther) {
  for (const std::string_view source :
       {"{% set ns = namespace(p=0) %}{% for i in range(50000) %}{% for j in x %}"
        "{{ 'c' if loop.changed([ns.p]) }}{% set ns.p = loop %}{% endfor %}{% endfor %}",
        "{% set ns = namespace(p=0) %}{% for i in range(50000) %}"
        "{% set ns.p = namespace(p=ns.p) %}{% endfor %}",
        "{% for j in x %}{{ 'c' if loop.changed(loop, [loop]) }}{% endfor %}"}) {
    std::string error;
    const size_t used = StackUsedBy([&] { error = RenderError(std::string(source)); });
    EXPECT_EQ(error, "") << source;
    EXPECT_LT(used, kAllowedBytes) << source;
  }
}

TEST(LimitsTest, WordsOfTheBudget) {
  Limits limits;
  limits.max_steps = 3;
  limits.max_value_bytes = 2048;
  Budget budget(limits);
  EXPECT_TRUE(budget.Make(2048).ok());
  EXPECT_EQ(budget.Make(1).error().Message(),
            "the template makes too many values, wanted at most 2048 bytes");
  EXPECT_TRUE(budget.Step().ok());
  EXPECT_EQ(budget.Step().error().Message(), "the template takes too many steps, wanted at most 3");
  EXPECT_FALSE(budget.Step(UINT64_MAX).ok());
}

}  // namespace
}  // namespace facet::jinja
