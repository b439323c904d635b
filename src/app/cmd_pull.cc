// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

namespace facet {

int RunPull(const Options&) { return Fail(Refuse("facet pull", "not built yet"), kExitFailed); }

}  // namespace facet
