// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

namespace facet {

int RunImatrix(const Options&) {
  return Fail(Refuse("facet imatrix", "not built yet"), kExitFailed);
}

}  // namespace facet
