// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix_cache.h"

#include <cstring>

#include "base/check.h"
#include "engine/prefix_file.h"

namespace facet {

PrefixCache::PrefixCache(Runner* runner, BlockPool* sliding, BlockPool* full, int window)
    : runner_(runner),
      sliding_pool_(sliding),
      full_pool_(full),
      tree_(sliding, full, window),
      window_(window) {}

PrefixMatch PrefixCache::Match(const Sequence& sequence) const {
  const Request& request = sequence.request();
  if (!request.reuses_prefix) {
    return {};
  }
  const auto match = [&](int n_most) {
    return tree_.Match(request.cache_salt, sequence.units(), n_most);
  };
  PrefixMatch found = match(OutsideSpans(sequence.spans(), sequence.state().n_tokens - 1));
  while (OutsideSpans(sequence.spans(), found.n_positions) < found.n_positions) {
    found = match(OutsideSpans(sequence.spans(), found.n_positions));
  }
  return found;
}

void PrefixCache::Resume(std::span<Newcomer> newcomers) {
  // All take hold of their blocks before one of them makes room for a copy.
  for (auto& [sequence, match] : newcomers) {
    sequence->table(KvGroup::kFull).Share(match.full);
    if (window_ > 0) {
      sequence->table(KvGroup::kSliding).Share(match.sliding);
    }
    sequence->Resume(match.n_positions);
    tree_.Touch(sequence->request().cache_salt, sequence->units(), match.n_positions);
  }
  for (auto& [sequence, match] : newcomers) {
    if (match.n_positions % kBlockPositions == 0) {
      continue;
    }
    OwnLastBlock(KvGroup::kFull, match.n_positions, sequence);
    if (window_ > 0) {
      OwnLastBlock(KvGroup::kSliding, match.n_positions, sequence);
    }
  }
}

/// The sequence will write into the rest of its last, partial block, which is shared: it gets a
/// copy.
void PrefixCache::OwnLastBlock(KvGroup group, int n_positions, Sequence* sequence) {
  BlockPool& pool = group == KvGroup::kFull ? *full_pool_ : *sliding_pool_;
  BlockTable& table = sequence->table(group);
  const BlockId shared = table.blocks().back();
  pool.AddRef(shared);
  table.Truncate(n_positions / kBlockPositions * kBlockPositions);
  const bool has_room = pool.n_free() > 0 || tree_.MakeRoom(group, 1);
  if (!has_room) {
    // The plan counted a block for the copy, so the shared one itself is what is left: only the
    // tree and we hold it. It becomes the sequence's own as it is.
    pool.Release(shared);
    FACET_CHECK(tree_.MakeRoom(group, 1));
    FACET_CHECK(table.Grow(n_positions) && table.blocks().back() == shared);
    return;
  }
  FACET_CHECK(table.Grow(n_positions));
  const std::span<const std::byte> from = runner_->block(group, shared);
  std::memcpy(runner_->block(group, table.blocks().back()).data(), from.data(), from.size());
  pool.Release(shared);
}

void PrefixCache::Leave(bool is_ending, Sequence* sequence) {
  const Request& request = sequence->request();
  if (!request.reuses_prefix) {
    return;
  }
  const auto n_computed = static_cast<size_t>(sequence->state().n_computed);
  tree_.Insert(request.cache_salt, sequence->units().first(n_computed), is_ending,
               &sequence->table(KvGroup::kSliding), &sequence->table(KvGroup::kFull));
}

Status PrefixCache::Save(const std::string& path, const std::string& model,
                         const std::string& kv_type) {
  return SavePrefixFile(path, PrefixFileKeyOf(model, kv_type, runner_), tree_, runner_);
}

Result<int> PrefixCache::Load(const std::string& path, const std::string& model,
                              const std::string& kv_type) {
  return LoadPrefixFile(path, PrefixFileKeyOf(model, kv_type, runner_),
                        {&tree_, sliding_pool_, full_pool_, runner_});
}

void PrefixCache::MakeRoom(int n_positions, Sequence* sequence) {
  const auto make_room = [&](KvGroup group, const BlockPool& pool) {
    const int n_blocks = sequence->table(group).BlocksToGrow(n_positions);
    FACET_CHECK(pool.n_free() >= n_blocks || tree_.MakeRoom(group, n_blocks));
  };
  make_room(KvGroup::kFull, *full_pool_);
  if (window_ > 0) {
    make_room(KvGroup::kSliding, *sliding_pool_);
  }
}

}  // namespace facet
