// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace facet {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> cost((a.size() + 1) * width);
  std::iota(cost.begin(), cost.begin() + static_cast<std::ptrdiff_t>(width), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t* row = &cost[i * width];
    const size_t* above = row - width;
    row[0] = i;
    for (size_t j = 1; j < width; ++j) {
      const size_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({row[j - 1] + 1, above[j] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], cost[(i - 2) * width + j - 2] + 1);
      }
    }
  }
  return cost.back();
}

}  // namespace

std::string_view Nearest(std::string_view text, std::span<const std::string_view> names) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, text.size() / 3) + 1;
  for (const std::string_view name : names) {
    const bool is_beginning = text.size() > 3 && name.starts_with(text);
    const size_t distance = is_beginning ? 1 : EditDistance(text.substr(0, 64), name);
    if (distance < best_distance && distance < name.size() / 2 + 1) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace facet
