// SPDX-License-Identifier: Apache-2.0
// What has been computed, by what it was computed from: a radix tree over tokens whose nodes are
// blocks of up to 32 positions. A sequence leaves its blocks here and a later one with the same
// beginning takes them up. Integers only; memory is elsewhere (model/kv_store.h).
//
// A position can be resumed when the tree holds the blocks of the full group before it, and those
// of the sliding group that its window still sees. Blocks of the two groups are evicted apart: a
// node may keep its full block and have lost its sliding one. All that no sequence uses may be
// evicted at any time, so the tree takes no memory from anyone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/block_pool.h"
#include "kv/block_table.h"

namespace facet {

/// What stands at one position: a token's id, or a negative number that tells media apart by
/// content and place.
using PrefixUnit = int64_t;

/// The blocks of the longest beginning of a request that can be resumed.
struct PrefixMatch {
  int n_positions = 0;  ///< that need not be computed; 0: none
  /// [BlocksFor(n_positions)]; of sliding, kNoBlock where the window has left. No references are
  /// held: valid until the tree is changed.
  std::vector<BlockId> sliding;
  std::vector<BlockId> full;
};

/// A node as it is written to a file. A parent stands before its children.
struct PrefixRecord {
  int32_t parent = -1;            ///< index of a record, or -1: a root
  std::string salt;               ///< of a root's child; else empty
  std::vector<PrefixUnit> units;  ///< 1 to 32; 32 where it has children
  BlockId sliding = kNoBlock;
  BlockId full = kNoBlock;
};

/// Holds one reference on each block in it, and is the only cache of its pools. Not for several
/// threads. The pools must outlive it.
class PrefixTree {
 public:
  /// `window`: of the sliding layers; 0: there are none, and no sliding blocks are taken or given.
  PrefixTree(BlockPool* sliding, BlockPool* full, int window);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  /// The longest resumable beginning of `units`, at most `max_positions` long. May end anywhere in
  /// a block, whose first positions are those asked for then. Scopes with different salts never see
  /// each other. Does not count as a use. Time is linear in the number of units.
  [[nodiscard]] PrefixMatch Match(std::string_view salt, std::span<const PrefixUnit> units,
                                  int max_positions) const;

  /// Leaves what a sequence has computed, units.size() positions, of which its tables hold the
  /// blocks (of sliding, those not dropped). Where the tree has a whole block already, the table
  /// gives its own back and refers to the tree's, which holds the same numbers. Whole blocks only,
  /// except that the last one may be partial when `with_partial`; the sequence may go on writing
  /// into the rest of it. Counts as a use of the full blocks and of the sliding ones in the table.
  void Insert(std::string_view salt, std::span<const PrefixUnit> units, bool with_partial,
              BlockTable* sliding, BlockTable* full);

  /// Marks what a match of these units needs as just used: all full blocks, and of sliding ones
  /// those that going on after `n_positions` sees. The deeper ones among these count as newer.
  void Touch(std::string_view salt, std::span<const PrefixUnit> units, int n_positions);

  /// Makes at least `n_blocks` of the group's pool free, evicting what was not used for the longest
  /// time and is held by the tree alone; of the full group, leaves first, whose sliding block goes
  /// with them. False when there was not enough; what there was is evicted then.
  bool MakeRoom(KvGroup group, int n_blocks);

  /// Forgets everything that no sequence uses.
  void Clear();

  /// Blocks that MakeRoom could free. O(1).
  [[nodiscard]] int n_evictable(KvGroup group) const;
  /// Blocks in the tree.
  [[nodiscard]] int n_blocks(KvGroup group) const;

  /// All nodes, those used last coming last where parents allow it.
  [[nodiscard]] std::vector<PrefixRecord> Export() const;
  /// Adds nodes to an empty tree; takes over one reference on each block, of which the caller has
  /// one. The records must have the form stated there (FACET_CHECK).
  void Import(std::span<const PrefixRecord> records);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace facet
