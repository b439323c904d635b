// SPDX-License-Identifier: Apache-2.0
// Methods, and the two ways of formatting.
#include <gtest/gtest.h>

#include "jinja/rendering_testing.h"

namespace facet::jinja {
namespace {

TEST(MethodsTest, Splitting) {
  EXPECT_EQ(Shown("' a  b c '.split(none, 1)"), "['a', 'b c ']");
  EXPECT_EQ(Shown("' a  b c '.rsplit(none, 1)"), "[' a  b', 'c']");
  EXPECT_EQ(Shown("'a,,b'.split(',')"), "['a', '', 'b']");
  EXPECT_EQ(Shown("'aaa'.rsplit('aa')"), "['a', '']");
  EXPECT_EQ(Shown("'a\\r\\nb\\x0bc\\n'.splitlines(true)"), "['a\\r\\n', 'b\\x0b', 'c\\n']");
  EXPECT_EQ(Shown("'a-b-c'.rpartition('-')"), "('a-b', '-', 'c')");
  EXPECT_EQ(Shown("'a'.split('')"), "empty separator, wanted a separator");
}

TEST(MethodsTest, Searching) {
  EXPECT_EQ(Shown("'éaéa'.find('a', 2)"), "3");
  EXPECT_EQ(Shown("'éaéa'.rfind('é', 0, -3)"), "0");
  EXPECT_EQ(Shown("'aaaa'.count('aa')"), "2");
  EXPECT_EQ(Shown("'ab'.count('')"), "3");
  EXPECT_EQ(Shown("'abc'.startswith(('x', 'bc'), 1)"), "True");
  EXPECT_EQ(Shown("'abc'.startswith('', 4)"), "False");
  EXPECT_EQ(Shown("'abc'.index('x')"), "substring not found, wanted one that is there");
  EXPECT_EQ(Shown("'aXbX'.replace('', '-', 3)"), "-a-X-bX");
}

TEST(MethodsTest, CaseBeyondAscii) {
  EXPECT_EQ(Shown("'straße ŉ'.upper()"), "STRASSE ʼN");
  EXPECT_EQ(Shown("'ΟΔΟΣ ΣΑΣ.'.lower()"), "οδος σας.");
  EXPECT_EQ(Shown("'ǆ they\\'re'.title()"), "ǅ They'Re");
  EXPECT_EQ(Shown("'İ'.lower() | length"), "2");
  EXPECT_EQ(Shown("'ÀéǅZ'.swapcase()"), "àÉǅz");
  EXPECT_EQ(Shown("'Aǅ'.isupper()"), "False");
}

TEST(MethodsTest, QuestionsAboutCharacters) {
  EXPECT_EQ(Shown("['²'.isdigit(), '²'.isdecimal(), '½'.isnumeric(), '٣'.isdecimal()]"),
            "[True, False, True, True]");
  EXPECT_EQ(Shown("['\\u00a0'.isspace(), '\\u200b'.isspace(), ''.isspace(), ''.isprintable()]"),
            "[True, False, False, True]");
  EXPECT_EQ(Shown("['aé1'.isidentifier(), '1a'.isidentifier(), 'ª'.isalpha()]"),
            "[True, False, True]");
}

TEST(MethodsTest, Padding) {
  EXPECT_EQ(Shown("'a'.center(4, '*') ~ 'ab'.center(5, '*')"), "*a****ab*");
  EXPECT_EQ(Shown("'-5'.zfill(4) ~ '+'.zfill(3)"), "-005+00");
  EXPECT_EQ(Shown("'a\\tb'.expandtabs(4)"), "a   b");
  EXPECT_EQ(Shown("'é'.ljust(3, '..')"), "a fill of 2 characters, wanted one");
  EXPECT_EQ(Shown("'abc'.removeprefix('ab') ~ 'abc'.removesuffix('b')"), "cabc");
}

TEST(MethodsTest, ListsAndDicts) {
  EXPECT_EQ(Shown("[1, true, 'a'].count(1.0)"), "2");
  EXPECT_EQ(Shown("[1].index(2)"),
            "index() of a value that is not in the list, wanted one that is");
  EXPECT_EQ(Shown("{'a': 1}.get('b', 2)"), "2");
  EXPECT_EQ(Shown("{'a': 1}.get([])"), "unhashable type: 'list', wanted a key that cannot change");
  EXPECT_EQ(Shown("{'a': 1}.keys()"), "dict_keys(['a'])");
  EXPECT_EQ(Shown("', '.join(['a', 1])"),
            "sequence item 1: expected str instance, int found, wanted strings");
}

TEST(MethodsTest, FormatPercent) {
  EXPECT_EQ(Shown("'%05.1f|%-4d|%+d|%x|%%' % (2.25, 3, 4, 255)"), "002.2|3   |+4|ff|%");
  EXPECT_EQ(Shown("'%(a)s %(b)r' % {'a': 1, 'b': 'x'}"), "1 'x'");
  EXPECT_EQ(Shown("'%*d' % (5, 1)"), "    1");
  EXPECT_EQ(Shown("'%s' % [1, 2]"), "[1, 2]");
  // What has items may be left over.
  EXPECT_EQ(Shown("'a' % [1] ~ 'b' % {} ~ 'c' % missing"), "abc");
  EXPECT_EQ(Shown("'a' % 1"), "not all arguments converted during string formatting");
  EXPECT_EQ(Shown("'a' % (1,)"), "not all arguments converted during string formatting");
  EXPECT_EQ(Shown("'%s %s' % (1,)"), "not enough arguments for format string");
  EXPECT_EQ(Shown("'%d' % 'a'"), "%d format: a real number is required, not str, wanted a number");
  EXPECT_EQ(Shown("'%y' % 1"),
            "an unknown conversion \"y\" in the format \"%y\", wanted a valid "
            "format");
}

TEST(MethodsTest, FormatBraces) {
  EXPECT_EQ(Shown("'{0[a]}{1.x}{b!r:>5}'.format({'a': 1}, {'x': 2}, b='c')"), "12  'c'");
  EXPECT_EQ(Shown("'{:,}|{:_x}|{:+.2e}|{:08.3f}|{:%}'.format(1234567, 74565, 1.5, -1.5, 0.25)"),
            "1,234,567|1_2345|+1.50e+00|-001.500|25.000000%");
  EXPECT_EQ(Shown("'{:*^{w}}'.format('a', w=5)"), "**a**");
  EXPECT_EQ(Shown("'{{}} {}'.format(1)"), "{} 1");
  EXPECT_EQ(Shown("'{'.format(1)"), "a single \"{\" in the format \"{\", wanted a valid format");
  EXPECT_EQ(Shown("'{2}'.format(1)"), "replacement index 2 out of range, wanted 1 arguments");
  EXPECT_EQ(Shown("'{:d}'.format('a')"),
            "the format code \"d\" for an object of type 'str', wanted \"s\"");
}

}  // namespace
}  // namespace facet::jinja
