// SPDX-License-Identifier: Apache-2.0
#include "model/hf_directory.h"

#include "base/file.h"

namespace facet {

Result<Json> ReadJson(const std::string& path, uint64_t limit_bytes) {
  FACET_ASSIGN(const std::string text, ReadFile(path, limit_bytes));
  return ParseJson(text, path, {static_cast<size_t>(limit_bytes), 200});
}

Result<Json> ReadJsonIfThere(const std::string& path, uint64_t limit_bytes) {
  if (!FileExists(path)) {
    return Json();
  }
  return ReadJson(path, limit_bytes);
}

std::string LastPart(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Result<safetensors::File> OpenSafetensors(const std::string& directory) {
  const std::string index = directory + "/model.safetensors.index.json";
  const std::string single = directory + "/model.safetensors";
  if (!FileExists(index) && !FileExists(single)) {
    return Refuse(directory, "no weights", "model.safetensors or model.safetensors.index.json");
  }
  return safetensors::File::Open(FileExists(index) ? index : single);
}

}  // namespace facet
