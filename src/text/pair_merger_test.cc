// SPDX-License-Identifier: Apache-2.0
#include "text/pair_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/test_vocabs.h"

namespace facet {
namespace {

using ::testing::ElementsAre;

/// The definition: again and again the merge of the lowest rank, of equal ones the first.
std::vector<int> MergedSlowly(const Vocab& vocab, std::vector<int> ids) {
  while (true) {
    int best = -1;
    size_t position = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const int rank = vocab.FindMerge(ids[i], ids[i + 1]);
      if (rank >= 0 && (best < 0 || rank < best)) {
        best = rank;
        position = i;
      }
    }
    if (best < 0) {
      return ids;
    }
    ids[position] = vocab.merges()[static_cast<size_t>(best)].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(position) + 1);
  }
}

TEST(PairMergerTest, EqualsTheDefinitionOnRandomPieces) {
  const Vocab& vocab = testing::TinyVocab();
  // Pieces that merges start from, so that random words really merge.
  std::vector<int> letters;
  for (size_t rank = 0; rank < 40; ++rank) {
    letters.push_back(vocab.merges()[rank].left);
    letters.push_back(vocab.merges()[rank].right);
  }
  std::mt19937 random(1);
  PairMerger merger(vocab);
  size_t n_merged = 0;
  for (size_t n = 0; n < 300; ++n) {
    std::vector<int> pieces;
    for (size_t i = 0; i < n; ++i) {
      pieces.push_back(letters[random() % letters.size()]);
    }
    merger.pieces().assign(pieces.begin(), pieces.end());
    std::vector<int> merged = {7};
    merger.MergeInto(merged);
    std::vector<int> wanted = MergedSlowly(vocab, pieces);
    n_merged += n - wanted.size();
    wanted.insert(wanted.begin(), 7);
    ASSERT_EQ(merged, wanted) << n;
    EXPECT_TRUE(merger.pieces().empty());
  }
  EXPECT_GT(n_merged, 10000u);
}

TEST(PairMergerTest, NothingGivesNothing) {
  PairMerger merger(testing::TinyVocab());
  std::vector<int> out;
  merger.MergeInto(out);
  EXPECT_TRUE(out.empty());
  merger.pieces() = {300};
  merger.MergeInto(out);
  EXPECT_THAT(out, ElementsAre(300));
}

}  // namespace
}  // namespace facet
