// SPDX-License-Identifier: Apache-2.0
#include "engine/ngram_index.h"

#include <algorithm>

#include "base/check.h"

namespace facet {
namespace {

constexpr size_t kFirstSlots = 64;
/// Slots that a pair may be in. A random pair finds all of them taken once in 2^16 times at most.
constexpr size_t kProbes = 16;

size_t HashOf(std::span<const int32_t> tokens, int32_t place) {
  const auto at = static_cast<size_t>(place);
  uint64_t pair = (static_cast<uint64_t>(static_cast<uint32_t>(tokens[at - 2])) << 32U) |
                  static_cast<uint32_t>(tokens[at - 1]);
  pair = (pair ^ (pair >> 31U)) * 0x9E3779B97F4A7C15U;
  return static_cast<size_t>(pair ^ (pair >> 29U));
}

bool HaveOnePair(std::span<const int32_t> tokens, int32_t a, int32_t b) {
  const auto at = static_cast<size_t>(a);
  const auto other = static_cast<size_t>(b);
  return tokens[at - 1] == tokens[other - 1] && tokens[at - 2] == tokens[other - 2];
}

/// Tokens before `place` that equal those before the end.
int Agreeing(std::span<const int32_t> tokens, size_t place) {
  const size_t n_most = std::min(place, size_t{NgramIndex::kLongest});
  size_t n = 0;
  while (n < n_most && tokens[place - 1 - n] == tokens[tokens.size() - 1 - n]) {
    ++n;
  }
  return static_cast<int>(n);
}

}  // namespace

void NgramIndex::Extend(std::span<const int32_t> tokens) {
  if (previous_.empty()) {
    previous_.resize(kShortest, -1);
  }
  FACET_CHECK(tokens.size() < size_t{1} << 31U);
  while (previous_.size() <= tokens.size()) {
    if (2 * (n_heads_ + 1) > heads_.size()) {
      Grow(tokens);
    }
    previous_.push_back(Exchange(tokens, static_cast<int32_t>(previous_.size())));
  }
}

int32_t NgramIndex::Exchange(std::span<const int32_t> tokens, int32_t place) {
  const size_t mask = heads_.size() - 1;
  size_t slot = HashOf(tokens, place) & mask;
  size_t oldest = slot;
  for (size_t n = 1; n <= kProbes; ++n) {
    const int32_t head = heads_[slot];
    if (head < 0 || HaveOnePair(tokens, head, place)) {
      n_heads_ += head < 0 ? 1 : 0;
      heads_[slot] = place;
      return head;
    }
    oldest = head < heads_[oldest] ? slot : oldest;
    slot = (slot + n) & mask;
  }
  heads_[oldest] = place;
  return -1;
}

void NgramIndex::Grow(std::span<const int32_t> tokens) {
  std::vector<int32_t> old(std::max(kFirstSlots, 2 * heads_.size()), -1);
  old.swap(heads_);
  n_heads_ = 0;
  for (const int32_t head : old) {
    if (head >= 0) {
      Exchange(tokens, head);
    }
  }
}

NgramIndex::Match NgramIndex::Find(std::span<const int32_t> tokens, int n_most) const {
  Match match;
  if (tokens.size() < kShortest) {
    return match;
  }
  FACET_CHECK(previous_.size() == tokens.size() + 1);
  size_t from = 0;
  int32_t place = previous_[tokens.size()];
  for (int n = 0; n < kMaxPlaces && place >= 0 && match.n_agreeing < kLongest; ++n) {
    const auto at = static_cast<size_t>(place);
    const int n_agreeing = Agreeing(tokens, at);
    if (n_agreeing > match.n_agreeing) {
      match.n_agreeing = n_agreeing;
      from = at;
    }
    place = previous_[at];
  }
  if (match.n_agreeing > 0) {
    match.drafts.resize(static_cast<size_t>(n_most));
    const size_t n_period = tokens.size() - from;
    for (size_t n = 0; n < match.drafts.size(); ++n) {
      match.drafts[n] = tokens[from + n % n_period];
    }
  }
  return match;
}

size_t NgramIndex::n_bytes() const {
  return (heads_.capacity() + previous_.capacity()) * sizeof(int32_t);
}

}  // namespace facet
