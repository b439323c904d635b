// SPDX-License-Identifier: Apache-2.0
// Statements, calls and look-ups: interpreter.cc and evaluate.cc.
#include "jinja/interpreter.h"

#include <gtest/gtest.h>

#include "jinja/rendering_testing.h"

namespace facet::jinja {
namespace {

TEST(InterpreterTest, ElseOfALoop) {
  EXPECT_EQ(Rendered("{% for i in [] %}a{% else %}E{% endfor %}"), "E");
  EXPECT_EQ(Rendered("{% for i in [1, 2] %}a{% else %}E{% endfor %}"), "aa");
  // Jinja looks whether a round came to its end, not whether there was one.
  EXPECT_EQ(Rendered("{% for i in [1, 2] %}{% continue %}{% else %}E{% endfor %}"), "E");
  EXPECT_EQ(Rendered("{% for i in [1, 2] %}{% break %}{% else %}E{% endfor %}"), "E");
  EXPECT_EQ(Rendered("{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}a{% else %}E"
                     "{% endfor %}"),
            "a");
}

TEST(InterpreterTest, Scopes) {
  EXPECT_EQ(Rendered("{% set a = 1 %}{% for i in [1] %}{% set a = 2 %}{% endfor %}{{ a }}"), "1");
  EXPECT_EQ(Rendered("{% set a = 1 %}{% if true %}{% set a = 2 %}{% endif %}{{ a }}"), "2");
  EXPECT_EQ(Rendered("{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}"), "12");
  EXPECT_EQ(Rendered("{% macro m() %}{{ a }}{% endmacro %}{% set a = 3 %}{{ m() }}"), "3");
  EXPECT_EQ(Rendered("{% for a, (b, c) in [[1, (2, 3)]] %}{{ a }}{{ b }}{{ c }}{% endfor %}"),
            "123");
}

TEST(InterpreterTest, MacrosBindArguments) {
  EXPECT_EQ(Rendered("{% macro m(a, b='x') %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}"
                     "{{ m(1, 2, 3, k=4) }}{{ m(b=5) }}"),
            "12(3,){'k': 4}5(){}");
  EXPECT_EQ(Rendered("{% macro m(a) %}{{ caller(a) }}{% endmacro %}"
                     "{% call(x) m(7) %}<{{ x }}>{% endcall %}"),
            "<7>");
  EXPECT_EQ(Rendered("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"),
            "error: t, line 1, column 35: macro 'm' takes not more than 1 argument(s)");
  EXPECT_EQ(Rendered("{% macro m(a) %}{% endmacro %}{{ m(b=2) }}"),
            "error: t, line 1, column 35: macro 'm' takes no keyword argument 'b'");
  EXPECT_EQ(Rendered("{{ dict(a=1, **{'a': 2}) }}"),
            "error: t, line 1, column 8: two values for the argument 'a', wanted one");
}

TEST(InterpreterTest, RecursiveLoops) {
  EXPECT_EQ(Rendered("{% for x in [[1, [2]], 3] recursive %}{{ loop.depth }}"
                     "{% if x is iterable %}({{ loop(x) }}){% endif %}{% endfor %}"),
            "1(22(3))1");
  EXPECT_EQ(Rendered("{% for x in [1] %}{{ loop(x) }}{% endfor %}"),
            "error: t, line 1, column 26: a call of a loop that is not recursive, wanted "
            "\"recursive\" in the for tag");
}

TEST(InterpreterTest, LoopsRememberWhatChanged) {
  EXPECT_EQ(Rendered("{% for x in [1, 1, 2] %}{{ loop.changed(x) }} {% endfor %}"),
            "True False True ");
  EXPECT_EQ(Rendered("{% for x in [1, 2] %}{{ loop.changed(loop, [loop]) }} {% endfor %}"),
            "True False ");
}

TEST(InterpreterTest, AttributesAndItems) {
  const Json context = Json::MakeObject({{"d", Json::MakeObject({{"items", 1}, {"a", 2}})}});
  EXPECT_EQ(Rendered("{{ d['items'] }}{{ d.items() | length }}{{ d.a }}", context), "122");
  EXPECT_EQ(Rendered("{{ d.nope.x }}", context),
            "error: t, line 1, column 10: 'dict object' has no attribute 'nope', wanted a value");
  EXPECT_EQ(Rendered("{{ d.update({}) }}", context),
            "error: t, line 1, column 12: access to attribute 'update' of 'dict' object is unsafe, "
            "wanted a function");
  EXPECT_EQ(Rendered("{{ d['__class__'].x }}", context),
            "error: t, line 1, column 18: access to attribute '__class__' of 'dict' object is "
            "unsafe, wanted a value");
  EXPECT_EQ(Rendered("{{ [1][5] is defined }}{{ [1]['x'] is defined }}"), "FalseFalse");
  EXPECT_EQ(Rendered("{{ 5() }}"),
            "error: t, line 1, column 5: 'int' object is not callable, wanted a function");
}

TEST(InterpreterTest, Namespaces) {
  EXPECT_EQ(Rendered("{% set n = namespace(a=1) %}{% for i in [1, 2] %}{% set n.a = n.a + i %}"
                     "{% endfor %}{{ n.a }}"),
            "4");
  EXPECT_EQ(Rendered("{% set n = 1 %}{% set n.a = 2 %}"),
            "error: t, line 1, column 23: cannot assign attribute on non-namespace object, wanted "
            "a namespace");
  EXPECT_EQ(Rendered("{% set n = namespace() %}{% set n._a = 2 %}"),
            "error: t, line 1, column 33: the attribute \"_a\" of a namespace, wanted a name "
            "without leading underscore");
}

}  // namespace
}  // namespace facet::jinja
