// SPDX-License-Identifier: Apache-2.0
#include "kv/block_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/plan.h"

namespace facet {

BlockTable::BlockTable(BlockPool* pool) : pool_(pool) { FACET_CHECK(pool != nullptr); }

BlockTable::~BlockTable() { Clear(); }

BlockTable::BlockTable(BlockTable&& other) noexcept
    : pool_(other.pool_),
      blocks_(std::exchange(other.blocks_, {})),
      n_dropped_(std::exchange(other.n_dropped_, 0)) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  if (this != &other) {
    Clear();
    pool_ = other.pool_;
    blocks_ = std::exchange(other.blocks_, {});
    n_dropped_ = std::exchange(other.n_dropped_, 0);
  }
  return *this;
}

int BlockTable::BlocksToGrow(int n_positions) const {
  return std::max(0, BlocksFor(n_positions) - static_cast<int>(blocks_.size()));
}

bool BlockTable::Grow(int n_positions) {
  const int n_new = BlocksToGrow(n_positions);
  if (n_new > pool_->n_free()) {
    return false;
  }
  for (int n = 0; n < n_new; ++n) {
    blocks_.push_back(*pool_->Allocate());
  }
  return true;
}

void BlockTable::DropBelow(int position) {
  const int n_below = std::min(position / kBlockPositions, static_cast<int>(blocks_.size()));
  for (; n_dropped_ < n_below; ++n_dropped_) {
    pool_->Release(std::exchange(blocks_[static_cast<size_t>(n_dropped_)], kNoBlock));
  }
}

void BlockTable::Truncate(int n_positions) {
  const auto n_kept = static_cast<size_t>(BlocksFor(n_positions));
  while (blocks_.size() > n_kept) {
    if (blocks_.back() != kNoBlock) {
      pool_->Release(blocks_.back());
    }
    blocks_.pop_back();
  }
  n_dropped_ = std::min(n_dropped_, static_cast<int>(blocks_.size()));
}

void BlockTable::Clear() { Truncate(0); }

void BlockTable::Share(std::span<const BlockId> blocks) {
  FACET_CHECK(blocks_.empty());
  const auto first =
      std::find_if(blocks.begin(), blocks.end(), [](BlockId block) { return block != kNoBlock; });
  std::for_each(first, blocks.end(), [this](BlockId block) { pool_->AddRef(block); });
  blocks_.assign(blocks.begin(), blocks.end());
  n_dropped_ = static_cast<int>(first - blocks.begin());
}

void BlockTable::Adopt(int index, BlockId block) {
  FACET_CHECK(index >= n_dropped_ && index < static_cast<int>(blocks_.size()));
  pool_->AddRef(block);
  pool_->Release(std::exchange(blocks_[static_cast<size_t>(index)], block));
}

int BlockTable::n_held() const { return static_cast<int>(blocks_.size()) - n_dropped_; }

}  // namespace facet
