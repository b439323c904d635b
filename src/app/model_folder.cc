// SPDX-License-Identifier: Apache-2.0
#include "app/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "format/gguf.h"
#include "model/drafter_config.h"

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

/// The only one; empty: none.
Result<std::string> OnlyOf(const ModelFolder& folder, const std::vector<std::string>& paths,
                           std::string_view what, std::string_view option) {
  if (paths.size() > 1) {
    return Refuse(folder.path, fmt::format("two {}, {} and {}", what, paths[0], paths[1]),
                  fmt::format("one of them named with {}", option));
  }
  return paths.empty() ? std::string() : paths[0];
}

/// Why there is none.
Error None(const ModelFolder& folder, std::string_view what) {
  return folder.unreadable.empty()
             ? Refuse(folder.path, fmt::format("no {} among its .gguf files", what),
                      "a folder with one")
             : folder.unreadable[0];
}

}  // namespace

Result<std::string> ModelFolder::Model() const {
  FACET_ASSIGN(std::string model, OnlyOf(*this, models, "models", "-m"));
  return model.empty() ? Result<std::string>(None(*this, "Gemma 4 model")) : model;
}

Result<std::string> ModelFolder::Drafter() const {
  FACET_ASSIGN(std::string drafter, DrafterOrNone());
  return drafter.empty() ? Result<std::string>(None(*this, "drafter")) : drafter;
}

Result<std::string> ModelFolder::ProjectorOrNone() const {
  return OnlyOf(*this, projectors, "projectors", "--mmproj");
}

Result<std::string> ModelFolder::DrafterOrNone() const {
  return OnlyOf(*this, drafters, "drafters", "--draft");
}

Result<ModelFolder> LookInFolder(const std::string& folder) {
  FACET_ASSIGN(const std::vector<std::string> paths, ListFiles(folder));
  ModelFolder found;
  found.path = folder;
  for (const std::string& path : paths) {
    const Result<std::string> architecture = ArchitectureOf(path);
    if (!architecture.ok()) {
      found.unreadable.push_back(architecture.error());
    } else if (*architecture == "gemma4") {
      found.models.push_back(path);
    } else if (*architecture == "clip") {
      found.projectors.push_back(path);
    } else if (IsDrafterArchitecture(*architecture)) {
      found.drafters.push_back(path);
    }
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
