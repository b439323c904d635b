// SPDX-License-Identifier: Apache-2.0
// The names that models have on the network, and where in the cache each of them lies. Text only:
// nothing here opens a file or a connection. Names may come from anywhere, so a path made of one
// never leaves the cache.
//
//   https://HOST/PATH/FILE                    a file by its URL (http too)
//   hf:OWNER/REPOSITORY[@REVISION]/FILE       a file of a repository
//   hf:OWNER/REPOSITORY[@REVISION][:TAG]      the repository's model, or the one whose file name
//                                             has TAG (Q4_K_M) in it
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace facet {

/// A file by its URL, or what of a repository.
struct ModelName {
  std::string url = {};  ///< of the first form; empty for the others
  std::string owner = {};
  std::string repository = {};
  std::string revision = "main";
  std::string file = {};  ///< path within the repository; empty: to be chosen
  std::string tag = {};   ///< only without a file

  bool operator==(const ModelName&) const = default;
};

/// Whether `text` begins like a name of the network and not like a path.
bool IsModelName(std::string_view text);

Result<ModelName> ParseModelName(std::string_view text);

/// A URL taken apart, as far as paths of the cache and the token need it.
struct Url {
  std::string scheme;     ///< "http" or "https"
  std::string authority;  ///< lower-case host, with ":PORT" when one is given
  std::string path;       ///< begins with '/'
  std::string query;      ///< without '?'

  [[nodiscard]] std::string Origin() const { return scheme + "://" + authority; }
};

/// Refuses other schemes, user names in the URL, fragments, spaces and controls, and more than 4096
/// bytes. `where` is what errors call it.
Result<Url> ParseUrl(std::string_view text, const std::string& where);

/// Whether `path` is relative, not longer than a file system takes, and stays within its folder:
/// no empty, "." or ".." parts, no backslash, no control character, UTF-8. Names of unfinished
/// downloads (.part, .part.json) are not safe either.
bool IsSafeRelativePath(std::string_view path);

/// Path below the cache, of the file that a URL names, of a repository's folder, and of the record
/// of what was chosen from a repository for a name without a file. Different names never share a
/// path.
Result<std::string> CachePathOfUrl(const std::string& url);
std::string CachePathOfRepository(const ModelName& name, const Url& endpoint);
std::string CachePathOfChoice(const ModelName& name, const Url& endpoint);

/// `name` must be of a repository.
std::string FileUrl(const ModelName& name, const std::string& file, const std::string& endpoint);
std::string ListingUrl(const ModelName& name, const std::string& endpoint);

/// The parts of a split model (NAME-00001-of-0000N.gguf) that `file` is one of, in order; for any
/// other file itself alone. Works on paths, and on URLs without a query.
Result<std::vector<std::string>> PartsOf(const std::string& file);

}  // namespace facet
