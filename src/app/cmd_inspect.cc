// SPDX-License-Identifier: Apache-2.0
// `facet inspect`: what a model holds and what it needs. Collected as JSON once; the text for
// people is written from it.
#include <unistd.h>

#include "app/commands.h"
#include "app/inspection.h"
#include "app/loaded_model.h"
#include "app/terminal.h"

namespace facet {

int RunInspect(const Options& options) {
  if (!options.model.empty() && !options.words.empty() && options.words[0] != options.model) {
    return Fail(Refuse("facet inspect", "a model with -m and one without", "one model"),
                kExitFailed);
  }
  const auto model = LoadedModel::Load(options.words.empty() ? options.model : options.words[0]);
  if (!model.ok()) {
    return Fail(model.error(), kExitModelRefused);
  }
  const Json inspection = Inspect(**model);
  const std::string out = options.json ? inspection.Dump(2) + "\n" : ShowInspection(inspection);
  const Status status = WriteAll(STDOUT_FILENO, out, "standard output");
  return status.ok() ? kExitDone : Fail(status.error(), kExitFailed);
}

}  // namespace facet
