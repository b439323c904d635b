// SPDX-License-Identifier: Apache-2.0
// Filters, the words after "is", and the global functions.
#include <gtest/gtest.h>

#include "jinja/builtins.h"
#include "jinja/rendering_testing.h"

namespace facet::jinja {
namespace {

TEST(FiltersTest, TablesAreSorted) {
  for (const std::string_view name : {"abs", "wordwrap", "capitalize", "xmlattr", "tojson", "e"}) {
    EXPECT_NE(FindFilter(name), nullptr) << name;
  }
  for (const std::string_view name : {"!=", "upper", "in", "eq", "none"}) {
    EXPECT_NE(FindTest(name), nullptr) << name;
  }
  EXPECT_EQ(FindFilter("zzz"), nullptr);
  EXPECT_EQ(FindTest(""), nullptr);
  EXPECT_EQ(FindGlobal("print"), nullptr);
}

TEST(FiltersTest, BatchesAndSlices) {
  EXPECT_EQ(Shown("range(5) | batch(2, 'x') | list"), "[[0, 1], [2, 3], [4, 'x']]");
  EXPECT_EQ(Shown("range(3) | batch(-1, 'x') | list"), "[[0, 1, 2]]");
  EXPECT_EQ(Shown("[] | batch(0) | list"), "[]");
  EXPECT_EQ(Shown("[1, 2] | batch(0) | list"), "[[], [1, 2]]");  // as Jinja
  EXPECT_EQ(Shown("range(5) | slice(3) | list"), "[[0, 1], [2, 3], [4]]");
  EXPECT_EQ(Shown("range(5) | slice(-1) | list"), "[]");
  EXPECT_EQ(Shown("[1] | slice(0)"), "slice(0), wanted another number");
}

TEST(FiltersTest, GeneratorsAreWalkedOnce) {
  EXPECT_EQ(Rendered("{% set g = [1, 2, 3] | map('string') %}{{ g | first }}{{ g | list }}"
                     "{{ g | list }}"),
            "1['2', '3'][]");
  EXPECT_EQ(Shown("([] | map('upper')) is true"), "False");
  EXPECT_EQ(Shown("[1] | select | length"),
            "object of type 'generator' has no len(), wanted a string, a list or a dict");
}

TEST(FiltersTest, SortingGroupsAndExtremes) {
  EXPECT_EQ(Shown("['b', 'A', 'a', 'B'] | sort | join"), "AabB");
  EXPECT_EQ(Shown("['b', 'A', 'a', 'B'] | sort(true, true) | join"), "baBA");
  EXPECT_EQ(Shown("[{'n': {'x': 2}}, {'n': {'x': 1}}] | sort(attribute='n.x') | first"),
            "{'n': {'x': 1}}");
  EXPECT_EQ(Shown("['a', 'B', 'A'] | unique | join"), "aB");
  EXPECT_EQ(Shown("[{'a': 1}, {}, {'a': 1}] | groupby('a', default=0) | map('first') | list"),
            "[0, 1]");
  EXPECT_EQ(Shown("['b', 'A'] | max"), "b");
  EXPECT_EQ(Shown("[1, 'a'] | sort"),
            "'<' not supported between instances of 'str' and 'int', wanted values that have an "
            "order");
}

TEST(FiltersTest, Numbers) {
  EXPECT_EQ(Shown("2.5 | round"), "2.0");
  EXPECT_EQ(Shown("1.005 | round(2)"), "1.0");
  EXPECT_EQ(Shown("-2.1 | round(0, 'floor')"), "-3.0");
  EXPECT_EQ(Shown("' 0x1F ' | int(base=16)"), "31");
  EXPECT_EQ(Shown("'1e3' | int"), "1000");
  EXPECT_EQ(Shown("'x' | int(-1)"), "-1");
  EXPECT_EQ(Shown("'1_0.5' | float"), "10.5");
  EXPECT_EQ(Shown("1000000 | filesizeformat"), "1.0 MB");
  EXPECT_EQ(Shown("1536 | filesizeformat(true)"), "1.5 KiB");
  EXPECT_EQ(Shown("-0.1 | filesizeformat"), "0 Bytes");
}

TEST(FiltersTest, Text) {
  EXPECT_EQ(Shown("'a b c d e f' | truncate(8, leeway=0)"), "a b...");
  EXPECT_EQ(Shown("[1, 2] | truncate(5)"), "[1, 2]");
  EXPECT_EQ(Shown("missing | truncate(5) is defined"), "False");
  EXPECT_EQ(Shown("range(20) | truncate(5)"), "truncate of a range, wanted a string");
  EXPECT_EQ(Shown("'a\\n\\nb' | indent(2, blank=true)"), "a\n  \n  b");
  EXPECT_EQ(Shown("\"<a href='x'>1 &amp; 2</a> <!-- c -->\" | striptags"), "1 & 2");
  EXPECT_EQ(Shown("\"<'&\" | e"), "&lt;&#39;&amp;");
  EXPECT_EQ(Shown("{'a b': 'ä', 'c': 1} | urlencode"), "a+b=%C3%A4&c=1");
  EXPECT_EQ(Shown("{'a': 1, 'b': none} | xmlattr"), " a=\"1\"");
  EXPECT_EQ(Shown("'hello wORLD-x' | title"), "Hello World-X");
  EXPECT_EQ(Shown("{'b': [1, {}], 'a': 'é<'} | tojson(indent=1, sort_keys=true)"),
            "{\n \"a\": \"é<\",\n \"b\": [\n  1,\n  {}\n ]\n}");
}

TEST(FiltersTest, WordsAfterIs) {
  EXPECT_EQ(Shown("missing is undefined and missing is sequence and 'a' is iterable"), "True");
  EXPECT_EQ(Shown("true is number and true is not integer and 1 is not boolean"), "True");
  EXPECT_EQ(Shown("'upper' is filter and 'nosuch' is not test"), "True");
  EXPECT_EQ(Shown("[] is filter"), "unhashable type: 'list', wanted a key that cannot change");
  EXPECT_EQ(Shown("-3 is odd and 4 is divisibleby 2 and 2 is in [1, 2]"), "True");
  EXPECT_EQ(Shown("1 is divisibleby 0"), "division by zero, wanted another divisor");
  EXPECT_EQ(Shown("1 is sameas true or missing is sameas missing"), "False");
  EXPECT_EQ(Shown("'a' is divisibleby([])"), "False");  // formats, as % does
  EXPECT_EQ(Shown("'a' is odd"), "not all arguments converted during string formatting");
}

TEST(FiltersTest, Functions) {
  EXPECT_EQ(Shown("strftime_now('%d %b %Y')"), "14 Nov 2023");
  EXPECT_EQ(Shown("range(5, 0, -2) | list"), "[5, 3, 1]");
  EXPECT_EQ(Shown("dict([('a', 1)], b=2)"), "{'a': 1, 'b': 2}");
  EXPECT_EQ(Shown("dict([1])"), "'int' object is not iterable, wanted something to iterate over");
  EXPECT_EQ(Rendered("{% set j = joiner('|') %}{{ j() }}a{{ j() }}b"), "a|b");
  EXPECT_EQ(Rendered("{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.current }}"),
            "121");
}

TEST(FiltersTest, Arguments) {
  EXPECT_EQ(Shown("[] | list(1)"), "list() with 1 arguments, wanted at most 0");
  EXPECT_EQ(Shown("'a' | indent(nosuch=1)"), "indent() with an unknown argument 'nosuch'");
  EXPECT_EQ(Shown("'a' | indent(1, width=1)"), "indent() with a repeated argument 'width'");
  EXPECT_EQ(Shown("[1] | groupby"),
            "groupby() without the argument 'attribute', wanted a value for "
            "it");
  EXPECT_EQ(Shown("'a' | center('x')"), "center() with a str, wanted an integer");
}

}  // namespace
}  // namespace facet::jinja
