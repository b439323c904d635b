// SPDX-License-Identifier: Apache-2.0
// Finds the special tokens of a vocabulary in text: at one position the longest that fits. The
// texts are kept sorted, and each byte of the input narrows the range of those that still agree; so
// the work at a position is bounded by the longest token, whatever a file declares as special.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "text/vocab.h"

namespace facet {

/// Refers to the vocabulary, which must outlive it. Thread-safe.
class SpecialMatcher {
 public:
  explicit SpecialMatcher(const Vocab& vocab);

  struct Match {
    int id;
    size_t size;  ///< bytes of the text that it covers
  };
  /// The longest special token that `text` begins with.
  [[nodiscard]] std::optional<Match> MatchAt(std::string_view text) const;

 private:
  struct Entry {
    std::string_view text;
    int id;
  };
  std::vector<Entry> entries_;  // sorted by text
  std::array<bool, 256> is_first_byte_ = {};
};

}  // namespace facet
