// SPDX-License-Identifier: Apache-2.0
// Byte-pair merging of one word: a linked list of pieces, and a heap of the merges that are
// possible, in the order of rank, then from left to right. Entries that have become stale are
// dropped when their turn comes. O(n log n), whatever the text; its buffers are kept from word to
// word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/vocab.h"

namespace facet {

/// Refers to the vocabulary, which must outlive it. Not for several threads.
class PairMerger {
 public:
  explicit PairMerger(const Vocab& vocab) : vocab_(vocab) {}

  /// The tokens of the next word, for the caller to fill; fewer than 2^31.
  std::vector<int32_t>& pieces() { return ids_; }
  /// Merges the pieces, appends what is left to `out` and empties them.
  void MergeInto(std::vector<int>& out);

 private:
  void Start();
  void Apply(const Merge& merge, uint32_t position);
  void Offer(uint32_t left, uint32_t right);

  const Vocab& vocab_;
  std::vector<int32_t> ids_;  // kGone where a piece was merged into one before it
  std::vector<uint32_t> next_;
  std::vector<uint32_t> previous_;
  std::vector<uint64_t> heap_;  // rank and position of the left piece
};

}  // namespace facet
