// SPDX-License-Identifier: Apache-2.0
#include "format/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace facet {

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxShown = 80;
  std::string out = "\"";
  for (const char c : RepairUtf8(text.substr(0, kMaxShown))) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  out += text.size() > kMaxShown ? "...\"" : "\"";
  return out;
}

std::optional<std::string_view> FindRepeated(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated == names.end()) {
    return std::nullopt;
  }
  return *repeated;
}

std::optional<size_t> FindName(const NameIndex& index, std::string_view name) {
  const auto found = std::lower_bound(
      index.begin(), index.end(), name,
      [](const auto& entry, std::string_view wanted) { return entry.first < wanted; });
  if (found == index.end() || found->first != name) {
    return std::nullopt;
  }
  return found->second;
}

Result<NameIndex> IndexShards(const std::vector<std::string_view>& names, const std::string& file) {
  if (const auto repeated = FindRepeated(names)) {
    return Refuse(file, fmt::format("tensor {} in two shards", Quoted(*repeated)),
                  "each name once");
  }
  NameIndex index;
  index.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    index.emplace_back(names[i], i);
  }
  std::sort(index.begin(), index.end());
  return index;
}

}  // namespace facet
