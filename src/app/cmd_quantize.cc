// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

namespace facet {

int RunQuantize(const Options&) {
  return Fail(Refuse("facet quantize", "not built yet"), kExitFailed);
}

}  // namespace facet
