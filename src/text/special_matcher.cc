// SPDX-License-Identifier: Apache-2.0
#include "text/special_matcher.h"

#include <algorithm>

namespace facet {

SpecialMatcher::SpecialMatcher(const Vocab& vocab) {
  for (int id = 0; id < vocab.size(); ++id) {
    if (vocab.is_special(id)) {
      entries_.push_back({vocab.text(id), id});
      is_first_byte_[static_cast<uint8_t>(vocab.text(id)[0])] = true;
    }
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
}

std::optional<SpecialMatcher::Match> SpecialMatcher::MatchAt(std::string_view text) const {
  if (text.empty() || !is_first_byte_[static_cast<uint8_t>(text[0])]) {
    return std::nullopt;
  }
  std::optional<Match> longest;
  auto begin = entries_.begin();
  auto end = entries_.end();
  for (size_t depth = 0; depth < text.size() && begin != end; ++depth) {
    // All of [begin, end) agree with the first `depth` bytes and are longer than that.
    const auto byte = static_cast<uint8_t>(text[depth]);
    const auto byte_of = [depth](const Entry& entry) {
      return static_cast<uint8_t>(entry.text[depth]);
    };
    begin =
        std::partition_point(begin, end, [&](const Entry& entry) { return byte_of(entry) < byte; });
    end = std::partition_point(begin, end,
                               [&](const Entry& entry) { return byte_of(entry) == byte; });
    if (begin != end && begin->text.size() == depth + 1) {
      longest = Match{begin->id, depth + 1};
      ++begin;
    }
  }
  return longest;
}

}  // namespace facet
