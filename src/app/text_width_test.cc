// SPDX-License-Identifier: Apache-2.0
#include "app/text_width.h"

#include <gtest/gtest.h>

#include <vector>

namespace facet {
namespace {

std::vector<std::string> Graphemes(std::string_view text) {
  std::vector<std::string> all;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = NextGrapheme(text, pos);
    all.emplace_back(text.substr(pos, end - pos));
    pos = end;
  }
  return all;
}

TEST(NextGrapheme, KeepsClustersTogether) {
  EXPECT_EQ(Graphemes("ab"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Graphemes("e\u0301x"), (std::vector<std::string>{"e\u0301", "x"}));
  EXPECT_EQ(Graphemes("👩‍👩‍👧!"),
            (std::vector<std::string>{"👩‍👩‍👧", "!"}));
  EXPECT_EQ(Graphemes("🇫🇷🇩🇪"), (std::vector<std::string>{"🇫🇷", "🇩🇪"}));
  EXPECT_EQ(Graphemes("a\nb"), (std::vector<std::string>{"a", "\n", "b"}));
}

TEST(PreviousGrapheme, IsTheInverse) {
  for (const std::string text :
       {"abc", "a e\u0301x", "👩‍👩‍👧!\n🇫🇷🇩🇪🇮🇹", "日本 語",
        " \u0308x"}) {
    std::vector<size_t> forward;
    for (size_t pos = 0; pos < text.size(); pos = NextGrapheme(text, pos)) {
      forward.push_back(pos);
    }
    size_t pos = text.size();
    while (pos > 0) {
      pos = PreviousGrapheme(text, pos);
      ASSERT_FALSE(forward.empty());
      EXPECT_EQ(pos, forward.back()) << text;
      forward.pop_back();
    }
  }
}

TEST(GraphemeWidth, CountsColumns) {
  EXPECT_EQ(GraphemeWidth("a"), 1);
  EXPECT_EQ(GraphemeWidth("日"), 2);
  EXPECT_EQ(GraphemeWidth("e\u0301"), 1);
  EXPECT_EQ(GraphemeWidth("👩‍👩‍👧"), 2);
  EXPECT_EQ(GraphemeWidth("\t"), 4);
  EXPECT_EQ(GraphemeWidth("\x1b"), 2);
}

TEST(ShownLine, HasNoLineBreaks) { EXPECT_EQ(ShownLine("a\nb\r\n\x1b[1m"), "a b ^[[1m"); }

TEST(ShownText, NeutralisesControls) {
  EXPECT_EQ(ShownText("a\x1b[31mb\n\tc"), "a^[[31mb\n    c");
  EXPECT_EQ(ShownText(std::string_view("\0\x7f\r", 3)), "^@^?");
  EXPECT_EQ(ShownText("\u009b31m"), "^?31m");
  EXPECT_EQ(ShownText("é日"), "é日");
  EXPECT_EQ(ShownText("\xff"), "\uFFFD");
}

}  // namespace
}  // namespace facet
