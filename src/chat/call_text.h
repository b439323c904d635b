// SPDX-License-Identifier: Apache-2.0
// The text of a call as the splitter hands it to the reader: UTF-8, in which one byte stands for
// the control token around strings; and what is white space there.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace facet {

/// Stands for the control token `<|"|>` in the text of a call: no byte of UTF-8, so that the same
/// characters typed as text are told from it.
inline constexpr char kStringMark = '\xFF';

inline constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

inline std::string_view TrimLeft(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
}

inline std::string_view Trim(std::string_view text) {
  return TrimLeft(text.substr(0, text.find_last_not_of(kWhiteSpace) + 1));
}

inline std::string WithoutMarks(std::string_view text) {
  std::string clean(text);
  clean.erase(std::remove(clean.begin(), clean.end(), kStringMark), clean.end());
  return clean;
}

}  // namespace facet
