// SPDX-License-Identifier: Apache-2.0
#include "kv/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace facet {
namespace {

TEST(KvPools, BlocksTouchedIsTheWorstAlignment) {
  for (int n = 0; n < 200; ++n) {
    int worst = 0;
    for (int begin = 0; begin < kBlockPositions; ++begin) {
      worst = std::max(
          worst, n == 0 ? 0 : (begin + n - 1) / kBlockPositions - begin / kBlockPositions + 1);
    }
    EXPECT_EQ(BlocksTouched(n), worst) << n;
  }
}

TEST(KvPools, FirstVisibleFollowsTheWindowPredicate) {
  for (const int window : {1, 2, 16, 33}) {
    for (int q = 0; q < 100; ++q) {
      int first = 0;
      while (!(first > q - window)) {
        ++first;
      }
      EXPECT_EQ(FirstVisible(q, window), first) << q << " window " << window;
    }
  }
}

TEST(KvPools, OneSequence) {
  const auto plan = PlanKvPools({.n_sliding_layers = 12,
                                 .sliding_bytes_per_block = 1000,
                                 .n_full_layers = 3,
                                 .full_bytes_per_block = 500,
                                 .window = 512,
                                 .n_context = 4097,
                                 .n_sequences = 1,
                                 .max_rows = 512});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->full.n_blocks, 129);
  EXPECT_EQ(plan->full.bytes, 64500);
  EXPECT_EQ(plan->full.n_layers, 3);
  EXPECT_EQ(plan->sliding.n_blocks, 17 + 1 + 16);  // the window, one begun, the rows
  EXPECT_EQ(plan->sliding.bytes, 34000);
  EXPECT_EQ(plan->bytes, 98500);
}

TEST(KvPools, TheTableGrowsOnlyInTheFullGroupBeyondTheWindow) {
  KvPoolInput input{.n_sliding_layers = 1,
                    .sliding_bytes_per_block = 32,
                    .n_full_layers = 1,
                    .full_bytes_per_block = 32,
                    .window = 64,
                    .n_context = 1,
                    .n_sequences = 2,
                    .max_rows = 32};
  std::vector<KvPoolPlan> table;
  for (const int n_context : {32, 64, 1000, 100000}) {
    input.n_context = n_context;
    const auto plan = PlanKvPools(input);
    ASSERT_TRUE(plan.ok());
    table.push_back(*plan);
  }
  EXPECT_EQ(table[0].sliding.n_blocks, 2);
  EXPECT_EQ(table[1].sliding.n_blocks, 4);
  EXPECT_EQ(table[2].sliding.n_blocks, table[3].sliding.n_blocks);
  EXPECT_EQ(table[3].full.bytes, 2 * 3125 * 32);
  const auto no_window = PlanKvPools({.full_bytes_per_block = 1, .n_context = 100});
  ASSERT_TRUE(no_window.ok());
  EXPECT_EQ(no_window->sliding.n_blocks, 0);
  EXPECT_EQ(no_window->bytes, 4);
}

TEST(KvPools, WhateverTheSequencesDoTheSlidingPoolSuffices) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const int n_sequences = 1 + static_cast<int>(random() % 5);
    const int window = 1 + static_cast<int>(random() % 200);
    const int max_rows = n_sequences + static_cast<int>(random() % 200);
    const int n_context = 1 + static_cast<int>(random() % 1000);
    const auto plan = PlanKvPools({.window = window,
                                   .n_context = n_context,
                                   .n_sequences = n_sequences,
                                   .max_rows = max_rows});
    ASSERT_TRUE(plan.ok());
    std::vector<int> n_computed(static_cast<size_t>(n_sequences));
    for (int step = 0; step < 50; ++step) {
      int n_rows_left = max_rows;
      int n_blocks = 0;
      for (int& n : n_computed) {
        const int most = std::min(n_rows_left, n_context - n);
        const int n_rows =
            most == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(most + 1));
        n_blocks += BlocksFor(n + n_rows) - FirstVisible(n, window) / kBlockPositions;
        n_rows_left -= n_rows;
        n += n_rows;
      }
      ASSERT_LE(n_blocks, plan->sliding.n_blocks);
    }
  }
}

TEST(KvPools, RefusesOverflowAndNonsense) {
  const int most = std::numeric_limits<int>::max();
  EXPECT_EQ(PlanKvPools({.n_context = 0}).error().Message(),
            "KV plan: context 0, wanted at least 1");
  EXPECT_EQ(PlanKvPools({.window = -1, .n_context = 1}).error().Message(),
            "KV plan: window -1, wanted at least 0");
  EXPECT_EQ(PlanKvPools({.n_context = most, .n_sequences = most}).error().Message(),
            "KV plan: 144115188008747008 blocks of the full layers, wanted at most 2147483647");
  EXPECT_EQ(
      PlanKvPools({.full_bytes_per_block = int64_t{1} << 62, .n_context = 64}).error().Message(),
      "KV plan: 2 blocks of 4611686018427387904 bytes, wanted a total below 2^63 bytes");
  EXPECT_EQ(PlanKvPools({.sliding_bytes_per_block = int64_t{1} << 62,
                         .full_bytes_per_block = int64_t{1} << 62,
                         .window = most,
                         .n_context = 32,
                         .max_rows = most})
                .error()
                .Message(),
            "KV plan: 4611686018427387904 and 4611686018427387904 bytes, wanted a total below 2^63 "
            "bytes");
  EXPECT_EQ(PlanKvPools({.n_context = -1}).error().Message(),
            "KV plan: context -1, wanted at least 1");
}

TEST(KvPlan, TheCacheIsBlocksOfBothGroups) {
  KvPoolInput input{.n_sliding_layers = 2,
                    .sliding_bytes_per_block = 300,
                    .n_full_layers = 1,
                    .full_bytes_per_block = 100,
                    .window = 64,
                    .n_context = 320,
                    .n_sequences = 1,
                    .max_rows = 32};
  const auto without = PlanKvPools(input);
  input.cache_bytes = 4399;
  const auto with = PlanKvPools(input);
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_EQ(with->sliding.n_blocks, without->sliding.n_blocks + 10);
  EXPECT_EQ(with->full.n_blocks, without->full.n_blocks + 10);
  EXPECT_EQ(with->bytes, without->bytes + 4000);
  input.window = 0;
  EXPECT_EQ(PlanKvPools(input)->full.n_blocks, 10 + 43);
  input.cache_bytes = -1;
  EXPECT_EQ(PlanKvPools(input).error().Message(), "KV plan: cache bytes -1, wanted at least 0");
}

}  // namespace
}  // namespace facet
