// SPDX-License-Identifier: Apache-2.0
#include "app/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "format/gguf.h"

namespace facet {
namespace {

constexpr size_t kMostFiles = 1000;

/// The .gguf files of a folder that can be opened by themselves, by name: of split files the first.
Result<std::vector<std::string>> ListFiles(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    const size_t of = path.rfind("-of-");
    const bool is_later_part = of != std::string::npos && of + 14 == path.size() && of >= 6 &&
                               path.substr(of - 6, 6) != "-00001";
    if (path.ends_with(".gguf") && !is_later_part) {
      paths.push_back(path);
    }
    if (paths.size() > kMostFiles) {
      return Refuse(folder, fmt::format("more than {} .gguf files", kMostFiles), "one model");
    }
  }
  if (error) {
    return Refuse(folder, error.message(), "a folder that can be read");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// general.architecture; empty when the file has none.
Result<std::string> ArchitectureOf(const std::string& path) {
  FACET_ASSIGN(const gguf::File file, gguf::File::Open(path));
  const gguf::Value* value = file.metadata().Find("general.architecture");
  const std::string* text = value == nullptr ? nullptr : value->AsString();
  return text == nullptr ? std::string() : *text;
}

Status Keep(const std::string& folder, const std::string& path, std::string_view what,
            std::string* kept) {
  if (!kept->empty()) {
    return Refuse(folder, fmt::format("two {}, {} and {}", what, *kept, path),
                  "one of them named with -m");
  }
  *kept = path;
  return {};
}

}  // namespace

Result<ModelFolder> LookInFolder(const std::string& folder) {
  FACET_ASSIGN(const std::vector<std::string> paths, ListFiles(folder));
  ModelFolder found;
  for (const std::string& path : paths) {
    FACET_ASSIGN(const std::string architecture, ArchitectureOf(path));
    if (architecture == "gemma4") {
      FACET_RETURN_IF_ERROR(Keep(folder, path, "models", &found.model));
    } else if (architecture == "clip") {
      FACET_RETURN_IF_ERROR(Keep(folder, path, "projectors", &found.projector));
    } else if (architecture.starts_with("gemma4") && architecture.ends_with("assistant")) {
      FACET_RETURN_IF_ERROR(Keep(folder, path, "drafters", &found.drafter));
    }
  }
  if (found.model.empty()) {
    return Refuse(folder, "no Gemma 4 model among its .gguf files", "a folder with one");
  }
  return found;
}

bool IsModelFolder(const std::string& path) {
  if (!IsDirectory(path) || FileExists(path + "/config.json")) {
    return false;
  }
  const auto files = ListFiles(path);
  return !files.ok() || !files->empty();
}

}  // namespace facet
