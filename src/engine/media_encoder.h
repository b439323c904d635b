// SPDX-License-Identifier: Apache-2.0
// Between sequences and the encoders of the runner: what has been encoded is remembered by its
// content, so that a picture that comes again, in the next turn or from someone else, costs
// nothing. An item's soft tokens are the same bits whatever is encoded beside it, so remembering
// changes nothing.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "media/media_item.h"
#include "model/runner.h"

namespace facet {

/// [n_tokens, n_embd] of one item.
using SoftTokens = std::shared_ptr<const std::vector<float>>;

/// Used by one thread.
class MediaEncoder {
 public:
  /// Remembers up to `cache_bytes` of soft tokens, and forgets what was not used for the longest
  /// time. `runner` must outlive it.
  MediaEncoder(Runner* runner, int64_t cache_bytes);

  /// The soft tokens of each item, in their order. What is not remembered is encoded together; an
  /// item that cannot be has an error of its own.
  std::vector<Result<SoftTokens>> Encode(std::span<const MediaItem* const> items);

  [[nodiscard]] int64_t n_encoded() const { return n_encoded_; }        ///< items, since the start
  [[nodiscard]] int64_t n_remembered() const { return n_remembered_; }  ///< found in memory
  [[nodiscard]] int64_t n_bytes() const { return n_bytes_; }            ///< held in memory

 private:
  struct Entry {
    std::string hash;
    SoftTokens soft;
  };
  using Entries = std::list<Entry>;  // used last comes first

  std::vector<Result<SoftTokens>> Run(std::span<const MediaItem* const> items);
  SoftTokens Find(const std::string& hash);
  void Remember(const std::string& hash, SoftTokens soft);

  Runner* runner_;
  int64_t cache_bytes_;
  int64_t n_bytes_ = 0;
  int64_t n_encoded_ = 0;
  int64_t n_remembered_ = 0;
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_hash_;
};

}  // namespace facet
