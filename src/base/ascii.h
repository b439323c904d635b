// SPDX-License-Identifier: Apache-2.0
// Letters of ASCII, where the names of a protocol are compared: no locale, other bytes stay.
#pragma once

#include <string>
#include <string_view>

namespace facet {

constexpr char ToLowerAscii(char c) {
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}
std::string ToLowerAscii(std::string_view text);

}  // namespace facet
