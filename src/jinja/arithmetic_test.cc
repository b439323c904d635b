// SPDX-License-Identifier: Apache-2.0
// Operators on values, and values as text.
#include "jinja/arithmetic.h"

#include <gtest/gtest.h>

#include <limits>

#include "jinja/compare.h"
#include "jinja/printing.h"
#include "jinja/rendering_testing.h"

namespace facet::jinja {
namespace {

TEST(ArithmeticTest, DivisionRoundsDown) {
  EXPECT_EQ(Shown("[-7 // 2, -7 % 2, 7 % -2, -7.5 // 2, -7.5 % 2, 7 / 2]"),
            "[-4, 1, -1, -4.0, 0.5, 3.5]");
  EXPECT_EQ(Shown("[0 // -0.5, 0 % -0.5, -0.0 // 2]"), "[-0.0, -0.0, -0.0]");
  EXPECT_EQ(Shown("1 // 0"), "division by zero, wanted another divisor");
  EXPECT_EQ(Shown("0.0 ** -1"), "division by zero, wanted another divisor");
  EXPECT_EQ(Shown("[2 ** -1, 2 ** 62, (-8) ** 2, true + true]"),
            "[0.5, 4611686018427387904, 64, 2]");
}

TEST(ArithmeticTest, IntegersDoNotWrap) {
  const std::string too_large = "an integer beyond 64 bits in a calculation, wanted a smaller one";
  for (const std::string_view expression :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "4611686018427387904 * 2",
        "10 ** 19", "(-9223372036854775807 - 1) // -1", "12345678901234567890 + 1"}) {
    EXPECT_EQ(Shown(expression), too_large) << expression;
  }
  EXPECT_EQ(Shown("(-9223372036854775807 - 1) % -1"), "0");
  EXPECT_EQ(Shown("-(-9223372036854775807 - 1)"), "9223372036854775808");
  EXPECT_EQ(Shown("12345678901234567890 > 12345678901234567889"), "True");
}

TEST(ArithmeticTest, SequencesAndTexts) {
  EXPECT_EQ(Shown("[1] + [2] * 2"), "[1, 2, 2]");
  EXPECT_EQ(Shown("'ab' * -1 ~ 2 * 'ab'"), "abab");
  EXPECT_EQ(Shown("(1,) + [2]"), "unsupported operand type(s) for +: 'tuple' and 'list'");
  EXPECT_EQ(Shown("'a' + 1"),
            "can only concatenate str (not \"int\") to str, wanted two strings; ~ joins anything");
  EXPECT_EQ(Shown("missing + 'a'"), "'missing' is undefined");
}

TEST(ArithmeticTest, Slices) {
  EXPECT_EQ(Shown("'éüñx'[1:-1] ~ 'éüñx'[::-2]"), "üñxü");
  EXPECT_EQ(Shown("[1, 2, 3][-99:99:2]"), "[1, 3]");
  EXPECT_EQ(Shown("range(10)[2:8:3]"), "range(2, 8, 3)");
  EXPECT_EQ(Shown("[1, 2, 3][:99999999999999999999]"), "[1, 2, 3]");
  EXPECT_EQ(Shown("[1][::0]"), "slice step cannot be zero, wanted another step");
  EXPECT_EQ(Shown("[1][:'a']"), "a slice with a bound of type str, wanted integers");
}

TEST(ArithmeticTest, Comparing) {
  EXPECT_EQ(Shown("[1 == 1.0, true == 1, 'a' == 1, [1, 2] < [1, 3], (1,) < (1, 0), [] == ()]"),
            "[True, True, False, True, True, False]");
  EXPECT_EQ(Shown("9007199254740993 == 9007199254740992.0"), "False");
  EXPECT_EQ(Shown("{1: 'a', true: 'b', 1.0: 'c'}"), "{1: 'c'}");
  EXPECT_EQ(Shown("'b' in 'abc' and 1 not in [2] and 'k' in {'k': 1}"), "True");
  EXPECT_EQ(Shown("none < 1"),
            "'<' not supported between instances of 'NoneType' and 'int', wanted values that have "
            "an order");
  EXPECT_EQ(Shown("1 in 'a'"),
            "'in <string>' requires string as left operand, not int, wanted a string");
}

TEST(ArithmeticTest, FloatsAsText) {
  EXPECT_EQ(FloatRepr(1e16), "1e+16");
  EXPECT_EQ(FloatRepr(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(FloatRepr(1e15), "1000000000000000.0");
  EXPECT_EQ(FloatRepr(0.0001), "0.0001");
  EXPECT_EQ(FloatRepr(0.00001), "1e-05");
  EXPECT_EQ(FloatRepr(5e-324), "5e-324");
  EXPECT_EQ(FloatRepr(-0.0), "-0.0");
  EXPECT_EQ(FloatRepr(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(ArithmeticTest, ValuesAsText) {
  EXPECT_EQ(Shown("[none, true, 1.0, 'a', (1,), (), {}, {'k': [1]}]"),
            "[None, True, 1.0, 'a', (1,), (), {}, {'k': [1]}]");
  EXPECT_EQ(Shown(R"(["'", '"', '\'"', '\n\x7f\u00a0é\u200b\U000e0001'])"),
            R"(["'", '"', '\'"', '\n\x7f\xa0é\u200b\U000e0001'])");
  EXPECT_EQ(Shown("[namespace(a=1), range(3), range(0, 3, 2)]"),
            "[<Namespace {'a': 1}>, range(0, 3), range(0, 3, 2)]");
  EXPECT_EQ(Shown(R"({'é\n"\\\x01': none, 1: 2.5, none: true} | tojson)"),
            R"({"é\n\"\\\u0001": null, "1": 2.5, "null": true})");
  EXPECT_EQ(Shown("['é', '😀'] | tojson(ensure_ascii=true)"), R"(["\u00e9", "\ud83d\ude00"])");
  EXPECT_EQ(Shown("missing | tojson"),
            "Object of type Undefined is not JSON serializable, wanted "
            "data");
  EXPECT_EQ(Shown("{(1,): 2} | tojson"), "a key of type tuple, wanted keys that JSON can write");
}

}  // namespace
}  // namespace facet::jinja
