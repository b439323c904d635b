// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <fmt/format.h>

namespace facet {

Error ByteCursor::Truncated(std::string_view what, uint64_t size) const {
  return Refuse(fmt::format("{}, byte {}", name_, position_),
                fmt::format("{} bytes left for {}", remaining(), what), fmt::format("{}", size));
}

}  // namespace facet
