// SPDX-License-Identifier: Apache-2.0
// The blocks of one sequence in one group: position p lies in entry p / 32. Integers only.
#pragma once

#include <span>
#include <vector>

#include "kv/block_pool.h"

namespace facet {

/// Holds one reference on each of its blocks. The pool must outlive it. Not copyable; Clear gives
/// all back.
class BlockTable {
 public:
  explicit BlockTable(BlockPool* pool);
  ~BlockTable();
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  /// Blocks that Grow(n_positions) would take from the pool.
  [[nodiscard]] int BlocksToGrow(int n_positions) const;
  /// Makes positions [0, n_positions) covered (entries that were dropped stay dropped). False, and
  /// nothing taken, when the pool has too few.
  bool Grow(int n_positions);
  /// Gives back blocks that lie wholly below `position`: no row will see them again.
  void DropBelow(int position);
  /// Gives back blocks that lie wholly at or above `n_positions` (rollback).
  void Truncate(int n_positions);
  void Clear();

  /// Begins an empty table with blocks that others hold too, taking a reference on each. The first
  /// ones may be kNoBlock: they count as dropped.
  void Share(std::span<const BlockId> blocks);
  /// Entry `index`, which is held, refers to `block` from now on; `block` holds the same numbers.
  void Adopt(int index, BlockId block);

  [[nodiscard]] std::span<const BlockId> blocks() const { return blocks_; }
  [[nodiscard]] int n_held() const;

 private:
  BlockPool* pool_;
  std::vector<BlockId> blocks_;
  int n_dropped_ = 0;
};

}  // namespace facet
