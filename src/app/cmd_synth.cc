// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

namespace facet {

int RunSynth(const Options&) { return Fail(Refuse("facet synth", "not built yet"), kExitFailed); }

}  // namespace facet
