// SPDX-License-Identifier: Apache-2.0
// The text that facet perplexity and facet imatrix run through a model, and what stands before it
// in each window.
#pragma once

#include <string>
#include <vector>

#include "app/loaded_model.h"
#include "base/status.h"

namespace facet {

/// The file's bytes; refuses an empty one.
Result<std::string> ReadMeasuredText(const std::string& path);

/// The first tokens of a window: the model's first token or, unless `is_raw`, its turns up to where
/// the model's answer begins, so that the text is met as a reply is.
Result<std::vector<int>> MeasuredFrame(const LoadedModel& model, bool is_raw);

}  // namespace facet
