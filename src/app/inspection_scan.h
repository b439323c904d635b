// SPDX-License-Identifier: Apache-2.0
// Reading all values of many tensors with all threads: how the work is cut, so that results come in
// the order of the data, memory stays small however long a row is, and progress can be told.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "compute/thread_pool.h"

namespace facet {

/// Elements that are decoded at a time; a whole number of blocks of every type.
inline constexpr int64_t kScanPiece = int64_t{1} << 16;

/// Told with bytes that have been read and those in all.
using ScanProgress = std::function<void(uint64_t done, uint64_t total)>;

/// Calls scan(part) for parts 0 to n_parts - 1, each on one thread, and returns what they give in
/// that order. `told` gets the number of parts that are done now and then.
template <typename PartResult, typename Scan, typename Told>
std::vector<PartResult> ScanParts(ThreadPool* pool, int64_t n_parts, Scan scan, Told told) {
  constexpr int64_t kPartsAtOnce = 256;
  std::vector<PartResult> results(static_cast<size_t>(n_parts));
  for (int64_t begin = 0; begin < n_parts; begin += kPartsAtOnce) {
    const int64_t n = std::min(kPartsAtOnce, n_parts - begin);
    pool->Run(static_cast<int>(n),
              [&](int part) { results[static_cast<size_t>(begin + part)] = scan(begin + part); });
    told(begin + n);
  }
  return results;
}

}  // namespace facet
