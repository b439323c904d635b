// SPDX-License-Identifier: Apache-2.0
// `facet check`: whether this machine computes what it should.
#include "app/commands.h"

namespace facet {

int RunCheck(const Options& options) {
  return Fail(Refuse("facet check", options.model, "a version that has it"), kExitFailed);
}

}  // namespace facet
