// SPDX-License-Identifier: Apache-2.0
// Members of what clients send, checked with errors that show what was found.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace facet {

/// What an error says was found: a short text as it is, the beginning of a long one, else the kind.
/// Null: "nothing".
std::string FoundValue(const Json* value);

/// Refuses the member `key` of `object` unless `is_right`. `where` is of the object.
Status CheckMember(const std::string& where, const Json& object, std::string_view key,
                   std::string_view wanted, bool is_right);

}  // namespace facet
