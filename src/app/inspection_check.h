// SPDX-License-Identifier: Apache-2.0
// `facet inspect --check`: every value of every tensor is decoded and looked at. Broken downloads
// and conversions show as values that are no numbers.
#pragma once

#include <string>

#include "app/inspection_scan.h"
#include "app/inspection_source.h"
#include "base/json.h"
#include "compute/thread_pool.h"

namespace facet {

/// Members: values (read), nan, infinite, zero_rows, findings (the first 20 values that are no
/// numbers, with tensor, row and column), zeros (tensors with rows of zeros), unread (types of
/// tensors that hold no floats). Rows count over all axes but the last.
Json CheckValues(const InspectionSource& source, ThreadPool* pool, const ScanProgress& progress);

/// Whether there were NaN or infinities. Rows of zeros are no fault: rows of tokens that were never
/// trained are often zero.
bool HasBadValues(const Json& check);

/// The same as lines.
std::string ShowCheck(const Json& check);

}  // namespace facet
