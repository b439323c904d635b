// SPDX-License-Identifier: Apache-2.0
// A folder of GGUF files, as people keep them: the model, and beside it what belongs to it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace facet {

/// What a folder holds, told apart by what each file says it is, not by its name. Several of a kind
/// are refused only where one of them is asked for.
struct ModelFolder {
  std::string path;
  std::vector<std::string> models;  ///< paths, by name; of a split one, the first part
  std::vector<std::string> projectors;
  std::vector<std::string> drafters;
  std::vector<Error> unreadable;  ///< of files of which nothing can be told

  /// The path of the only one. Refused: several, with two of their names; none, with why a file
  /// could not be read, if there is such a one.
  [[nodiscard]] Result<std::string> Model() const;
  [[nodiscard]] Result<std::string> Drafter() const;
  /// For images and sound. Refused: several. Empty: none.
  [[nodiscard]] Result<std::string> ProjectorOrNone() const;
  [[nodiscard]] Result<std::string> DrafterOrNone() const;
};

/// Looks at the .gguf files of a folder, not below it.
Result<ModelFolder> LookInFolder(const std::string& folder);

/// Whether `path` is a folder with .gguf files, and no Hugging Face directory.
bool IsModelFolder(const std::string& path);

}  // namespace facet
