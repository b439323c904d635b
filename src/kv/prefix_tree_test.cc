// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kv/plan.h"

namespace facet {
namespace {

using Units = std::vector<PrefixUnit>;

Units Range(int n, PrefixUnit first = 0) {
  Units units(static_cast<size_t>(n));
  std::iota(units.begin(), units.end(), first);
  return units;
}

Units Joined(Units a, const Units& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A tree with its pools, and sequences that come, leave their blocks and go.
struct Fixture {
  Fixture(int n_blocks, int window)
      : sliding(n_blocks), full(n_blocks), tree(&sliding, &full, window) {}

  void Leave(const Units& units, bool with_partial, std::string_view salt = "") {
    BlockTable sliding_table(&sliding);
    BlockTable full_table(&full);
    const int n = static_cast<int>(units.size());
    ASSERT_TRUE(sliding_table.Grow(n) && full_table.Grow(n));
    tree.Insert(salt, units, with_partial, &sliding_table, &full_table);
  }
  int Match(const Units& units, std::string_view salt = "") const {
    return tree.Match(salt, units, static_cast<int>(units.size())).n_positions;
  }

  BlockPool sliding;
  BlockPool full;
  PrefixTree tree;
};

TEST(PrefixTree, WholeBlocksCountFromThirtyTwoPositions) {
  for (const int n : {31, 32, 33, 63, 64, 65}) {
    Fixture f(8, 64);
    f.Leave(Range(n), false);
    EXPECT_EQ(f.Match(Range(100)), n / 32 * 32) << n;
    EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), n / 32);
    f.Leave(Range(n), true);
    EXPECT_EQ(f.Match(Range(100)), n) << n;
    EXPECT_EQ(f.tree.n_blocks(KvGroup::kSliding), BlocksFor(n));
    for (const int max : {-1, 0, 1, 31, 32, 33}) {
      const PrefixMatch match = f.tree.Match("", Range(100), max);
      EXPECT_EQ(match.n_positions, std::clamp(max, 0, n)) << n << " " << max;
      EXPECT_EQ(match.full.size(), static_cast<size_t>(BlocksFor(match.n_positions)));
      EXPECT_EQ(match.sliding.size(), match.full.size());
    }
  }
}

TEST(PrefixTree, TheSamePromptAgainIsAllButItsLastToken) {
  for (const int n : {31, 32, 33, 64, 100}) {
    Fixture f(8, 40);
    f.Leave(Range(n), true);
    EXPECT_EQ(f.tree.Match("", Range(n), n - 1).n_positions, n - 1);
  }
}

TEST(PrefixTree, MatchesEndAnywhereInABlock) {
  Fixture f(8, 64);
  f.Leave(Range(64), false);
  EXPECT_EQ(f.Match(Joined(Range(45), {7, 7, 7})), 45);
  EXPECT_EQ(f.Match(Joined(Range(5), {7})), 5);
  EXPECT_EQ(f.Match({7}), 0);
  EXPECT_EQ(f.Match({}), 0);
  f.Leave(Joined(Range(50), Range(14, 500)), false);
  EXPECT_EQ(f.Match(Joined(Range(60), {7})), 60);
  EXPECT_EQ(f.Match(Joined(Range(50), Range(9, 500))), 59);
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), 3) << "the first block is shared";
}

TEST(PrefixTree, SaltsNeverSeeEachOther) {
  Fixture f(8, 64);
  f.Leave(Range(40), true, "a");
  EXPECT_EQ(f.Match(Range(40), "a"), 40);
  EXPECT_EQ(f.Match(Range(40), "b"), 0);
  EXPECT_EQ(f.Match(Range(40)), 0);
  f.Leave(Range(32), false);
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), 3);
  EXPECT_EQ(f.Match(Range(40)), 32);
}

TEST(PrefixTree, UnitsMayBeAnyNumbers) {
  constexpr PrefixUnit kLeast = std::numeric_limits<PrefixUnit>::min();
  constexpr PrefixUnit kMost = std::numeric_limits<PrefixUnit>::max();
  Fixture f(8, 64);
  const Units units = {kLeast, -1, 0, kMost};
  f.Leave(units, true);
  f.Leave({kLeast, -1, kMost}, true);
  EXPECT_EQ(f.Match(units), 4);
  EXPECT_EQ(f.Match({kLeast, -1, 1}), 2);
}

TEST(PrefixTree, PartialBlocksGrowAndAreNotKeptTwice) {
  Fixture f(8, 64);
  f.Leave(Range(40), true);
  const BlockId first = f.tree.Match("", Range(40), 40).full[1];
  f.Leave(Range(36), true);
  EXPECT_EQ(f.tree.Match("", Range(40), 40).full[1], first) << "less adds nothing";
  f.Leave(Range(50), true);
  EXPECT_NE(f.tree.Match("", Range(40), 40).full[1], first) << "more takes its place";
  EXPECT_EQ(f.full.refs(first), 0);
  f.Leave(Range(64), true);
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), 2);
  f.Leave(Joined(Range(40), {-5}), true);
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), 3) << "it differs at its last position";
  EXPECT_EQ(f.full.n_free(), 5);
  EXPECT_EQ(f.sliding.n_free(), 5);
}

TEST(PrefixTree, ASequenceGoesOnInThePartialBlockThatItLeft) {
  Fixture f(8, 64);
  BlockTable sliding(&f.sliding);
  BlockTable full(&f.full);
  ASSERT_TRUE(sliding.Grow(40) && full.Grow(40));
  f.tree.Insert("", Range(40), true, &sliding, &full);
  EXPECT_EQ(f.full.refs(full.blocks()[1]), 2);
  ASSERT_TRUE(sliding.Grow(70) && full.Grow(70));
  f.tree.Insert("", Range(70), false, &sliding, &full);
  EXPECT_EQ(f.full.refs(full.blocks()[1]), 2) << "the same block, now whole";
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), 2);
  EXPECT_EQ(f.tree.n_evictable(KvGroup::kFull), 0);
  EXPECT_FALSE(f.tree.MakeRoom(KvGroup::kFull, 6)) << "all is held";
  full.Clear();
  EXPECT_EQ(f.tree.n_evictable(KvGroup::kFull), 2);
  EXPECT_TRUE(f.tree.MakeRoom(KvGroup::kFull, 8));
}

TEST(PrefixTree, TablesReferToTheTreesBlocks) {
  Fixture f(8, 64);
  f.Leave(Range(64), false);
  const PrefixMatch match = f.tree.Match("", Range(64), 64);
  BlockTable sliding(&f.sliding);
  BlockTable full(&f.full);
  ASSERT_TRUE(sliding.Grow(70) && full.Grow(70));
  sliding.DropBelow(32);
  f.tree.Insert("", Range(70), false, &sliding, &full);
  EXPECT_EQ(full.blocks()[0], match.full[0]);
  EXPECT_EQ(full.blocks()[1], match.full[1]);
  EXPECT_EQ(sliding.blocks()[0], kNoBlock);
  EXPECT_EQ(sliding.blocks()[1], match.sliding[1]);
  EXPECT_EQ(f.full.n_free(), 5) << "two of the tree and a partial one";
}

TEST(PrefixTree, ALostSlidingBlockComesBackWithTheNextThatHasIt) {
  Fixture f(8, 64);
  f.Leave(Range(64), false);
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kSliding, 8));
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kSliding), 0);
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), 2);
  EXPECT_EQ(f.Match(Range(64)), 0);
  f.Leave(Range(40), false);
  EXPECT_EQ(f.Match(Range(64)), 32);
  f.Leave(Range(64), false);
  EXPECT_EQ(f.Match(Range(64)), 64);
}

TEST(PrefixTree, ResumesWhereTheWindowIsHeld) {
  Fixture f(16, 33);
  f.Leave(Range(160), false);
  // The deeper of one use are newer: the first three go.
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kSliding, 14));
  EXPECT_EQ(f.Match(Range(160)), 160) << "sees 128 and later";
  EXPECT_EQ(f.Match(Range(159)), 159) << "sees 127 and later";
  EXPECT_EQ(f.Match(Range(128)), 128) << "sees 96 and later";
  EXPECT_EQ(f.Match(Range(127)), 0) << "sees 95 and later";
  const PrefixMatch match = f.tree.Match("", Range(160), 160);
  EXPECT_EQ(std::count(match.sliding.begin(), match.sliding.end(), kNoBlock), 4);
}

TEST(PrefixTree, ANeighbourWithASlidingBlockServesInsteadOfALongerOneWithout) {
  Fixture f(8, 64);
  f.Leave(Range(64), false);
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kSliding, 8));
  f.Leave(Joined(Range(52), Range(12, 900)), false);
  EXPECT_EQ(f.Match(Range(64)), 52);
}

TEST(PrefixTree, WithoutSlidingLayersOnlyFullBlocksCount) {
  BlockPool none(0);
  BlockPool full(4);
  PrefixTree tree(&none, &full, 0);
  BlockTable sliding(&none);
  BlockTable table(&full);
  ASSERT_TRUE(table.Grow(70));
  tree.Insert("", Range(70), true, &sliding, &table);
  const PrefixMatch match = tree.Match("", Range(80), 80);
  EXPECT_EQ(match.n_positions, 70);
  EXPECT_EQ(match.sliding, (std::vector<BlockId>{kNoBlock, kNoBlock, kNoBlock}));
  EXPECT_EQ(tree.n_blocks(KvGroup::kSliding), 0);
}

TEST(PrefixTree, EvictsWhatWasNotUsedForTheLongestTime) {
  Fixture f(12, 64);
  for (const PrefixUnit first : {100, 200, 300}) {
    f.Leave(Range(64, first), false);
  }
  f.tree.Touch("", Range(64, 100), 64);
  (void)f.Match(Range(64, 200));
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kFull, 7));
  EXPECT_EQ(f.Match(Range(64, 200)), 32) << "a match alone is no use; leaves go first";
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kFull, 9));
  EXPECT_EQ(f.Match(Range(64, 200)), 0);
  EXPECT_EQ(f.Match(Range(64, 300)), 32);
  EXPECT_EQ(f.Match(Range(64, 100)), 64);
  EXPECT_EQ(f.sliding.n_free(), 9) << "the sliding blocks went with them";
}

TEST(PrefixTree, TouchRefreshesOnlyTheSlidingBlocksThatAreSeen) {
  Fixture f(12, 32);
  f.Leave(Range(96, 100), false);
  f.Leave(Range(64, 500), false);
  f.tree.Touch("", Range(96, 100), 96);
  // Oldest first: blocks 0 and 1 of the first path, both of the second, block 2 of the first.
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kSliding, 9));
  EXPECT_EQ(f.Match(Range(64, 100)), 0);
  EXPECT_EQ(f.Match(Range(64, 500)), 64);
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kSliding, 11));
  EXPECT_EQ(f.Match(Range(64, 500)), 0);
  EXPECT_EQ(f.Match(Range(96, 100)), 96);
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), 5);
}

TEST(PrefixTree, ClearForgetsWhatNobodyHolds) {
  Fixture f(8, 64);
  f.Leave(Range(96), false);
  f.Leave(Range(40, 500), true, "salt");
  BlockTable full(&f.full);
  full.Share(f.tree.Match("", Range(64), 64).full);
  f.tree.Clear();
  EXPECT_EQ(f.tree.n_blocks(KvGroup::kFull), 2) << "those of the table";
  EXPECT_EQ(f.sliding.n_free(), 8);
  full.Clear();
  f.tree.Clear();
  EXPECT_EQ(f.full.n_free(), 8);
  EXPECT_TRUE(f.tree.Export().empty());
}

TEST(PrefixTree, ImportIsWhatWasExported) {
  Fixture f(16, 64);
  f.Leave(Range(70), true, "s");
  f.Leave(Range(64, 500), false);
  f.Leave(Joined(Range(40), Range(30, 700)), true, "s");
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kSliding, 10));
  f.tree.Touch("s", Range(64), 64);
  const std::vector<PrefixRecord> records = f.tree.Export();
  ASSERT_EQ(records.size(), 7U);
  BlockPool sliding(16);
  BlockPool full(16);
  PrefixTree copy(&sliding, &full, 64);
  std::vector<PrefixRecord> taken = records;
  for (PrefixRecord& record : taken) {
    record.full = *full.Allocate();
    if (record.sliding != kNoBlock) {
      record.sliding = *sliding.Allocate();
    }
  }
  copy.Import(taken);
  const std::vector<PrefixRecord> again = copy.Export();
  ASSERT_EQ(again.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(again[i].parent, records[i].parent);
    EXPECT_EQ(again[i].salt, records[i].salt);
    EXPECT_EQ(again[i].units, records[i].units);
    EXPECT_EQ(again[i].full, taken[i].full);
    EXPECT_EQ(again[i].sliding, taken[i].sliding);
  }
  EXPECT_EQ(copy.n_evictable(KvGroup::kFull), 7);
  copy.Clear();
  EXPECT_EQ(full.n_free(), 16);
  EXPECT_EQ(sliding.n_free(), 16);
}

TEST(PrefixTree, RefusesToImportWhatIsNoTree) {
  BlockPool sliding(4);
  BlockPool full(4);
  PrefixTree tree(&sliding, &full, 0);
  const BlockId block = *full.Allocate();
  const auto import = [&](PrefixRecord record) { tree.Import({&record, 1}); };
  EXPECT_DEATH(import({.parent = 0, .salt = "", .units = {1}, .full = block}), "parent");
  EXPECT_DEATH(import({.parent = -1, .salt = "", .units = {}, .full = block}), "units.empty");
  EXPECT_DEATH(import({.parent = -1, .salt = "", .units = Range(33), .full = block}), "units.size");
  EXPECT_DEATH(import({.parent = -1, .salt = "", .units = {1}, .sliding = 0, .full = block}),
               "window");
}

TEST(PrefixTree, LongPathsTakeNoDepthOfCalls) {
  constexpr int kPositions = 100'000;
  Fixture f(BlocksFor(kPositions), 512);
  const Units units = Range(kPositions);
  f.Leave(units, true);
  EXPECT_EQ(f.tree.Match("", units, kPositions - 1).n_positions, kPositions - 1);
  EXPECT_EQ(f.tree.Export().size(), static_cast<size_t>(BlocksFor(kPositions)));
  // No position can be resumed: a search from each of them would take minutes.
  ASSERT_TRUE(f.tree.MakeRoom(KvGroup::kSliding, f.sliding.n_blocks()));
  EXPECT_EQ(f.Match(units), 0);
}

/// The tree by brute force: a list of nodes, each with all units from the path's beginning on.
class Oracle {
 public:
  struct Entry {
    std::string salt;
    Units prefix;
    BlockId full;
    BlockId sliding;
    uint64_t used;
    uint64_t sliding_used;
    int index() const { return (static_cast<int>(prefix.size()) - 1) / kBlockPositions; }
  };

  explicit Oracle(int window) : window_(window) {}
  std::vector<Entry>& entries() { return entries_; }

  int Match(const std::string& salt, const Units& units, int max) const {
    int longest = 0;
    for (const Entry& entry : entries_) {
      int n = entry.salt == salt ? Common(entry.prefix, units) : 0;
      for (n = std::min(n, max); n > std::max(longest, entry.index() * kBlockPositions); --n) {
        if (IsResumable(entry, n)) {
          longest = n;
        }
      }
    }
    return longest;
  }

  void Insert(const std::string& salt, const Units& units, bool with_partial,
              std::span<const BlockId> sliding, std::span<const BlockId> full) {
    ++clock_;
    for (size_t index = 0; index * 32 < units.size(); ++index) {
      const size_t n = std::min(units.size(), index * 32 + 32);
      if (n % 32 != 0 && !with_partial) {
        return;
      }
      const Units prefix(units.begin(), units.begin() + static_cast<ptrdiff_t>(n));
      const BlockId sliding_block = window_ > 0 ? sliding[index] : kNoBlock;
      Entry* entry = FindThatBegins(salt, prefix);
      if (entry == nullptr) {
        std::erase_if(entries_, [&](const Entry& e) {
          return e.salt == salt && e.index() == static_cast<int>(index) &&
                 Common(e.prefix, prefix) == static_cast<int>(e.prefix.size());
        });
        entries_.push_back({salt, prefix, full[index], sliding_block, clock_, clock_});
        continue;
      }
      entry->used = clock_;
      if (sliding_block != kNoBlock && entry->sliding != kNoBlock) {
        entry->sliding_used = clock_;
      } else if (sliding_block != kNoBlock && entry->prefix.size() == n) {
        entry->sliding = sliding_block;
        entry->sliding_used = clock_;
      }
    }
  }

  void Touch(const PrefixMatch& match) {
    ++clock_;
    for (Entry& entry : entries_) {
      const auto at = std::find(match.full.begin(), match.full.end(), entry.full);
      if (at == match.full.end()) {
        continue;
      }
      entry.used = clock_;
      if (match.sliding[static_cast<size_t>(at - match.full.begin())] != kNoBlock) {
        entry.sliding_used = clock_;
      }
    }
  }

  /// Evicts one block that nobody else holds. False: there was none.
  bool Evict(KvGroup group, const BlockPool& pool) {
    auto victim = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      const bool is_full = group == KvGroup::kFull;
      const BlockId block = is_full ? it->full : it->sliding;
      if (block == kNoBlock || pool.refs(block) > 1 || (is_full && !IsLeaf(*it))) {
        continue;
      }
      const auto age = [&](const Entry& e) {
        return is_full ? std::pair(e.used, -e.index()) : std::pair(e.sliding_used, e.index());
      };
      if (victim == entries_.end() || age(*it) < age(*victim)) {
        victim = it;
      }
    }
    if (victim == entries_.end()) {
      return false;
    }
    if (group == KvGroup::kFull) {
      entries_.erase(victim);
    } else {
      victim->sliding = kNoBlock;
    }
    return true;
  }

 private:
  static int Common(const Units& a, const Units& b) {
    const size_t n = std::min(a.size(), b.size());
    return static_cast<int>(
        std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(n), b.begin()).first -
        a.begin());
  }
  bool IsLeaf(const Entry& of) const {
    return std::none_of(entries_.begin(), entries_.end(), [&](const Entry& e) {
      return e.salt == of.salt && e.index() > of.index() &&
             Common(e.prefix, of.prefix) == static_cast<int>(of.prefix.size());
    });
  }
  /// The first in the order of units, where there are several.
  Entry* FindThatBegins(const std::string& salt, const Units& prefix) {
    Entry* first = nullptr;
    for (Entry& e : entries_) {
      if (e.salt == salt && e.index() == (static_cast<int>(prefix.size()) - 1) / 32 &&
          Common(e.prefix, prefix) == static_cast<int>(prefix.size()) &&
          (first == nullptr || e.prefix < first->prefix)) {
        first = &e;
      }
    }
    return first;
  }
  /// Every visible position before `n` lies in a node with a sliding block.
  bool IsResumable(const Entry& last, int n) const {
    if (window_ == 0) {
      return true;
    }
    std::set<int> covered;
    for (const Entry& e : entries_) {
      if (e.salt == last.salt && e.sliding != kNoBlock &&
          (&e == &last || (e.prefix.size() % 32 == 0 && e.index() < last.index() &&
                           Common(e.prefix, last.prefix) == static_cast<int>(e.prefix.size())))) {
        covered.insert(e.index());
      }
    }
    for (int pos = FirstVisible(n, window_); pos < n; ++pos) {
      if (!covered.contains(pos / 32)) {
        return false;
      }
    }
    // A block that will be written on is needed even if the window sees none of it.
    return n % 32 == 0 || covered.contains(last.index());
  }

  int window_;
  uint64_t clock_ = 0;
  std::vector<Entry> entries_;
};

struct Live {
  Live(std::string s, Units u, BlockPool* sliding_pool, BlockPool* full_pool)
      : salt(std::move(s)), units(std::move(u)), sliding(sliding_pool), full(full_pool) {}
  std::string salt;
  Units units;
  int n_computed = 0;
  BlockTable sliding;
  BlockTable full;
};

/// Sequences that start, go on and end at random, on pools that are always short of blocks. Blocks
/// hold hashes of the whole history of each position, so a wrong block is seen.
class Trace {
 public:
  Trace(int window, uint32_t seed)
      : window_(window),
        random_(seed),
        pool_{BlockPool(window > 0 ? 30 : 0), BlockPool(40)},
        tree_(std::make_unique<PrefixTree>(&pool_[0], &pool_[1], window)),
        oracle_(window) {
    memory_[0].resize(30);
    memory_[1].resize(40);
  }

  void Run(int n_steps) {
    for (int step = 0; step < n_steps && !::testing::Test::HasFatalFailure(); ++step) {
      Step();
      CheckReferences();
      if (step % 4 == 0) {
        CheckNodes();
      }
    }
    live_.clear();
    EXPECT_EQ(tree_->n_evictable(KvGroup::kFull), tree_->n_blocks(KvGroup::kFull));
    tree_.reset();
    EXPECT_EQ(pool_[0].n_free(), pool_[0].n_blocks());
    EXPECT_EQ(pool_[1].n_free(), pool_[1].n_blocks());
    EXPECT_GT(n_reused_, n_steps / 10);
  }

 private:
  using Memory = std::vector<std::array<uint64_t, kBlockPositions>>;
  size_t Below(size_t n) { return random_() % n; }
  BlockPool& pool(KvGroup group) { return pool_[group == KvGroup::kFull ? 1 : 0]; }
  Memory& memory(KvGroup group) { return memory_[group == KvGroup::kFull ? 1 : 0]; }

  void Step() {
    const size_t kind = Below(16);
    if (kind < 5 && live_.size() < 4) {
      Start();
    } else if (kind < 9 && !live_.empty()) {
      GoOn(live_[Below(live_.size())]);
    } else if (kind < 12 && !live_.empty()) {
      End(Below(live_.size()), kind != 11);
    } else if (kind < 14) {
      (void)CheckedMatch(RandomSalt(), RandomUnits(), static_cast<int>(Below(160)));
    } else if (kind == 14) {
      MakeRoom(Below(2) == 0 ? KvGroup::kFull : KvGroup::kSliding, static_cast<int>(Below(25)));
    } else if (Below(20) == 0) {
      tree_->Clear();
      while (oracle_.Evict(KvGroup::kFull, pool(KvGroup::kFull))) {
      }
      while (oracle_.Evict(KvGroup::kSliding, pool(KvGroup::kSliding))) {
      }
    }
  }

  std::string RandomSalt() { return Below(6) == 0 ? "other" : ""; }

  /// Few patterns of blocks, changed now and then in one place, cut anywhere.
  Units RandomUnits() {
    Units units;
    const size_t n = 1 + Below(150);
    while (units.size() < n) {
      const auto pattern = static_cast<PrefixUnit>(Below(4) == 0 ? 1 : 0);
      units.insert(units.end(), 32, pattern);
      if (Below(4) == 0) {
        units[units.size() - 1 - Below(32)] = -1;
      }
    }
    units.resize(n);
    return units;
  }

  static uint64_t Hash(const std::string& salt, const Units& units, int pos) {
    uint64_t hash = salt.size();
    for (int i = 0; i <= pos; ++i) {
      hash = RandomBits(hash, static_cast<uint64_t>(units[static_cast<size_t>(i)]));
    }
    return hash;
  }

  void CheckHeld(const Memory& memory, std::span<const BlockId> blocks, const std::string& salt,
                 const Units& units, int n) {
    uint64_t hash = salt.size();
    for (int pos = 0; pos < n; ++pos) {
      hash = RandomBits(hash, static_cast<uint64_t>(units[static_cast<size_t>(pos)]));
      const BlockId block = blocks[static_cast<size_t>(pos / 32)];
      if (block != kNoBlock) {
        ASSERT_EQ(memory[static_cast<size_t>(block)][static_cast<size_t>(pos % 32)], hash) << pos;
      }
    }
  }

  PrefixMatch CheckedMatch(const std::string& salt, const Units& units, int max) {
    PrefixMatch match = tree_->Match(salt, units, max);
    EXPECT_EQ(match.n_positions, oracle_.Match(salt, units, max));
    CheckHeld(memory_[1], match.full, salt, units, match.n_positions);
    CheckHeld(memory_[0], match.sliding, salt, units, match.n_positions);
    const int first = window_ == 0 ? match.n_positions : FirstVisible(match.n_positions, window_);
    for (int index = 0; index < BlocksFor(match.n_positions); ++index) {
      const auto entry = static_cast<size_t>(index);
      EXPECT_NE(match.full[entry], kNoBlock);
      EXPECT_EQ(match.sliding[entry] == kNoBlock, window_ == 0 || index < first / 32);
    }
    return match;
  }

  bool MakeRoom(KvGroup group, int n_blocks) {
    const int n_free = pool(group).n_free();
    const int n_evictable = tree_->n_evictable(group);
    // The oracle looks at the references, so it goes first.
    for (int n = n_free; n < n_blocks && oracle_.Evict(group, pool(group)); ++n) {
    }
    const bool has_room = tree_->MakeRoom(group, n_blocks);
    EXPECT_EQ(has_room, n_free + n_evictable >= n_blocks);
    EXPECT_EQ(pool(group).n_free(), std::max(n_free, std::min(n_blocks, n_free + n_evictable)));
    return has_room;
  }

  /// Room for the table to cover n positions; false when others hold too much.
  bool Grow(KvGroup group, BlockTable& table, int n) {
    const int n_new = table.BlocksToGrow(n);
    return (pool(group).n_free() >= n_new || MakeRoom(group, n_new)) && table.Grow(n);
  }

  bool Compute(Live& live, int n) {
    if (!Grow(KvGroup::kFull, live.full, n) ||
        (window_ > 0 && !Grow(KvGroup::kSliding, live.sliding, n))) {
      return false;
    }
    for (int pos = live.n_computed; pos < n; ++pos) {
      const uint64_t hash = Hash(live.salt, live.units, pos);
      const auto entry = static_cast<size_t>(pos / 32);
      const auto slot = static_cast<size_t>(pos % 32);
      memory_[1][static_cast<size_t>(live.full.blocks()[entry])][slot] = hash;
      if (window_ > 0) {
        memory_[0][static_cast<size_t>(live.sliding.blocks()[entry])][slot] = hash;
      }
    }
    live.n_computed = n;
    return true;
  }

  void Leave(Live& live, bool with_partial) {
    const Units units(live.units.begin(), live.units.begin() + live.n_computed);
    oracle_.Insert(live.salt, units, with_partial, live.sliding.blocks(), live.full.blocks());
    tree_->Insert(live.salt, units, with_partial, &live.sliding, &live.full);
    CheckHeld(memory_[1], live.full.blocks(), live.salt, units, live.n_computed);
    if (window_ > 0) {
      CheckHeld(memory_[0], live.sliding.blocks(), live.salt, units, live.n_computed);
    }
  }

  /// The last, partial block is shared: a copy takes its place.
  bool Own(KvGroup group, BlockTable& table, int n) {
    const BlockId shared = table.blocks().back();
    const auto copy = memory(group)[static_cast<size_t>(shared)];
    table.Truncate(n / 32 * 32);
    if (!Grow(group, table, n)) {
      return false;
    }
    memory(group)[static_cast<size_t>(table.blocks().back())] = copy;
    return true;
  }

  void Start() {
    Live live(RandomSalt(), RandomUnits(), &pool_[0], &pool_[1]);
    const int n = static_cast<int>(live.units.size());
    const PrefixMatch match = CheckedMatch(live.salt, live.units, n - 1);
    live.full.Share(match.full);
    if (window_ > 0) {
      live.sliding.Share(match.sliding);
    }
    live.n_computed = match.n_positions;
    if (match.n_positions > 0) {
      ++n_reused_;
      tree_->Touch(live.salt, live.units, match.n_positions);
      oracle_.Touch(match);
    }
    if (match.n_positions % 32 != 0 &&
        (!Own(KvGroup::kFull, live.full, match.n_positions) ||
         (window_ > 0 && !Own(KvGroup::kSliding, live.sliding, match.n_positions)))) {
      return;
    }
    if (Compute(live, n)) {
      live_.push_back(std::move(live));
      GoOn(live_.back());
    }
  }

  void GoOn(Live& live) {
    const Units more = RandomUnits();
    const int n = live.n_computed + static_cast<int>(Below(20));
    live.units.resize(static_cast<size_t>(live.n_computed));
    live.units.insert(live.units.end(), more.begin(), more.end());
    if (n > 200 || n > static_cast<int>(live.units.size()) || !Compute(live, n)) {
      return;
    }
    if (Below(3) != 0) {
      Leave(live, Below(4) == 0);
    }
    if (window_ > 0) {
      live.sliding.DropBelow(FirstVisible(n, window_));
    }
  }

  void End(size_t which, bool leaves) {
    if (leaves) {
      Leave(live_[which], Below(4) != 0);
    }
    live_[which].full.Clear();
    live_[which].sliding.Clear();
    live_.erase(live_.begin() + static_cast<ptrdiff_t>(which));
  }

  void CheckReferences() {
    std::array<std::vector<int>, 2> refs;
    refs[0].resize(static_cast<size_t>(pool_[0].n_blocks()));
    refs[1].resize(static_cast<size_t>(pool_[1].n_blocks()));
    const auto count = [](std::vector<int>& counts, BlockId block) {
      if (block != kNoBlock) {
        ++counts[static_cast<size_t>(block)];
      }
    };
    for (const Live& live : live_) {
      for (const BlockId block : live.sliding.blocks()) {
        count(refs[0], block);
      }
      for (const BlockId block : live.full.blocks()) {
        count(refs[1], block);
      }
    }
    std::array<int, 2> n_idle{};
    for (const Oracle::Entry& entry : oracle_.entries()) {
      n_idle[1] += refs[1][static_cast<size_t>(entry.full)] == 0 ? 1 : 0;
      if (entry.sliding != kNoBlock) {
        n_idle[0] += refs[0][static_cast<size_t>(entry.sliding)] == 0 ? 1 : 0;
      }
    }
    for (const Oracle::Entry& entry : oracle_.entries()) {
      count(refs[1], entry.full);
      count(refs[0], entry.sliding);
    }
    for (size_t group = 0; group < 2; ++group) {
      for (BlockId block = 0; block < pool_[group].n_blocks(); ++block) {
        ASSERT_EQ(pool_[group].refs(block), refs[group][static_cast<size_t>(block)])
            << group << " " << block;
      }
    }
    ASSERT_EQ(tree_->n_evictable(KvGroup::kSliding), n_idle[0]);
    ASSERT_EQ(tree_->n_evictable(KvGroup::kFull), n_idle[1]);
  }

  void CheckNodes() {
    std::map<std::pair<std::string, Units>, std::pair<BlockId, BlockId>> wanted;
    for (const Oracle::Entry& entry : oracle_.entries()) {
      wanted[{entry.salt, entry.prefix}] = {entry.full, entry.sliding};
    }
    std::map<std::pair<std::string, Units>, std::pair<BlockId, BlockId>> found;
    std::vector<std::pair<std::string, Units>> paths;
    for (const PrefixRecord& record : tree_->Export()) {
      auto path = record.parent < 0 ? std::pair(record.salt, Units())
                                    : paths.at(static_cast<size_t>(record.parent));
      path.second.insert(path.second.end(), record.units.begin(), record.units.end());
      found[path] = {record.full, record.sliding};
      paths.push_back(std::move(path));
    }
    ASSERT_EQ(found, wanted);
    ASSERT_EQ(tree_->n_blocks(KvGroup::kFull), static_cast<int>(wanted.size()));
  }

  int window_;
  std::mt19937 random_;
  std::array<BlockPool, 2> pool_;
  std::array<Memory, 2> memory_;
  std::unique_ptr<PrefixTree> tree_;
  Oracle oracle_;
  std::vector<Live> live_;
  int n_reused_ = 0;
};

TEST(PrefixTree, RandomTracesAgreeWithBruteForce) {
  for (const int window : {0, 1, 20, 32, 33, 70}) {
    SCOPED_TRACE(window);
    Trace(window, static_cast<uint32_t>(window) + 7).Run(4000);
  }
}

}  // namespace
}  // namespace facet
