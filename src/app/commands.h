// SPDX-License-Identifier: Apache-2.0
// The commands of the program. Each prints its results to standard output, notes and errors to
// standard error, and returns the exit code.
#pragma once

#include <span>
#include <string>

#include "app/options.h"
#include "base/status.h"

namespace facet {

enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitModelRefused = 2,
  kExitInterrupted = 130
};

/// Reads the options and runs the command.
int RunProgram(std::span<const std::string> arguments, const Environment& environment);

int RunRun(Options options, const Environment& environment);
int RunServe(const Options& options);
int RunTokenize(const Options& options);
int RunInspect(const Options& options);
int RunConvert(const Options& options);
int RunQuantize(const Options& options);
int RunImatrix(const Options& options);
int RunPerplexity(const Options& options);
int RunSynth(const Options& options);
int RunPull(const Options& options, const Environment& environment);
int RunBench(const Options& options, const Environment& environment);
int RunCheck(const Options& options);

/// Turns names and folders of models among the options into paths, downloading what is not there
/// (model_source.h). Anything but kExitDone: it failed, which was told.
ExitCode ResolveModels(const Environment& environment, Options* options);

/// Refuses an output whose name does not end in .gguf.
Status CheckGgufName(Command command, const std::string& path);

/// "facet: MESSAGE" on standard error; returns `code`.
int Fail(const Error& error, ExitCode code);

}  // namespace facet
