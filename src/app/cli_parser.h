// SPDX-License-Identifier: Apache-2.0
// The command line's syntax. CLI11 splits it into options and words; what an option means stands in
// the option table. The only file that knows CLI11.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "base/status.h"

namespace facet {

struct ParsedOption {
  const OptionSpec* option;
  std::vector<std::string>
      values;  ///< as given, unchecked; the last one only unless the option is repeatable
};

struct ParsedLine {
  Command command = Command::kHelp;
  /// Each once, in the order of the table; those of media files once for each time they are given,
  /// in the order of the command line, which counts across them.
  std::vector<ParsedOption> options;
  std::vector<std::string> words;
};

/// `arguments` are those after the program's name. -h, --help and --version count as commands where
/// none is given.
Result<ParsedLine> ParseCommandLine(std::span<const std::string> arguments);

}  // namespace facet
