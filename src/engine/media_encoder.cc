// SPDX-License-Identifier: Apache-2.0
#include "engine/media_encoder.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace facet {
namespace {

int64_t BytesOf(const SoftTokens& soft) {
  return static_cast<int64_t>(soft->size() * sizeof(float));
}

}  // namespace

MediaEncoder::MediaEncoder(Runner* runner, int64_t cache_bytes)
    : runner_(runner), cache_bytes_(cache_bytes) {}

std::vector<Result<SoftTokens>> MediaEncoder::Encode(std::span<const MediaItem* const> items) {
  std::vector<const MediaItem*> missing;
  std::unordered_map<std::string, SoftTokens> known;
  for (const MediaItem* item : items) {
    const auto [place, is_new] = known.try_emplace(item->hash);
    if (!is_new) {
      continue;
    }
    place->second = Find(item->hash);
    if (place->second == nullptr) {
      missing.push_back(item);
    }
  }
  const std::vector<Result<SoftTokens>> encoded = Run(missing);
  std::unordered_map<std::string, Error> errors;
  for (size_t n = 0; n < missing.size(); ++n) {
    if (encoded[n].ok()) {
      known[missing[n]->hash] = *encoded[n];
      Remember(missing[n]->hash, *encoded[n]);
    } else {
      errors[missing[n]->hash] = encoded[n].error();
    }
  }
  std::vector<Result<SoftTokens>> results;
  results.reserve(items.size());
  for (const MediaItem* item : items) {
    const auto error = errors.find(item->hash);
    results.push_back(error == errors.end() ? Result<SoftTokens>(known[item->hash])
                                            : Result<SoftTokens>(error->second));
  }
  return results;
}

/// Encodes all together; when that fails, one by one, so that an item that cannot be encoded takes
/// no other with it.
std::vector<Result<SoftTokens>> MediaEncoder::Run(std::span<const MediaItem* const> items) {
  std::vector<Result<SoftTokens>> results;
  if (items.empty()) {
    return results;
  }
  results.reserve(items.size());
  const auto soft = runner_->Encode(items);
  if (!soft.ok()) {
    if (items.size() == 1) {
      results.emplace_back(soft.error());
      return results;
    }
    for (size_t n = 0; n < items.size(); ++n) {
      results.push_back(Run(items.subspan(n, 1)).front());
    }
    return results;
  }
  const auto n_embd = static_cast<std::ptrdiff_t>(runner_->info().n_embd);
  auto begin = soft->begin();
  for (const MediaItem* item : items) {
    FACET_CHECK(soft->end() - begin >= item->n_tokens * n_embd);
    const auto end = begin + item->n_tokens * n_embd;
    results.emplace_back(std::make_shared<const std::vector<float>>(begin, end));
    begin = end;
    ++n_encoded_;
  }
  return results;
}

SoftTokens MediaEncoder::Find(const std::string& hash) {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  ++n_remembered_;
  return found->second->soft;
}

void MediaEncoder::Remember(const std::string& hash, SoftTokens soft) {
  n_bytes_ += BytesOf(soft);
  entries_.push_front({hash, std::move(soft)});
  by_hash_[hash] = entries_.begin();
  while (n_bytes_ > cache_bytes_) {
    n_bytes_ -= BytesOf(entries_.back().soft);
    by_hash_.erase(entries_.back().hash);
    entries_.pop_back();
  }
}

}  // namespace facet
