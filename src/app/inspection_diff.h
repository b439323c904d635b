// SPDX-License-Identifier: Apache-2.0
// `facet inspect --diff`: what is different in two files of tensors: keys, names, shapes, types and
// values. Tells what a conversion changed, or what quantising cost.
#pragma once

#include <string>

#include "app/inspection_scan.h"
#include "app/inspection_source.h"
#include "base/json.h"
#include "compute/thread_pool.h"

namespace facet {

/// Members: this, other (paths); metadata (null when one is a GGUF file and the other is not, for
/// they name the same things differently), else a list of {key, here, there, index}: values as
/// text, null where there is none, index the first place where arrays of one length differ;
/// tensors: a list of {name, here, there, max_difference, relative_difference}: type and shape as
/// text. The differences are of decoded values, the second one the root mean square of the
/// differences over that of this file's values; both are null where values cannot be compared or
/// are no numbers. same_tensors counts those of the same type and the same bytes.
Json DiffSources(const InspectionSource& source, const InspectionSource& other, ThreadPool* pool,
                 const ScanProgress& progress);

bool HasDifferences(const Json& diff);

/// The same as lines, 80 columns wide where names allow it.
std::string ShowDiff(const Json& diff);

}  // namespace facet
