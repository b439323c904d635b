// SPDX-License-Identifier: Apache-2.0
// Reads any text as the name of a model and as a repository's listing. Whatever is accepted must
// lead to paths that stay within the cache.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/hub.h"
#include "net/model_name.h"

namespace {

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void ReadName(std::string_view text) {
  const auto name = facet::ParseModelName(text);
  if (!name.ok()) {
    return;
  }
  if (!name->url.empty()) {
    const auto path = facet::CachePathOfUrl(name->url);
    Require(path.ok() && (path->size() > 1000 || facet::IsSafeRelativePath(*path)));
    return;
  }
  const auto endpoint = facet::ParseUrl("https://huggingface.co", "endpoint");
  Require(endpoint.ok());
  Require(facet::IsSafeRelativePath(facet::CachePathOfRepository(*name, *endpoint)));
  Require(facet::ParseUrl(facet::ListingUrl(*name, endpoint->Origin()), "listing").ok());
  if (!name->file.empty()) {
    Require(facet::ParseUrl(facet::FileUrl(*name, name->file, endpoint->Origin()), "file").ok());
    const auto parts = facet::PartsOf(name->file);
    Require(!parts.ok() || facet::IsSafeRelativePath(parts->front()));
  }
}

void ReadListing(std::string_view text) {
  const auto files = facet::ParseListing(text, "listing");
  if (!files.ok()) {
    return;
  }
  for (const char* tag : {"", "Q4_K_M"}) {
    const auto choice = facet::ChooseModel(*files, tag, "listing");
    if (choice.ok()) {
      Require(!choice->files.empty());
      Require(choice->model.empty() || choice->model == choice->files[0].path);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadName(text);
  ReadListing(text);
  return 0;
}
