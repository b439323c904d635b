// SPDX-License-Identifier: Apache-2.0
// A flat hash table of indices into an array that its owner keeps: open addressing, linear probing,
// at most half full. A vocabulary has 262144 texts and half a million merges; node-based maps of
// that size take seconds to fill and most of the memory. The owner hashes and compares, so keys are
// stored nowhere twice.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace facet {

/// Spreads the bits of a key over the whole word.
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

inline uint64_t HashText(std::string_view text) {
  uint64_t hash = text.size();
  uint64_t word = 0;
  while (text.size() >= sizeof(word)) {
    std::memcpy(&word, text.data(), sizeof(word));
    hash = MixBits(hash ^ word);
    text.remove_prefix(sizeof(word));
  }
  word = 0;
  for (const char byte : text) {
    word = (word << 8) | static_cast<uint8_t>(byte);
  }
  return MixBits(hash ^ word);
}

/// Not for several threads while it is filled; finding is const.
class IndexTable {
 public:
  static constexpr int32_t kNone = -1;

  /// Empties the table and makes room for `n` entries, which is all it may ever hold.
  void Reset(size_t n) { slots_.assign(std::bit_ceil(2 * n + 1), Slot{}); }

  /// The index for which `is_equal(index)` holds among those with this hash, or kNone.
  template <typename IsEqual>
  [[nodiscard]] int32_t Find(uint64_t hash, const IsEqual& is_equal) const {
    return slots_.empty() ? kNone : slots_[Probe(hash, is_equal)].index;
  }

  /// The place of such an index, or an empty place (kNone), which the caller must fill.
  template <typename IsEqual>
  int32_t& Place(uint64_t hash, const IsEqual& is_equal) {
    Slot& slot = slots_[Probe(hash, is_equal)];
    slot.tag = TagOf(hash);
    return slot.index;
  }

 private:
  /// The tag spares most comparisons of entries with other hashes, each of which would miss the
  /// cache.
  struct Slot {
    uint32_t tag = 0;
    int32_t index = kNone;
  };
  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

  template <typename IsEqual>
  [[nodiscard]] size_t Probe(uint64_t hash, const IsEqual& is_equal) const {
    const size_t mask = slots_.size() - 1;
    size_t i = static_cast<size_t>(hash) & mask;
    while (slots_[i].index != kNone &&
           (slots_[i].tag != TagOf(hash) || !is_equal(slots_[i].index))) {
      i = (i + 1) & mask;
    }
    return i;
  }

  std::vector<Slot> slots_;  // a power of two of them, one or more always empty
};

}  // namespace facet
