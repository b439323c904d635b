// SPDX-License-Identifier: Apache-2.0
#include "net/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/ascii.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "net/model_name.h"

namespace facet {
namespace {

constexpr size_t kMaxFiles = 20000;
constexpr int kMaxDepth = 32;
constexpr size_t kMaxListed = 30;
constexpr std::string_view kDefaultTag = "Q4_K_M";

/// A GGUF model with all of its parts.
struct Candidate {
  std::vector<HubFile> files;
};

std::string_view FileNameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsGgufModel(std::string_view path) {
  const std::string name = ToLowerAscii(FileNameOf(path));
  return name.ends_with(".gguf") && name.find("mmproj") == std::string::npos &&
         name.find("imatrix") == std::string::npos;
}

/// As drafters are named ("gemma-4-E2B-it-assistant-Q8_0.gguf").
bool IsDrafter(const Candidate& candidate) {
  return ToLowerAscii(FileNameOf(candidate.files[0].path)).find("assistant") != std::string::npos;
}

/// Whether `tag` stands in the file's name with no letter, digit or '_' beside it.
bool HasTag(std::string_view path, std::string_view tag) {
  const std::string name = ToLowerAscii(FileNameOf(path));
  const std::string wanted = ToLowerAscii(tag);
  const auto is_word = [&name](size_t at) {
    const char c = at < name.size() ? name[at] : '.';
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  };
  for (size_t at = name.find(wanted); at != std::string::npos; at = name.find(wanted, at + 1)) {
    if ((at == 0 || !is_word(at - 1)) && !is_word(at + wanted.size())) {
      return true;
    }
  }
  return false;
}

Result<HubFile> ParseFile(const Json& sibling, const std::string& where) {
  HubFile file;
  file.path = sibling["rfilename"].as_string();
  if (!IsSafeRelativePath(file.path)) {
    return Refuse(where, fmt::format("file name \"{}\"", RepairUtf8(file.path).substr(0, 200)),
                  "a path within the repository");
  }
  const Json& size = sibling["size"];
  if (size.is_integer() && size.as_int() >= 0) {
    file.size = static_cast<uint64_t>(size.as_int());
  }
  const std::string digest = ToLowerAscii(sibling["lfs"]["sha256"].as_string());
  file.sha256 = IsSha256Hex(digest) ? digest : "";
  return file;
}

/// The GGUF models, each once; one whose parts are not all there is none.
std::vector<Candidate> FindCandidates(const std::vector<HubFile>& files) {
  std::map<std::string_view, const HubFile*> by_path;
  for (const HubFile& file : files) {
    by_path.emplace(file.path, &file);
  }
  std::vector<Candidate> candidates;
  for (const auto& [path, file] : by_path) {
    const Result<std::vector<std::string>> parts = PartsOf(file->path);
    if (!IsGgufModel(path) || !parts.ok() || parts->front() != path) {
      continue;
    }
    Candidate candidate;
    for (const std::string& part : *parts) {
      const auto found = by_path.find(part);
      if (found == by_path.end()) {
        break;
      }
      candidate.files.push_back(*found->second);
    }
    if (candidate.files.size() == parts->size()) {
      candidates.push_back(std::move(candidate));
    }
  }
  // A drafter beside models is none of them; alone it is what was meant.
  if (!std::all_of(candidates.begin(), candidates.end(), IsDrafter)) {
    std::erase_if(candidates, IsDrafter);
  }
  return candidates;
}

std::string ListOf(const std::vector<Candidate>& candidates) {
  std::string list;
  for (size_t i = 0; i < candidates.size() && i < kMaxListed; ++i) {
    const auto& files = candidates[i].files;
    list += (i == 0 ? "" : ", ") + files[0].path;
    uint64_t n_bytes = 0;
    bool is_known = true;
    for (const HubFile& file : files) {
      is_known = is_known && file.size.has_value() &&
                 !__builtin_add_overflow(n_bytes, file.size.value_or(0), &n_bytes);
    }
    if (is_known) {
      list += fmt::format(" ({:.2f} GB)", static_cast<double>(n_bytes) / 1e9);
    }
  }
  if (candidates.size() > kMaxListed) {
    list += fmt::format(" and {} more", candidates.size() - kMaxListed);
  }
  return list;
}

/// The files that a directory is loaded from.
Result<HubChoice> ChooseDirectory(const std::vector<HubFile>& files, const std::string& where) {
  constexpr std::array<std::string_view, 6> kBeside = {
      "config.json",           "tokenizer.json",
      "tokenizer_config.json", "generation_config.json",
      "chat_template.jinja",   "model.safetensors.index.json"};
  HubChoice choice;
  bool has_config = false;
  bool has_weights = false;
  for (const HubFile& file : files) {
    const bool is_weights = file.path.starts_with("model") && file.path.ends_with(".safetensors") &&
                            file.path.find('/') == std::string::npos;
    if (is_weights || std::find(kBeside.begin(), kBeside.end(), file.path) != kBeside.end()) {
      choice.files.push_back(file);
    }
    has_weights = has_weights || is_weights;
    has_config = has_config || file.path == "config.json";
  }
  if (!has_config || !has_weights) {
    return Refuse(where, fmt::format("{} files, none of them a model", files.size()),
                  "a .gguf file, or config.json and model*.safetensors");
  }
  return choice;
}

}  // namespace

Result<std::vector<HubFile>> ParseListing(std::string_view json, const std::string& where) {
  FACET_ASSIGN(const Json listing, ParseJson(json, where, {kMaxListingBytes, kMaxDepth}));
  const Json& siblings = listing["siblings"];
  if (!siblings.is_array()) {
    return Refuse(where + ": siblings", std::string(siblings.KindName()), "an array");
  }
  if (siblings.items().size() > kMaxFiles) {
    return Refuse(where + ": siblings", fmt::format("{} files", siblings.items().size()),
                  fmt::format("at most {}", kMaxFiles));
  }
  std::vector<HubFile> files;
  files.reserve(siblings.items().size());
  for (const Json& sibling : siblings.items()) {
    FACET_ASSIGN(HubFile file, ParseFile(sibling, where));
    files.push_back(std::move(file));
  }
  return files;
}

Result<HubChoice> ChooseModel(const std::vector<HubFile>& files, const std::string& tag,
                              const std::string& where) {
  const std::vector<Candidate> candidates = FindCandidates(files);
  if (candidates.empty() && tag.empty()) {
    return ChooseDirectory(files, where);
  }
  std::vector<const Candidate*> matching;
  for (const Candidate& candidate : candidates) {
    const bool is_only = tag.empty() && candidates.size() == 1;
    if (is_only || HasTag(candidate.files[0].path, tag.empty() ? kDefaultTag : tag)) {
      matching.push_back(&candidate);
    }
  }
  if (matching.size() != 1) {
    const std::string of_tag = tag.empty() ? "" : fmt::format(" with \"{}\"", tag);
    return Refuse(
        where,
        fmt::format("{} models{}", tag.empty() ? candidates.size() : matching.size(), of_tag),
        candidates.empty()
            ? "one"
            : fmt::format("one, by :TAG or /FILE; there are {}", ListOf(candidates)));
  }
  HubChoice choice;
  choice.files = matching[0]->files;
  choice.model = choice.files[0].path;
  choice.n_candidates = candidates.size();
  return choice;
}

}  // namespace facet
