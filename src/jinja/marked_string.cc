// SPDX-License-Identifier: Apache-2.0
#include "jinja/marked_string.h"

#include <algorithm>

namespace facet::jinja {

std::string JoinRuns(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs) {
    text += run.text;
  }
  return text;
}

Origin MarkedString::OriginAt(size_t position) const {
  const auto after = std::upper_bound(switches_.begin(), switches_.end(), position);
  return AfterSwitches(static_cast<size_t>(after - switches_.begin()));
}

void MarkedString::Append(std::string_view text, Origin origin) {
  if (text.empty()) {
    return;
  }
  if (text_.empty()) {
    first_ = origin;
  } else if (AfterSwitches(switches_.size()) != origin) {
    switches_.push_back(text_.size());
  }
  text_ += text;
}

void MarkedString::Append(const MarkedString& other, size_t begin, size_t end) {
  const std::string_view text = other.text_;
  auto next = std::upper_bound(other.switches_.begin(), other.switches_.end(), begin);
  while (begin < end) {
    const Origin origin = other.AfterSwitches(static_cast<size_t>(next - other.switches_.begin()));
    const size_t stop = next == other.switches_.end() ? end : std::min(end, *next++);
    Append(text.substr(begin, stop - begin), origin);
    begin = stop;
  }
}

MarkedString MarkedString::Substring(size_t begin, size_t end) const {
  MarkedString part;
  part.Append(*this, begin, end);
  return part;
}

std::vector<Run> MarkedString::Runs() const {
  std::vector<Run> runs;
  size_t begin = 0;
  for (size_t i = 0; begin < text_.size(); ++i) {
    const size_t end = i < switches_.size() ? switches_[i] : text_.size();
    runs.push_back({text_.substr(begin, end - begin), AfterSwitches(i)});
    begin = end;
  }
  return runs;
}

}  // namespace facet::jinja
