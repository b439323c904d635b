// SPDX-License-Identifier: Apache-2.0
// A folder of GGUF files, as people keep them: the model, and beside it what belongs to it.
#pragma once

#include <string>

#include "base/status.h"

namespace facet {

/// What a folder holds, told apart by what each file says it is, not by its name.
struct ModelFolder {
  std::string model;      ///< path; of a split one, the first part
  std::string projector;  ///< for images and sound; empty: none
  std::string drafter;    ///< empty: none
};

/// Looks at the .gguf files of a folder, not below it. Refused: no model, or several of a kind,
/// with their names; a file that cannot be read is refused with its own error.
Result<ModelFolder> LookInFolder(const std::string& folder);

/// Whether `path` is a folder with .gguf files, and no Hugging Face directory.
bool IsModelFolder(const std::string& path);

}  // namespace facet
