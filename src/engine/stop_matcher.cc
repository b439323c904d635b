// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace facet {

namespace {

std::vector<int32_t> Borders(std::string_view text) {
  std::vector<int32_t> borders(text.size());
  size_t n = 0;
  for (size_t at = 1; at < text.size(); ++at) {
    while (n > 0 && text[at] != text[n]) {
      n = static_cast<size_t>(borders[n - 1]);
    }
    n += text[at] == text[n] ? 1 : 0;
    borders[at] = static_cast<int32_t>(n);
  }
  return borders;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    FACET_CHECK(!stop.empty());
    std::vector<int32_t> borders = Borders(stop);
    patterns_.push_back({std::move(stop), std::move(borders)});
  }
}

/// One byte further in all patterns; the length of the longest that is complete, or 0.
size_t StopMatcher::Advance(char byte) {
  size_t longest = 0;
  for (Pattern& pattern : patterns_) {
    size_t n = pattern.n_matched;
    while (n > 0 && pattern.text[n] != byte) {
      n = static_cast<size_t>(pattern.borders[n - 1]);
    }
    n += pattern.text[n] == byte ? 1 : 0;
    pattern.n_matched = n;
    if (n == pattern.text.size()) {
      longest = std::max(longest, n);
    }
  }
  return longest;
}

/// Releases the held tokens that end at or before `end`.
void StopMatcher::Release(size_t end, std::vector<TextPiece>& released) {
  while (!held_.empty() && held_.front().begin + held_.front().piece.bytes.size() <= end) {
    released.push_back(std::move(held_.front().piece));
    held_.pop_front();
  }
}

bool StopMatcher::Push(int32_t token, std::string_view bytes, std::vector<TextPiece>& released) {
  held_.push_back({{token, std::string(bytes)}, n_bytes_});
  for (const char byte : bytes) {
    ++n_bytes_;
    if (const size_t n_stop = Advance(byte); n_stop > 0) {
      const size_t end = n_bytes_ - n_stop;
      Release(end, released);
      if (!held_.empty() && held_.front().begin < end) {
        Held& cut = held_.front();
        cut.piece.bytes.resize(end - cut.begin);
        released.push_back(std::move(cut.piece));
      }
      held_.clear();
      return true;
    }
  }
  size_t n_open = 0;
  for (const Pattern& pattern : patterns_) {
    n_open = std::max(n_open, pattern.n_matched);
  }
  Release(n_bytes_ - n_open, released);
  return false;
}

void StopMatcher::Flush(std::vector<TextPiece>& released) { Release(n_bytes_, released); }

}  // namespace facet
