// SPDX-License-Identifier: Apache-2.0
// The arguments of a call, `{key:value,...}`, read into JSON. Strings stand between marks and hold
// anything; numbers and literals stand bare. Where the text departs from that, it is read as it is
// meant: lost or foreign delimiters, lost commas, other brackets. Each such repair is counted.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "chat/tool_schema.h"

namespace facet {

/// Stands for the control token `<|"|>` in the text of a call: no byte of UTF-8, so that the same
/// characters typed as text are told from it.
inline constexpr char kStringMark = '\xFF';

/// Deeper arguments are refused. Less than messages may nest, so that a client can send them back.
inline constexpr int kMaxCallDepth = 190;

struct CallArguments {
  std::string json;  ///< an object; numbers digit for digit
  size_t end;        ///< bytes of the text that were read
  bool is_complete;  ///< its last bracket was there
  int n_repairs;
};

/// Reads the object at the start of `text`, which begins with `{` or `(`. What is open at the end
/// is closed. Nothing when a member has no name, or when it is too deep. Time is linear in the
/// text, and nested calls are as deep as kMaxCallDepth.
std::optional<CallArguments> ReadCallArguments(std::string_view text, const ValueSchema& schema);

}  // namespace facet
