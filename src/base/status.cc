// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

namespace facet {

std::string Error::Message() const {
  std::string line = where;
  if (!found.empty()) {
    line += (line.empty() ? "" : ": ") + found;
  }
  if (!wanted.empty()) {
    line += (line.empty() ? "wanted " : ", wanted ") + wanted;
  }
  return line;
}

}  // namespace facet
