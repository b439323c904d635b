// SPDX-License-Identifier: Apache-2.0
// The help, written from the option table: for the terminal, and as the manual docs/usage.md.
#pragma once

#include <string>

#include "app/options.h"

namespace facet {

/// "facet 0.1.0"
std::string VersionText();

/// What `facet --help` prints: the commands.
std::string ProgramHelp();

/// What `facet COMMAND --help` prints: every option of the command.
std::string CommandHelp(Command command);

/// docs/usage.md.
std::string MarkdownHelp();

}  // namespace facet
