// SPDX-License-Identifier: Apache-2.0
// Importance matrices, both forms: any bytes are refused or give entries that are used with shapes
// that fit and shapes that do not.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "convert/imatrix.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto imatrix = facet::ParseImatrix(std::as_bytes(std::span(data, size)), "fuzz");
  if (!imatrix.ok()) {
    FACET_CHECK(!imatrix.error().Message().empty());
    return 0;
  }
  for (const facet::ImatrixEntry& entry : imatrix->entries) {
    FACET_CHECK(imatrix->Find(entry.name) == &entry);
    const auto n_sums = static_cast<int64_t>(entry.sums.size());
    const auto importance = facet::ImportanceOf(entry, {3, n_sums}, "fuzz");
    for (size_t i = 0; importance.ok() && i < importance->size(); ++i) {
      FACET_CHECK(std::isfinite((*importance)[i]) && (*importance)[i] >= 0);
    }
    (void)facet::ImportanceOf(entry, {n_sums, 3, 1}, "fuzz");
    (void)facet::ImportanceOf(entry, {2, 3, n_sums / 2 + 1}, "fuzz");
  }
  return 0;
}
