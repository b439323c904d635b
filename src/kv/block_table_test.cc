// SPDX-License-Identifier: Apache-2.0
#include "kv/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "kv/plan.h"

namespace facet {
namespace {

TEST(BlockTable, GrowTakesAllOrNothing) {
  BlockPool pool(3);
  BlockTable table(&pool);
  EXPECT_TRUE(table.Grow(33));
  EXPECT_EQ(table.n_held(), 2);
  EXPECT_EQ(table.BlocksToGrow(64), 0);
  EXPECT_EQ(table.BlocksToGrow(97), 2);
  EXPECT_FALSE(table.Grow(97));
  EXPECT_EQ(table.n_held(), 2);
  EXPECT_EQ(pool.n_free(), 1);
  EXPECT_FALSE(table.Grow(std::numeric_limits<int>::max()));
  EXPECT_TRUE(table.Grow(96));
  EXPECT_TRUE(table.Grow(1)) << "growing never shrinks";
  EXPECT_EQ(table.n_held(), 3);
}

TEST(BlockTable, DroppedEntriesStayDropped) {
  BlockPool pool(4);
  BlockTable table(&pool);
  ASSERT_TRUE(table.Grow(96));
  table.DropBelow(63);
  EXPECT_EQ(table.blocks()[0], kNoBlock);
  EXPECT_NE(table.blocks()[1], kNoBlock) << "position 63 lies in it";
  table.DropBelow(64);
  EXPECT_EQ(table.blocks()[1], kNoBlock);
  EXPECT_EQ(table.n_held(), 1);
  ASSERT_TRUE(table.Grow(128));
  EXPECT_EQ(table.blocks()[0], kNoBlock);
  EXPECT_EQ(table.n_held(), 2);
  table.Truncate(65);
  EXPECT_EQ(table.n_held(), 1);
  table.Truncate(31);
  EXPECT_EQ(table.n_held(), 0);
  EXPECT_EQ(table.blocks().size(), 1U);
  EXPECT_EQ(pool.n_free(), 4);
}

TEST(BlockTable, MovingPassesTheReferencesOn) {
  BlockPool pool(4);
  {
    BlockTable a(&pool);
    ASSERT_TRUE(a.Grow(64));
    BlockTable b(std::move(a));
    EXPECT_EQ(b.n_held(), 2);
    BlockTable c(&pool);
    ASSERT_TRUE(c.Grow(64));
    c = std::move(b);
    EXPECT_EQ(c.n_held(), 2);
    EXPECT_EQ(pool.n_free(), 2);
  }
  EXPECT_EQ(pool.n_free(), 4);
}

TEST(BlockTable, SharedBlocksAreHeldByBoth) {
  BlockPool pool(4);
  BlockTable a(&pool);
  ASSERT_TRUE(a.Grow(96));
  const std::vector<BlockId> blocks = {kNoBlock, a.blocks()[1], a.blocks()[2]};
  BlockTable b(&pool);
  b.Share(blocks);
  EXPECT_EQ(b.n_held(), 2);
  EXPECT_EQ(pool.refs(a.blocks()[0]), 1);
  EXPECT_EQ(pool.refs(a.blocks()[1]), 2);
  b.DropBelow(64);
  EXPECT_EQ(b.n_held(), 1);
  EXPECT_EQ(pool.refs(a.blocks()[1]), 1);
  a.Clear();
  EXPECT_EQ(pool.n_free(), 3);
  ASSERT_TRUE(b.Grow(128));
  EXPECT_EQ(b.n_held(), 2);
  b.Truncate(33);
  EXPECT_EQ(b.n_held(), 0);
  b.Clear();
  b.Share({});
  EXPECT_TRUE(b.blocks().empty());
  EXPECT_EQ(pool.n_free(), 4);
}

TEST(BlockTable, AdoptionMovesTheReference) {
  BlockPool pool(4);
  BlockTable a(&pool);
  BlockTable b(&pool);
  ASSERT_TRUE(a.Grow(64));
  ASSERT_TRUE(b.Grow(64));
  const BlockId given_up = b.blocks()[1];
  b.Adopt(1, a.blocks()[1]);
  EXPECT_EQ(b.blocks()[1], a.blocks()[1]);
  EXPECT_EQ(pool.refs(a.blocks()[1]), 2);
  EXPECT_EQ(pool.refs(given_up), 0);
  b.Adopt(1, a.blocks()[1]);
  EXPECT_EQ(pool.refs(a.blocks()[1]), 2) << "the same block again changes nothing";
  b.DropBelow(32);
  EXPECT_DEATH(b.Adopt(0, a.blocks()[0]), "index >= n_dropped_");
}

/// The same table by brute force: for each block index, is it absent, dropped or held?
struct ModelTable {
  enum class Entry { kDropped, kHeld };
  std::vector<Entry> entries;
  int n_held() const {
    return static_cast<int>(std::count(entries.begin(), entries.end(), Entry::kHeld));
  }
};

void ApplyToModel(ModelTable& model, unsigned op, int position, bool grown) {
  const auto n_cover = static_cast<size_t>(BlocksFor(position));
  if (op == 0 && grown) {
    while (model.entries.size() < n_cover) {
      model.entries.push_back(ModelTable::Entry::kHeld);
    }
  } else if (op == 1) {
    for (size_t b = 0; b < model.entries.size(); ++b) {
      if (static_cast<int>(b + 1) * kBlockPositions <= position) {
        model.entries[b] = ModelTable::Entry::kDropped;
      }
    }
  } else if (op == 2 && model.entries.size() > n_cover) {
    model.entries.resize(n_cover);
  }
}

TEST(BlockTable, RandomOperationsAgreeWithAModel) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    BlockPool pool(24);
    std::vector<BlockTable> tables;
    std::vector<ModelTable> models(3);
    for (int t = 0; t < 3; ++t) {
      tables.emplace_back(&pool);
    }
    for (int step = 0; step < 200; ++step) {
      const size_t t = random() % 3;
      const auto op = static_cast<unsigned>(random() % 3);
      const int position = static_cast<int>(random() % 400);
      int n_taken = 0;
      for (const ModelTable& model : models) {
        n_taken += model.n_held();
      }
      bool grown = false;
      if (op == 0) {
        const int n_new =
            std::max(0, BlocksFor(position) - static_cast<int>(models[t].entries.size()));
        ASSERT_EQ(tables[t].BlocksToGrow(position), n_new);
        grown = tables[t].Grow(position);
        ASSERT_EQ(grown, n_new <= 24 - n_taken);
      } else if (op == 1) {
        tables[t].DropBelow(position);
      } else {
        tables[t].Truncate(position);
      }
      ApplyToModel(models[t], op, position, grown);
      std::set<BlockId> seen;
      n_taken = 0;
      for (size_t k = 0; k < 3; ++k) {
        ASSERT_EQ(tables[k].blocks().size(), models[k].entries.size());
        ASSERT_EQ(tables[k].n_held(), models[k].n_held());
        for (size_t b = 0; b < models[k].entries.size(); ++b) {
          const BlockId block = tables[k].blocks()[b];
          ASSERT_EQ(block != kNoBlock, models[k].entries[b] == ModelTable::Entry::kHeld);
          ASSERT_TRUE(block == kNoBlock || seen.insert(block).second) << "in two tables";
        }
        n_taken += models[k].n_held();
      }
      ASSERT_EQ(pool.n_free(), 24 - n_taken);
    }
    for (BlockTable& table : tables) {
      table.Clear();
    }
    ASSERT_EQ(pool.n_free(), 24);
  }
}

}  // namespace
}  // namespace facet
