// SPDX-License-Identifier: Apache-2.0
// What `facet inspect` found, as tables of 80 columns.
#pragma once

#include <string>

#include "base/json.h"

namespace facet {

/// Everything that `inspection` (inspection.h) holds; where the user asked for tensors, a check or
/// a difference, the file's facts and that alone. Names from the file are made harmless for a
/// terminal.
std::string ShowInspection(const Json& inspection);

}  // namespace facet
