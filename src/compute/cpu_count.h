// SPDX-License-Identifier: Apache-2.0
// Counting the processors that a process may use, from the files in which Linux says so. Apart from
// DefaultThreads so that it can be tested with made-up files.
#pragma once

#include <string>
#include <vector>

namespace facet {

/// Distinct physical cores among the logical processors `allowed`, but no more than the cgroup's
/// processor quota (version 1 or 2, of this process's group or a group above it); at least 1. Files
/// are read below `root` ("" for the real ones). What can't be read does not limit.
int CountCores(const std::string& root, const std::vector<int>& allowed);

}  // namespace facet
