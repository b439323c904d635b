// SPDX-License-Identifier: Apache-2.0
// Values in the arguments of a call that are not strings: which text is JSON's number or literal,
// and which is what a model writes for one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/tool_schema.h"

namespace facet {

struct Literal {
  ValueSchema::Type type;
  std::string_view json;  ///< as JSON has it; numbers as they were written
  bool is_json;           ///< it was written so; else Python's True, False or None
};

/// A number in JSON's own form and in the range of a double, true, false or null. Views `text`.
std::optional<Literal> ReadLiteral(std::string_view text);

/// As ReadLiteral; also an array or an object of JSON, at most `max_depth` deep.
std::optional<Literal> ReadJson(std::string_view text, int max_depth);

/// The text of a string as it stands between quotes, with JSON's escapes read; what is none stays.
std::string UnescapeJson(std::string_view text);

}  // namespace facet
