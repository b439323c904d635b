// SPDX-License-Identifier: Apache-2.0
#include "text/special_matcher.h"

#include <gtest/gtest.h>

#include "text/test_vocabs.h"

namespace facet {
namespace {

/// The text of the longest special token that `text` begins with, or "-".
std::string Found(const SpecialMatcher& matcher, const Vocab& vocab, std::string_view text) {
  const auto match = matcher.MatchAt(text);
  if (!match) {
    return "-";
  }
  EXPECT_EQ(vocab.text(match->id).size(), match->size);
  return std::string(vocab.text(match->id));
}

TEST(SpecialMatcherTest, FindsTheTokensOfTheFamily) {
  const Vocab& vocab = testing::TinyVocab();
  const SpecialMatcher matcher(vocab);
  int n_special = 0;
  for (int id = 0; id < vocab.size(); ++id) {
    if (vocab.is_special(id)) {
      const std::string text(vocab.text(id));
      EXPECT_EQ(Found(matcher, vocab, text + "|>"), text);
      EXPECT_EQ(Found(matcher, vocab, text.substr(0, text.size() - 1)), "-");
      ++n_special;
    }
  }
  EXPECT_EQ(n_special, 24);
  EXPECT_EQ(Found(matcher, vocab, ""), "-");
  EXPECT_EQ(Found(matcher, vocab, "the"), "-");
  EXPECT_EQ(Found(matcher, vocab, "<|tool_responses>"), "-");
}

TEST(SpecialMatcherTest, TakesTheLongest) {
  VocabParts parts;
  parts.texts = {"<unk>", "<a", "<ab>", "<abc", "<ab>x\xc3\xa9", "b"};
  parts.kinds.assign(parts.texts.size(), TokenKind::kControl);
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  const SpecialMatcher matcher(*vocab);
  EXPECT_EQ(Found(matcher, *vocab, "<a>"), "<a");
  EXPECT_EQ(Found(matcher, *vocab, "<ab"), "<a");
  EXPECT_EQ(Found(matcher, *vocab, "<ab>x\xc3"), "<ab>");
  EXPECT_EQ(Found(matcher, *vocab, "<ab>x\xc3\xa9!"), "<ab>x\xc3\xa9");
  EXPECT_EQ(Found(matcher, *vocab, "<abcd"), "<abc");
  EXPECT_EQ(Found(matcher, *vocab, "b"), "b");
}

}  // namespace
}  // namespace facet
