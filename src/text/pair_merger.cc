// SPDX-License-Identifier: Apache-2.0
#include "text/pair_merger.h"

#include <algorithm>
#include <functional>

namespace facet {
namespace {

constexpr int32_t kGone = -1;

uint64_t KeyOf(int rank, size_t position) { return (static_cast<uint64_t>(rank) << 32) | position; }

}  // namespace

void PairMerger::MergeInto(std::vector<int>& out) {
  if (ids_.size() > 1) {
    Start();
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const uint64_t key = heap_.back();
      heap_.pop_back();
      Apply(vocab_.merges()[key >> 32], static_cast<uint32_t>(key));
    }
  }
  for (const int32_t id : ids_) {
    if (id != kGone) {
      out.push_back(id);
    }
  }
  ids_.clear();
}

void PairMerger::Start() {
  const size_t n = ids_.size();
  next_.resize(n);
  previous_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    next_[i] = static_cast<uint32_t>(i + 1);
    previous_[i] = static_cast<uint32_t>(i - 1);  // wraps for the first piece, which nobody asks
    const int rank = i + 1 < n ? vocab_.FindMerge(ids_[i], ids_[i + 1]) : -1;
    if (rank >= 0) {
      heap_.push_back(KeyOf(rank, i));
    }
  }
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
}

/// Does nothing when the merge is stale. Pieces only ever grow, so it is good exactly when both
/// tokens still stand there.
void PairMerger::Apply(const Merge& merge, uint32_t position) {
  const uint32_t second = next_[position];
  if (ids_[position] != merge.left || second == ids_.size() || ids_[second] != merge.right) {
    return;
  }
  ids_[position] = merge.merged;
  ids_[second] = kGone;
  const uint32_t after = next_[second];
  next_[position] = after;
  if (after != ids_.size()) {
    previous_[after] = position;
    Offer(position, after);
  }
  if (position != 0) {
    Offer(previous_[position], position);
  }
}

void PairMerger::Offer(uint32_t left, uint32_t right) {
  const int rank = vocab_.FindMerge(ids_[left], ids_[right]);
  if (rank >= 0) {
    heap_.push_back(KeyOf(rank, left));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
}

}  // namespace facet
