// SPDX-License-Identifier: Apache-2.0
// Between running sequences and the prefix tree: a sequence leaves in it what it has computed, and
// a new one takes up what is there of its own beginning. Since the numbers of a position depend on
// what stands before it and on nothing else, a reply is the same with and without.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/sequence.h"
#include "kv/prefix_tree.h"
#include "model/runner.h"

namespace facet {

/// Of one EngineCore. The scheduler counts blocks as if each sequence had its own; they are shared
/// in truth, and what nobody uses gives way. So whatever it plans can be had.
class PrefixCache {
 public:
  struct Newcomer {
    Sequence* sequence;
    PrefixMatch match;
  };

  /// `runner` and the pools must outlive it.
  PrefixCache(Runner* runner, BlockPool* sliding, BlockPool* full, int window);

  /// What the sequence could start with. At least its last token is left to be computed.
  [[nodiscard]] PrefixMatch Match(const Sequence& sequence) const;
  /// The sequences start with these; all that are admitted in a step together.
  void Resume(std::span<Newcomer> newcomers);
  /// Leaves whole blocks that the sequence has computed; when it `is_ending`, the partial one too.
  /// To be called before the window's passed blocks are dropped.
  void Leave(bool is_ending, Sequence* sequence);
  /// Evicts until the sequence can grow to `n_positions`; the blocks are there, as the plan counted
  /// them.
  void MakeRoom(int n_positions, Sequence* sequence);

  /// See prefix_file.h.
  Status Save(const std::string& path, const std::string& model, const std::string& kv_type);
  /// Into an empty tree.
  Result<int> Load(const std::string& path, const std::string& model, const std::string& kv_type);

  [[nodiscard]] PrefixTree& tree() { return tree_; }

 private:
  void OwnLastBlock(KvGroup group, int n_positions, Sequence* sequence);

  Runner* runner_;
  BlockPool* sliding_pool_;
  BlockPool* full_pool_;
  PrefixTree tree_;
  int window_;
};

}  // namespace facet
