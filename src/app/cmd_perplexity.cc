// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

namespace facet {

int RunPerplexity(const Options&) {
  return Fail(Refuse("facet perplexity", "not built yet"), kExitFailed);
}

}  // namespace facet
