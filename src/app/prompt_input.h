// SPDX-License-Identifier: Apache-2.0
// The text of a command: from its words, --prompt, a file and standard input.
#pragma once

#include <optional>
#include <string>

#include "app/options.h"
#include "base/status.h"

namespace facet {

/// The parts in this order, with a blank line between them: --prompt, words, file, standard input.
/// Standard input is read when it is asked for (a word or file named "-"), or when there is nothing
/// else and it is no terminal. The last line break of a file is left out unless `is_exact`. Nothing
/// when there is no text at all: then a chat may begin.
Result<std::optional<std::string>> ReadPromptText(const Options& options, bool is_exact);

}  // namespace facet
