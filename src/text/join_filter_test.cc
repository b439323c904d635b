// SPDX-License-Identifier: Apache-2.0
#include "text/join_filter.h"

#include <gtest/gtest.h>

#include "text/test_vocabs.h"

namespace facet {
namespace {

TEST(JoinFilterTest, KnowsEveryBorderThatAMergeCloses) {
  VocabParts parts;
  parts.texts = {"<unk>",
                 "a",
                 "b",
                 "\xc3\xa9",
                 "ab",
                 "\xc3\xa9"
                 "a",
                 "ab\xc3\xa9"
                 "a"};
  parts.kinds.assign(parts.texts.size(), TokenKind::kNormal);
  parts.merges = {{"a", "b"},
                  {"\xc3\xa9", "a"},
                  {"ab",
                   "\xc3\xa9"
                   "a"}};
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  const JoinFilter filter(*vocab);
  EXPECT_TRUE(filter.MayJoin('a', 'b'));
  EXPECT_TRUE(filter.MayJoin(U'\u00e9', 'a'));
  EXPECT_TRUE(filter.MayJoin('b', U'\u00e9'));
}

TEST(JoinFilterTest, CutsOrdinaryText) {
  const JoinFilter filter(testing::TinyVocab());
  EXPECT_TRUE(filter.MayJoin(U'\u2581', 't'));
  EXPECT_TRUE(filter.MayJoin('t', 'h'));
  int n_cut = 0;
  for (char32_t left = 'a'; left <= 'z'; ++left) {
    n_cut += filter.MayJoin(left, '\n') ? 0 : 1;
  }
  EXPECT_GT(n_cut, 13);
}

TEST(JoinFilterTest, WithoutMergesNothingJoins) {
  VocabParts parts;
  parts.texts = {"<unk>", "a"};
  parts.kinds.assign(parts.texts.size(), TokenKind::kNormal);
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  EXPECT_FALSE(JoinFilter(*vocab).MayJoin('a', 'a'));
}

}  // namespace
}  // namespace facet
