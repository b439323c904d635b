// SPDX-License-Identifier: Apache-2.0
#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace facet {
namespace {

TEST(BlockPool, HandsOutLowIdsFirstAndStopsWhenEmpty) {
  BlockPool pool(2);
  EXPECT_EQ(pool.Allocate(), 0);
  EXPECT_EQ(pool.Allocate(), 1);
  EXPECT_EQ(pool.Allocate(), std::nullopt);
  pool.Release(0);
  EXPECT_EQ(pool.n_free(), 1);
  EXPECT_EQ(pool.Allocate(), 0);
}

TEST(BlockPool, ABlockIsFreeOnlyWhenItsLastReferenceIsGone) {
  BlockPool pool(1);
  const BlockId block = *pool.Allocate();
  pool.AddRef(block);
  EXPECT_EQ(pool.refs(block), 2);
  pool.Release(block);
  EXPECT_EQ(pool.n_free(), 0);
  pool.Release(block);
  EXPECT_EQ(pool.n_free(), 1);
}

TEST(BlockPoolDeathTest, MisuseAborts) {
  BlockPool pool(1);
  EXPECT_DEATH(pool.Release(0), "CHECK failed: refs > 0");
  EXPECT_DEATH(pool.AddRef(0), "CHECK failed: refs > 0");
  EXPECT_DEATH(pool.Release(1), "CHECK failed");
  EXPECT_DEATH(pool.Release(kNoBlock), "CHECK failed");
}

TEST(BlockPool, RandomOperationsAgreeWithAModel) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const int n_blocks = static_cast<int>(random() % 20);
    BlockPool pool(n_blocks);
    std::map<BlockId, int> held;
    for (int op = 0; op < 500; ++op) {
      const auto pick = [&] {
        return std::next(held.begin(), static_cast<long>(random() % held.size()));
      };
      if (const auto kind = random() % 3; kind == 0 || held.empty()) {
        const auto block = pool.Allocate();
        ASSERT_EQ(block.has_value(), static_cast<int>(held.size()) < n_blocks);
        if (block) {
          ASSERT_TRUE(held.emplace(*block, 1).second) << "handed out twice";
        }
      } else if (kind == 1) {
        const auto it = pick();
        pool.AddRef(it->first);
        ++it->second;
      } else {
        const auto it = pick();
        pool.Release(it->first);
        if (--it->second == 0) {
          held.erase(it);
        }
      }
      ASSERT_EQ(pool.n_free(), n_blocks - static_cast<int>(held.size()));
      for (BlockId block = 0; block < n_blocks; ++block) {
        const auto it = held.find(block);
        ASSERT_EQ(pool.refs(block), it == held.end() ? 0 : it->second);
      }
    }
  }
}

TEST(BlockPool, CountsBlocksThatOnlyACacheHolds) {
  BlockPool pool(3);
  const BlockId a = *pool.Allocate();
  const BlockId b = *pool.Allocate();
  pool.AddRef(a);
  pool.SetCached(a, true);
  EXPECT_EQ(pool.n_idle(), 0) << "another holds it too";
  pool.SetCached(b, true);
  EXPECT_EQ(pool.n_idle(), 1);
  pool.Release(a);
  EXPECT_EQ(pool.n_idle(), 2);
  pool.AddRef(b);
  pool.AddRef(b);
  EXPECT_EQ(pool.n_idle(), 1);
  pool.SetCached(b, false);
  pool.Release(b);
  pool.Release(b);
  EXPECT_EQ(pool.n_idle(), 1);
  EXPECT_DEATH(pool.Release(a), "is_cached");
  pool.SetCached(a, false);
  pool.Release(a);
  EXPECT_EQ(pool.n_idle(), 0);
  EXPECT_EQ(pool.n_free(), 2);
}

}  // namespace
}  // namespace facet
