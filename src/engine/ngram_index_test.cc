// SPDX-License-Identifier: Apache-2.0
#include "engine/ngram_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace facet {
namespace {

using Tokens = std::vector<int32_t>;

Tokens RandomTokens(size_t n, int32_t n_kinds, uint32_t seed) {
  std::mt19937 random(seed);
  Tokens tokens(n);
  for (int32_t& token : tokens) {
    token = static_cast<int32_t>(random() % static_cast<uint32_t>(n_kinds));
  }
  return tokens;
}

/// The definition, by looking at every place from the newest on.
NgramIndex::Match Search(const Tokens& tokens, int n_most) {
  NgramIndex::Match match;
  const auto n_tokens = static_cast<int>(tokens.size());
  int from = 0;
  int n_places = 0;
  for (int place = n_tokens - 1; place >= NgramIndex::kShortest; --place) {
    int n_agreeing = 0;
    while (n_agreeing < std::min(place, NgramIndex::kLongest) &&
           tokens[static_cast<size_t>(place - 1 - n_agreeing)] ==
               tokens[static_cast<size_t>(n_tokens - 1 - n_agreeing)]) {
      ++n_agreeing;
    }
    if (n_agreeing < NgramIndex::kShortest || ++n_places > NgramIndex::kMaxPlaces) {
      continue;
    }
    if (n_agreeing > match.n_agreeing) {
      match.n_agreeing = n_agreeing;
      from = place;
    }
  }
  Tokens text = tokens;
  for (int n = 0; n < (match.n_agreeing > 0 ? n_most : 0); ++n) {
    text.push_back(text[static_cast<size_t>(from + n)]);
    match.drafts.push_back(text.back());
  }
  return match;
}

TEST(NgramIndex, NothingIsGuessedOfTooFewTokensOrWithoutRepetition) {
  NgramIndex index;
  EXPECT_EQ(index.Find({}, 4).n_agreeing, 0);
  Tokens tokens;
  for (int32_t token = 0; token < 100; ++token) {
    tokens.push_back(token);
    index.Extend(tokens);
    const NgramIndex::Match match = index.Find(tokens, 4);
    EXPECT_EQ(match.n_agreeing, 0);
    EXPECT_TRUE(match.drafts.empty());
  }
}

TEST(NgramIndex, TheLongestAgreementWinsAndOfSeveralTheNewest) {
  NgramIndex index;
  //                     three agree           two agree        two agree        the end
  const Tokens tokens = {7, 8, 9, 50, 51, /**/ 1, 8, 9, 60, /**/ 2, 8, 9, 70, /**/ 7, 8, 9};
  index.Extend(tokens);
  const NgramIndex::Match match = index.Find(tokens, 2);
  EXPECT_EQ(match.n_agreeing, 3);
  EXPECT_EQ(match.drafts, (Tokens{50, 51}));

  NgramIndex other;
  const Tokens equal = {1, 8, 9, 60, 2, 8, 9, 70, 3, 8, 9};
  other.Extend(equal);
  EXPECT_EQ(other.Find(equal, 1).n_agreeing, 2);
  EXPECT_EQ(other.Find(equal, 1).drafts, (Tokens{70}));
  EXPECT_TRUE(other.Find(equal, 0).drafts.empty());
}

TEST(NgramIndex, ALoopGoesOnForAsLongAsIsAsked) {
  for (size_t period = 1; period <= 5; ++period) {
    Tokens tokens;
    for (size_t n = 0; n < 23; ++n) {
      tokens.push_back(static_cast<int32_t>(100 + n % period));
    }
    NgramIndex index;
    index.Extend(tokens);
    const NgramIndex::Match match = index.Find(tokens, 16);
    EXPECT_EQ(match.n_agreeing, 8);
    ASSERT_EQ(match.drafts.size(), 16U);
    for (size_t n = 0; n < 16; ++n) {
      EXPECT_EQ(match.drafts[n], static_cast<int32_t>(100 + (23 + n) % period)) << period;
    }
  }
}

TEST(NgramIndex, FindsWhatASearchOfAllPlacesFinds) {
  int n_matches = 0;
  for (uint32_t seed = 0; seed < 24; ++seed) {
    const Tokens text = RandomTokens(400, 2 + static_cast<int32_t>(seed % 8), seed);
    NgramIndex index;
    Tokens tokens;
    for (const int32_t token : text) {
      tokens.push_back(token);
      if (tokens.size() % (1 + seed % 3) != 0) {
        continue;  // several tokens are taken up at once
      }
      index.Extend(tokens);
      const NgramIndex::Match found = index.Find(tokens, 5);
      const NgramIndex::Match wanted = Search(tokens, 5);
      ASSERT_EQ(found.n_agreeing, wanted.n_agreeing) << seed << ", " << tokens.size();
      ASSERT_EQ(found.drafts, wanted.drafts) << seed << ", " << tokens.size();
      n_matches += found.n_agreeing > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(n_matches, 3000);
}

TEST(NgramIndex, ALargeTextIsFoundInWhateverItsHashes) {
  const Tokens text = RandomTokens(100'000, 262'144, 1);
  NgramIndex index;
  index.Extend(text);
  Tokens tokens = text;
  int n_found = 0;
  for (size_t at = 0; at + 5 < text.size(); at += 97) {
    tokens.push_back(text[at]);
    tokens.push_back(text[at + 1]);
    index.Extend(tokens);
    n_found += index.Find(tokens, 1).drafts == Tokens{text[at + 2]} ? 1 : 0;
  }
  EXPECT_EQ(n_found, 1031);
}

TEST(NgramIndex, QuotedTextIsGuessedWithoutAFault) {
  const Tokens passage = RandomTokens(300, 1000, 7);
  Tokens tokens = RandomTokens(500, 1000, 8);
  tokens.insert(tokens.end(), passage.begin(), passage.end());
  const Tokens between = RandomTokens(200, 1000, 9);
  tokens.insert(tokens.end(), between.begin(), between.end());
  NgramIndex index;
  int n_drafted = 0;
  int n_right = 0;
  for (size_t n = 0; n < passage.size();) {
    index.Extend(tokens);
    const size_t n_most = std::min<size_t>(8, passage.size() - n - 1);
    const NgramIndex::Match match = index.Find(tokens, static_cast<int>(n_most));
    size_t n_accepted = 0;
    if (n > 3) {  // the passage is known by its first tokens
      while (n_accepted < match.drafts.size() &&
             match.drafts[n_accepted] == passage[n + n_accepted]) {
        ++n_accepted;
      }
      n_drafted += static_cast<int>(n_most);
      n_right += static_cast<int>(n_accepted);
    }
    for (size_t taken = 0; taken <= n_accepted; ++taken) {
      tokens.push_back(passage[n++]);
    }
  }
  EXPECT_GT(n_drafted, 250);
  EXPECT_EQ(n_right, n_drafted);
}

TEST(NgramIndex, MemoryIsLinearInTheTokens) {
  for (const int32_t n_kinds : {1, 2, 1000, 262'144}) {
    const Tokens text = RandomTokens(131'072, n_kinds, 3);
    NgramIndex index;
    for (size_t n_tokens = 64; n_tokens <= text.size(); n_tokens += n_tokens / 2) {
      index.Extend(std::span(text).first(n_tokens));
      EXPECT_LE(index.n_bytes(), NgramIndex::kMaxBytesPerToken * n_tokens) << n_kinds;
    }
  }
}

}  // namespace
}  // namespace facet
