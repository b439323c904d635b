// SPDX-License-Identifier: Apache-2.0
// Values of JSON from outside read into plain types. An error says where, what was found (never
// more than a line of it) and what was wanted.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/status.h"

namespace facet {

inline constexpr size_t kMostShownBytes = 60;

/// What an error says was found: a short value as it is, else its kind.
std::string ShownValue(const Json& value);

/// Refuse with ShownValue.
Error Wrong(std::string where, const Json& value, std::string wanted);

/// Beyond the range of floats the nearest one.
Status ReadNumber(const std::string& where, const Json& value, float* number);
/// Beyond 32 bits the nearest that fits: a later check of the range refuses it, or takes it for no
/// limit.
Status ReadInteger(const std::string& where, const Json& value, int* number);
/// `range`: least and most.
Status ReadIntegerWithin(const std::string& where, const Json& value, std::pair<int, int> range,
                         int* number);
Status ReadBool(const std::string& where, const Json& value, bool* flag);
Status ReadString(const std::string& where, const Json& value, std::string* text);

/// The whole of `text` as an integer.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

}  // namespace facet
