// SPDX-License-Identifier: Apache-2.0
// Metadata and shapes for people and for programs: long arrays are cut, text stays on one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "format/gguf.h"

namespace facet {

/// "uint32", or "[int32]" for an array of them.
std::string TypeText(const gguf::Value& value);

/// A scalar, or the first `max_items` of an array.
Json ValueJson(const gguf::Value& value, size_t max_items);

/// One line: "a \"text\"" in quotes, "[30] 8, 8, 8, 8, 8, 2, ..." with the first `max_items`.
std::string ValueText(const gguf::Value& value, size_t max_items);

/// One element of an array as ValueText writes it.
std::string ItemText(const gguf::Value& value, size_t i);

/// "262144x1536"; "scalar" without axes.
std::string ShapeText(const std::vector<int64_t>& shape);

/// `text` without control characters, cut with "..." where it takes more than `n_columns` (at least
/// 4) of a terminal.
std::string CutText(std::string_view text, int n_columns);

}  // namespace facet
