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

/// Deeper arguments are refused. Less than messages may nest, so that a client can send them back.
inline constexpr int kMaxCallDepth = 190;

struct CallArguments {
  std::string json;  ///< an object; numbers digit for digit
  size_t end;        ///< place in the text behind what was read
  bool is_complete;  ///< its last bracket was there
  int n_repairs;
};

/// What is known to fail in a text, so that no search is repeated, not by the next call in it
/// either.
struct FailedSearches {
  size_t marks_before = 0;       ///< no mark of a string ends one that begins before this place
  size_t quotes_before[2] = {};  ///< nor a single, nor a double quote
  bool nests = true;             ///< brackets in bare text have their partners

  bool operator==(const FailedSearches&) const = default;
};

/// Reads the object at `begin` in `text`, which is `{` or `(`. What is open at the end is closed.
/// Nothing when a member has no name, or when it is too deep. `failed` is of this text and shared
/// by all calls in it; their time together is linear in the text. Where it is as new afterwards, a
/// longer text would not have been read otherwise up to the last bracket. Nested calls are as deep
/// as kMaxCallDepth.
std::optional<CallArguments> ReadCallArguments(std::string_view text, size_t begin,
                                               const ValueSchema& schema, FailedSearches* failed);

}  // namespace facet
