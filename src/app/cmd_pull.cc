// SPDX-License-Identifier: Apache-2.0
// `facet pull`: a model from the network into the cache, or to where the user says. Its path goes
// to standard output, for scripts.
#include <unistd.h>

#include "app/commands.h"
#include "app/model_source.h"
#include "app/terminal.h"
#include "base/sha256.h"

namespace facet {
namespace {

Result<std::string> Pull(const Options& options, const Environment& environment) {
  if (!options.sha256.empty() && !IsSha256Hex(options.sha256)) {
    return Refuse("--sha256", "\"" + options.sha256 + "\"", "64 hexadecimal digits, in lower case");
  }
  FACET_ASSIGN(const ModelName name, ParseModelName(options.words[0]));
  FACET_ASSIGN(const SourceSettings settings, ReadSourceSettings(options, environment));
  return ModelSource(settings, DefaultSourceHooks())
      .Pull({.name = name, .output = options.output, .sha256 = options.sha256});
}

}  // namespace

int RunPull(const Options& options, const Environment& environment) {
  const Result<std::string> path = Pull(options, environment);
  if (!path.ok()) {
    return Fail(path.error(), kExitFailed);
  }
  const Status status = WriteAll(STDOUT_FILENO, *path + "\n", "standard output");
  return status.ok() ? kExitDone : Fail(status.error(), kExitFailed);
}

}  // namespace facet
