// SPDX-License-Identifier: Apache-2.0
#include "jinja/lexer.h"

#include <gtest/gtest.h>

#include <vector>

namespace facet::jinja {
namespace {

/// The tokens as "kind" or "text", blank between them; data in brackets.
std::string Shown(std::string_view source) {
  const Result<std::vector<Token>> tokens = Tokenize(source, "t");
  if (!tokens.ok()) {
    return tokens.error().Message();
  }
  std::string shown;
  for (const Token& token : *tokens) {
    switch (token.kind) {
      case Token::Kind::kBlockBegin:
      case Token::Kind::kBlockEnd:
        shown += "% ";
        break;
      case Token::Kind::kVariableBegin:
      case Token::Kind::kVariableEnd:
        shown += "= ";
        break;
      case Token::Kind::kEnd:
        break;
      case Token::Kind::kData:
      case Token::Kind::kString:
        shown += "[" + token.text + "] ";
        break;
      default:
        shown += token.text + " ";
    }
  }
  return shown;
}

TEST(LexerTest, TagsTakeWhiteSpace) {
  EXPECT_EQ(Shown("a\n  {% if x %}\nb"), "[a\n] % if x % [b] ");
  EXPECT_EQ(Shown("a  {% if x %}\nb"), "[a  ] % if x % [b] ");
  EXPECT_EQ(Shown("a\n  {%+ if x +%}\nb"), "[a\n  ] % if x % [\nb] ");
  EXPECT_EQ(Shown("a\n \u00a0{{- x -}}\n\n b"), "[a] = x = [b] ");
  EXPECT_EQ(Shown("a\n  {{ x }}\nb"), "[a\n  ] = x = [\nb] ");
  EXPECT_EQ(Shown("a\n  {# {{ x #}\nb"), "[a\n] [b] ");
  EXPECT_EQ(Shown("a {%- raw -%} {{ x }} {%- endraw %} b"), "[a] [{{ x }}] [ b] ");
}

TEST(LexerTest, LineEnds) {
  EXPECT_EQ(Shown("a\r\nb\rc\n"), "[a\nb\nc] ");
  EXPECT_EQ(Shown("a\n\n"), "[a\n] ");
}

TEST(LexerTest, NumbersAndOperators) {
  EXPECT_EQ(Shown("{{ 1_000 0x1F 1.5e-3 2. }}"), "= 1000 0x1F 1.5e-3 2 . = ");
  EXPECT_EQ(Shown("{{ d.1.5 }}"), "= d . 1 . 5 = ");
  EXPECT_EQ(Shown("{{ a**-b//c }}"), "= a ** - b // c = ");
  EXPECT_EQ(Shown("{{ {'a': {}} }}"), "= { [a] : { } } = ");
}

TEST(LexerTest, StringsAreUnescaped) {
  EXPECT_EQ(Shown(R"({{ 'a\n\x41\u00e9\'\q\101' "}}" }})"), "= [a\nAé'\\qA] [}}] = ");
  EXPECT_EQ(Shown(R"({{ '\ud83d' }})"), "= [\ufffd] = ");
}

TEST(LexerTest, Errors) {
  EXPECT_EQ(Shown("é{{ ( ] }}"), "t, line 1, column 7: unexpected \"]\", wanted \")\"");
  EXPECT_EQ(Shown("\n{{ 'abc }}"), "t, line 2, column 4: a string without end, wanted a closing '");
  EXPECT_EQ(Shown("{{ a ? b }}"),
            "t, line 1, column 6: unexpected character \"?\", wanted an expression");
  EXPECT_EQ(Shown("a\n {# b"), "t, line 2, column 2: missing end of comment tag, wanted \"#}\"");
  EXPECT_EQ(Shown("{% raw %}{% endra %}"),
            "t, line 1, column 1: missing end of raw directive, wanted \"{% endraw %}\"");
  EXPECT_EQ(Shown(R"({{ '\x4' }})"),
            "t, line 1, column 4: a broken escape in a string, wanted 2 digits of a code point");
}

}  // namespace
}  // namespace facet::jinja
