// SPDX-License-Identifier: Apache-2.0
// Names in files: showing them in messages, finding repeated ones, looking one up. Everything sorts
// instead of hashing, so that names chosen to collide cannot make a reader slow. Internal to
// format/.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace facet {

/// The text between double quotes for a message: control characters and broken UTF-8 replaced, long
/// text cut.
std::string Quoted(std::string_view text);

/// A name that occurs more than once: of several the smallest.
std::optional<std::string_view> FindRepeated(std::vector<std::string_view> names);

/// Names with their positions, sorted by name.
using NameIndex = std::vector<std::pair<std::string, size_t>>;

/// The position that `index` holds for `name`.
std::optional<size_t> FindName(const NameIndex& index, std::string_view name);

/// The names of items that have a `name`.
template <typename Named>
std::vector<std::string_view> NamesOf(const std::vector<Named>& items) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const Named& item : items) {
    names.push_back(item.name);
  }
  return names;
}

/// The index of the tensors of all shards of `file`. A name that two of them hold is refused.
Result<NameIndex> IndexShards(const std::vector<std::string_view>& names, const std::string& file);

}  // namespace facet
