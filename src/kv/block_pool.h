// SPDX-License-Identifier: Apache-2.0
// Blocks of one group's pool: which are free and who holds the others. Integers only; the memory is
// elsewhere (model/kv_store.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace facet {

/// The layers that share one layout of keys and values, and a pool.
enum class KvGroup { kSliding, kFull };

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;
inline constexpr int kBlockPositions = 32;

/// Reference-counted block ids. Not for several threads.
class BlockPool {
 public:
  explicit BlockPool(int n_blocks);

  /// A block with one reference, or nothing when all are taken.
  std::optional<BlockId> Allocate();
  void AddRef(BlockId block);
  /// Gives one reference back; the block is free when none is left.
  void Release(BlockId block);
  /// Says whether one of its references is that of a cache, which gives it back when it is asked
  /// to. No longer so before that reference is released.
  void SetCached(BlockId block, bool is_cached);

  [[nodiscard]] int n_blocks() const { return static_cast<int>(refs_.size()); }
  [[nodiscard]] int n_free() const { return static_cast<int>(free_.size()); }
  [[nodiscard]] int refs(BlockId block) const { return refs_[static_cast<size_t>(block)]; }
  /// Blocks that nobody but a cache holds.
  [[nodiscard]] int n_idle() const { return n_idle_; }

 private:
  std::vector<int32_t> refs_;
  std::vector<BlockId> free_;  // a stack
  std::vector<bool> is_cached_;
  int n_idle_ = 0;
};

}  // namespace facet
