// SPDX-License-Identifier: Apache-2.0
#include "base/ascii.h"

namespace facet {

std::string ToLowerAscii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = ToLowerAscii(c);
  }
  return lower;
}

}  // namespace facet
