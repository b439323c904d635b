// SPDX-License-Identifier: Apache-2.0
#include "model/json_members.h"

#include <fmt/format.h>

#include <climits>

namespace facet {

std::string JsonMembers::Where(std::string_view key) const {
  return fmt::format("{}, {}", name_, key);
}

Result<int> JsonMembers::Int(std::string_view key, std::optional<int> otherwise) const {
  const Json& value = json_[key];
  if (value.is_null()) {
    if (!otherwise.has_value()) {
      return Refuse(Where(key), "nothing", "an integer");
    }
    return *otherwise;
  }
  if (!value.is_integer() || value.as_int() < INT_MIN || value.as_int() > INT_MAX) {
    return Refuse(Where(key), value.is_integer() ? value.Dump() : std::string(value.KindName()),
                  "an integer of 32 bits");
  }
  return static_cast<int>(value.as_int());
}

Result<float> JsonMembers::Float(std::string_view key, float otherwise) const {
  const Json& value = json_[key];
  if (value.is_null()) {
    return otherwise;
  }
  if (!value.is_number()) {
    return Refuse(Where(key), std::string(value.KindName()), "a number");
  }
  return static_cast<float>(value.as_double());
}

}  // namespace facet
