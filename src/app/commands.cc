// SPDX-License-Identifier: Apache-2.0
#include "app/commands.h"

#include <unistd.h>

#include <utility>

#include "app/drafting.h"
#include "app/help.h"
#include "app/model_source.h"
#include "app/terminal.h"
#include "app/text_width.h"

namespace facet {
namespace {

int Print(const std::string& text) {
  const Status status = WriteAll(STDOUT_FILENO, text, "standard output");
  return status.ok() ? kExitDone : Fail(status.error(), kExitFailed);
}

int RunHelp(const Options& options) {
  if (options.markdown) {
    return Print(MarkdownHelp());
  }
  if (options.words.empty()) {
    return Print(ProgramHelp());
  }
  for (const CommandSpec& spec : CommandTable()) {
    if (spec.name == options.words[0]) {
      return Print(CommandHelp(spec.id));
    }
  }
  return Fail(Refuse("facet help", "unknown command \"" + options.words[0] + "\"", "facet help"),
              kExitFailed);
}

}  // namespace

Status CheckGgufName(Command command, const std::string& path) {
  if (!path.ends_with(".gguf")) {
    return Refuse("facet " + std::string(SpecOf(command).name), "\"" + path + "\"",
                  "a name that ends in .gguf");
  }
  return {};
}

int Fail(const Error& error, ExitCode code) {
  Note("facet: " + ShownLine(error.Message()));
  return code;
}

ExitCode ResolveModels(const Environment& environment, Options* options) {
  if (const Status status = ResolveModelNames(environment, options); !status.ok()) {
    Fail(status.error(), kExitFailed);
    return kExitFailed;
  }
  if (const Status status = ResolveModelFolders(options); !status.ok()) {
    Fail(status.error(), kExitModelRefused);
    return kExitModelRefused;
  }
  if (const Status status = CheckDrafting(*options); !status.ok()) {
    Fail(status.error(), kExitFailed);
    return kExitFailed;
  }
  return kExitDone;
}

int RunProgram(std::span<const std::string> arguments, const Environment& environment) {
  Result<Options> options = ReadOptions(arguments, environment);
  if (!options.ok()) {
    return Fail(options.error(), kExitFailed);
  }
  if (options->wants_help && options->command != Command::kHelp) {
    return Print(CommandHelp(options->command));
  }
  if (options->command == Command::kRun) {
    return RunRun(*std::move(options), environment);
  }
  if (const ExitCode code = ResolveModels(environment, &*options); code != kExitDone) {
    return code;
  }
  switch (options->command) {
    case Command::kServe:
      return RunServe(*options);
    case Command::kTokenize:
      return RunTokenize(*options);
    case Command::kInspect:
      return RunInspect(*options);
    case Command::kConvert:
      return RunConvert(*options);
    case Command::kQuantize:
      return RunQuantize(*options);
    case Command::kImatrix:
      return RunImatrix(*options);
    case Command::kPerplexity:
      return RunPerplexity(*options);
    case Command::kSynth:
      return RunSynth(*options);
    case Command::kPull:
      return RunPull(*options, environment);
    case Command::kBench:
      return RunBench(*options, environment);
    case Command::kCheck:
      return RunCheck(*options);
    case Command::kVersion:
      return Print(VersionText() + "\n");
    case Command::kRun:
    case Command::kHelp:
      break;
  }
  return RunHelp(*options);
}

}  // namespace facet
