// SPDX-License-Identifier: Apache-2.0
// What a repository of models holds, and which of its files a name means. Reads the listing that
// the server's interface gives (GET /api/models/OWNER/REPOSITORY/revision/REVISION?blobs=true); the
// listing is the server's and not to be trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace facet {

struct HubFile {
  std::string path;  ///< within the repository; safe to be joined to a folder
  std::optional<uint64_t> size = {};
  std::string sha256 = {};  ///< empty when the listing does not say

  bool operator==(const HubFile&) const = default;
};

inline constexpr size_t kMaxListingBytes = size_t{16} << 20;

/// The files in the order of the listing. `where` is what errors call it. Refuses paths that leave
/// the repository, and more than 20000 files.
Result<std::vector<HubFile>> ParseListing(std::string_view json, const std::string& where);

/// The files of the chosen model.
struct HubChoice {
  std::vector<HubFile> files;  ///< all parts of a split model; all files of a directory
  std::string model;           ///< what to open: the first file, or empty for the whole directory
  size_t n_candidates = 1;     ///< of models there were
};

/// Without a tag: the only GGUF model, or of several the only one in Q4_K_M; where there is no GGUF
/// at all, the directory of safetensors. With one: the GGUF model that has it in its file name, as
/// a word, in any case. Projectors (mmproj) and importance matrices are no models. `where` is the
/// repository in errors, which list what there is.
Result<HubChoice> ChooseModel(const std::vector<HubFile>& files, const std::string& tag,
                              const std::string& where);

}  // namespace facet
