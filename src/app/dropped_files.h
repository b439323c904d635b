// SPDX-License-Identifier: Apache-2.0
// Paths as people give them in a chat: typed after a command, or dropped onto the terminal, which
// pastes them quoted or with backslashes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "base/status.h"

namespace facet {

/// The paths of a line, which blanks separate as in a shell: within '…' or "…" and after \ they do
/// not. A path of ~ or ~/… begins at `home`. Refused: a quote without its end.
Result<std::vector<std::string>> SplitPaths(std::string_view line, const std::string& home);

/// What a file holds, going by the ending of its name; nothing: no picture, sound or film.
std::optional<MediaPartKind> KindOfName(std::string_view path);

/// The files of a line that consists of paths of media files that exist, and of nothing else; of
/// any other line nothing.
std::vector<MediaFile> DroppedFiles(std::string_view line, const std::string& home);

}  // namespace facet
