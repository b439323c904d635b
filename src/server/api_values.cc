// SPDX-License-Identifier: Apache-2.0
#include "server/api_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace facet {

std::string ShownValue(const Json& value) {
  const bool may_be_long =
      value.is_object() || value.is_array() || value.as_string().size() > kMostShownBytes;
  if (may_be_long) {
    return std::string(value.KindName());
  }
  std::string shown = value.Dump();
  return shown.size() <= kMostShownBytes ? std::move(shown) : std::string(value.KindName());
}

Error Wrong(std::string where, const Json& value, std::string wanted) {
  return Refuse(std::move(where), ShownValue(value), std::move(wanted));
}

Status ReadNumber(const std::string& where, const Json& value, float* number) {
  if (!value.is_integer() && !value.is_double()) {
    return Wrong(where, value, "a number");
  }
  constexpr double kMost = std::numeric_limits<float>::max();
  *number = static_cast<float>(std::clamp(value.as_double(), -kMost, kMost));
  return {};
}

Status ReadInteger(const std::string& where, const Json& value, int* number) {
  if (!value.is_integer()) {
    return Wrong(where, value, "an integer");
  }
  using Limits = std::numeric_limits<int>;
  *number = static_cast<int>(std::clamp<int64_t>(value.as_int(), Limits::min(), Limits::max()));
  return {};
}

Status ReadIntegerWithin(const std::string& where, const Json& value, std::pair<int, int> range,
                         int* number) {
  const auto [least, most] = range;
  FACET_RETURN_IF_ERROR(ReadInteger(where, value, number));
  return *number >= least && *number <= most
             ? Status()
             : Wrong(where, value, fmt::format("{} to {}", least, most));
}

Status ReadBool(const std::string& where, const Json& value, bool* flag) {
  if (!value.is_bool()) {
    return Wrong(where, value, "true or false");
  }
  *flag = value.as_bool();
  return {};
}

Status ReadString(const std::string& where, const Json& value, std::string* text) {
  if (!value.is_string()) {
    return Wrong(where, value, "a string");
  }
  *text = value.as_string();
  return {};
}

}  // namespace facet
