// SPDX-License-Identifier: Apache-2.0
// `facet bench`: how fast this machine runs a model, and how close that is to what it can do.
#include "app/commands.h"

namespace facet {

int RunBench(const Options& options) {
  return Fail(Refuse("facet bench", options.model, "a version that has it"), kExitFailed);
}

}  // namespace facet
