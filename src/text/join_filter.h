// SPDX-License-Identifier: Apache-2.0
// Tells where text can be cut without changing its tokens: between two characters that no merge
// ever joins, that is, no merge has a left token ending in the first and a right token beginning
// with the second. Answers come from a bit table and may err only towards "may join", which costs
// time and nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "text/vocab.h"

namespace facet {

/// Immutable once made, so any number of threads may ask.
class JoinFilter {
 public:
  explicit JoinFilter(const Vocab& vocab);

  [[nodiscard]] bool MayJoin(char32_t left, char32_t right) const {
    return bits_[BitOf(left, right)];
  }

 private:
  [[nodiscard]] size_t BitOf(char32_t left, char32_t right) const {
    return static_cast<size_t>(MixBits((uint64_t{left} << 32) | right)) & (bits_.size() - 1);
  }

  std::vector<bool> bits_;  // a power of two of them
};

}  // namespace facet
