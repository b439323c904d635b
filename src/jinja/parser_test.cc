// SPDX-License-Identifier: Apache-2.0
#include "jinja/parser.h"

#include <gtest/gtest.h>

#include "jinja/rendering_testing.h"

namespace facet::jinja {
namespace {

TEST(ParserTest, Precedence) {
  EXPECT_EQ(Shown("1 + 2 * 3 ** 2"), "19");
  EXPECT_EQ(Shown("2 ** 3 ** 2"), "64");  // Jinja's powers go from left to right
  EXPECT_EQ(Shown("-2 ** 2"), "4");
  EXPECT_EQ(Shown("1 ~ 2 * 3"), "16");
  EXPECT_EQ(Shown("not 1 == 2"), "True");
  EXPECT_EQ(Shown("1 < 2 < 3 != 4"), "True");
  EXPECT_EQ(Shown("-1 | abs"), "1");
  EXPECT_EQ(Shown("1 if false else 2 if false else 3"), "3");
  EXPECT_EQ(Shown("1, 2"), "(1, 2)");
  EXPECT_EQ(Shown("('a' 'b')[1]"), "b");
  EXPECT_EQ(Shown("3 is divisibleby 3 and true"), "True");
}

TEST(ParserTest, ErrorsOfExpressions) {
  EXPECT_EQ(Rendered("{{ 1 + }}"),
            "error: t, line 1, column 8: end of print statement, wanted an expression");
  EXPECT_EQ(Rendered("{{ a.'b' }}"),
            "error: t, line 1, column 6: a string, wanted a name or a number");
  EXPECT_EQ(Rendered("{{ a[] }}"), "error: t, line 1, column 6: \"]\", wanted an index");
  EXPECT_EQ(Rendered("{{ a[1, 2] }}"), "error: t, line 1, column 7: \",\", wanted \"]\"");
  EXPECT_EQ(Rendered("{{ x is nosuch }}"),
            "error: t, line 1, column 9: unknown test \"nosuch\", wanted one that Jinja has");
  EXPECT_EQ(Rendered("{{ 0xFFFFFFFFFFFFFFFFF }}"),
            "error: t, line 1, column 4: the integer 0xFFFFFFFFFFFFFFFFF, wanted one that fits 64 "
            "bits");
}

TEST(ParserTest, ErrorsOfTags) {
  EXPECT_EQ(Rendered("{% nosuch %}"),
            "error: t, line 1, column 4: unknown tag \"nosuch\", wanted a tag that may stand here");
  EXPECT_EQ(Rendered("{% break %}"),
            "error: t, line 1, column 4: \"break\" outside a loop, wanted a loop around it in the "
            "same macro");
  EXPECT_EQ(Rendered("{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}"),
            "error: t, line 1, column 35: \"break\" outside a loop, wanted a loop around it in the "
            "same macro");
  EXPECT_EQ(Rendered("{% set none = 1 %}"),
            "error: t, line 1, column 8: assignment to \"none\", wanted a name");
  EXPECT_EQ(Rendered("{% macro m(a=1, b) %}{% endmacro %}"),
            "error: t, line 1, column 18: \")\", wanted a default value, as the parameter before "
            "has one");
  EXPECT_EQ(Rendered("{% block a %}{% endblock %}\n{% block a %}{% endblock %}"),
            "error: t, line 2, column 4: a second block \"a\", wanted one block of a name");
  EXPECT_EQ(Rendered("{% call m %}{% endcall %}"),
            "error: t, line 1, column 9: an expression that is no call, wanted a call");
  EXPECT_EQ(Rendered("{% if a b %}"),
            "error: t, line 1, column 9: \"b\", wanted end of statement block");
  EXPECT_EQ(
      Rendered("{% include 'x' %}"),
      "error: t, line 1, column 4: the tag \"include\", wanted a template that needs no other "
      "one");
}

}  // namespace
}  // namespace facet::jinja
