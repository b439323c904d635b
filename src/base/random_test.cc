// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

namespace facet {
namespace {

using Block = std::array<uint32_t, 4>;
using Key = std::array<uint32_t, 2>;

/// Philox 4x32-10 as the paper writes it, for whole 128-bit counters: the known answers need those.
Block Philox(Block x, Key key) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
    }
    const uint64_t a = uint64_t{0xD2511F53u} * x[0];
    const uint64_t b = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
  }
  return x;
}

// The three vectors of Random123's kat_vectors for philox4x32, 10 rounds.
TEST(RandomTest, ReferenceGivesTheKnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, EqualsTheReference) {
  EXPECT_EQ(RandomBits(0, 0), 0xe169c58d6627e8d5u);
  uint64_t seed = 1;
  uint64_t counter = 0;
  for (int i = 0; i < 20000; ++i) {
    const Block block =
        Philox({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    ASSERT_EQ(RandomBits(seed, counter), (uint64_t{block[1]} << 32) | block[0]);
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    counter = i % 2 == 0 ? counter + 1 : ~seed;
  }
}

TEST(RandomTest, SeedsAndCountersGiveDifferentBits) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t counter = 0; counter < 100; ++counter) {
      seen.insert(RandomBits(seed, counter));
    }
  }
  EXPECT_EQ(seen.size(), 10000u);
}

TEST(RandomTest, UniformStaysBelowOneAndFillsTheRange) {
  constexpr int kBins = 64;
  constexpr int kDraws = 64000;
  std::array<int, kBins> counts{};
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double value = RandomUniform(42, i);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ASSERT_EQ(value, static_cast<double>(RandomBits(42, i) >> 11) / 9007199254740992.0);
    ++counts[static_cast<size_t>(value * kBins)];
    sum += value;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);  // about four standard errors
  double chi_square = 0;
  for (const int count : counts) {
    const double difference = count - kDraws / double{kBins};
    chi_square += difference * difference / (kDraws / double{kBins});
  }
  EXPECT_LT(chi_square, 103.4);  // 63 degrees of freedom, one in a thousand lies above
}

}  // namespace
}  // namespace facet
