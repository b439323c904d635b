// SPDX-License-Identifier: Apache-2.0
#include "kv/block_pool.h"

#include "base/check.h"

namespace facet {

BlockPool::BlockPool(int n_blocks) {
  FACET_CHECK(n_blocks >= 0);
  refs_.resize(static_cast<size_t>(n_blocks));
  free_.reserve(refs_.size());
  is_cached_.resize(refs_.size());
  // Low ids come off the stack first, so that a small load touches little memory.
  for (BlockId block = n_blocks; block-- > 0;) {
    free_.push_back(block);
  }
}

std::optional<BlockId> BlockPool::Allocate() {
  if (free_.empty()) {
    return std::nullopt;
  }
  const BlockId block = free_.back();
  free_.pop_back();
  refs_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::AddRef(BlockId block) {
  FACET_CHECK(block >= 0 && block < n_blocks());
  int32_t& refs = refs_[static_cast<size_t>(block)];
  FACET_CHECK(refs > 0);
  if (++refs == 2 && is_cached_[static_cast<size_t>(block)]) {
    --n_idle_;
  }
}

void BlockPool::Release(BlockId block) {
  FACET_CHECK(block >= 0 && block < n_blocks());
  int32_t& refs = refs_[static_cast<size_t>(block)];
  FACET_CHECK(refs > 0);
  const bool is_cached = is_cached_[static_cast<size_t>(block)];
  if (--refs == 0) {
    FACET_CHECK(!is_cached);
    free_.push_back(block);
  } else if (refs == 1 && is_cached) {
    ++n_idle_;
  }
}

void BlockPool::SetCached(BlockId block, bool is_cached) {
  FACET_CHECK(block >= 0 && block < n_blocks());
  const auto index = static_cast<size_t>(block);
  FACET_CHECK(refs_[index] > 0 && is_cached_[index] != is_cached);
  is_cached_[index] = is_cached;
  if (refs_[index] == 1) {
    n_idle_ += is_cached ? 1 : -1;
  }
}

}  // namespace facet
