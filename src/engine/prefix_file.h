// SPDX-License-Identifier: Apache-2.0
// The prefix tree on disk, keys and values included, so that a server finds after a restart what it
// had computed before. docs/prefix-cache.md has the format. A file fits one model, one type of keys
// and values and one way to lay them out; whatever does not fit, or is not whole, is refused before
// anything is taken from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kv/prefix_tree.h"
#include "model/runner.h"

namespace facet {

/// What a file must fit.
struct PrefixFileKey {
  std::string model;    ///< differs between models whose keys and values differ
  std::string kv_type;  ///< how they are stored
  int window = 0;       ///< of the sliding layers; 0: there are none
  int n_vocab = 0;
  uint64_t full_block_bytes = 0;
  uint64_t sliding_block_bytes = 0;  ///< 0 without sliding layers
};

/// The key of what this runner computes.
PrefixFileKey PrefixFileKeyOf(std::string model, std::string kv_type, Runner* runner);

/// Writes the tree and its blocks. The file appears under its name when it is complete and on the
/// disk; until then, and after an error or a kill, what was there stays. Blocks go to the file
/// straight from the runner's memory.
Status SavePrefixFile(const std::string& path, const PrefixFileKey& key, const PrefixTree& tree,
                      Runner* runner);

/// Where blocks are put that come from a file.
struct PrefixFileTarget {
  PrefixTree* tree;  ///< empty
  BlockPool* sliding;
  BlockPool* full;
  Runner* runner;
};

/// Fills the tree; the number of nodes is returned. Takes free blocks of the pools only; when there
/// are too few, what was used last is kept. After an Error tree and pools are as before.
Result<int> LoadPrefixFile(const std::string& path, const PrefixFileKey& key,
                           const PrefixFileTarget& target);

/// A node as it stands in a file.
struct StoredPrefix {
  PrefixRecord record;                 ///< without blocks
  std::span<const std::byte> full;     ///< [full_block_bytes]
  std::span<const std::byte> sliding;  ///< [sliding_block_bytes], if it `has_sliding`
  bool has_sliding = false;
};

/// Reads a whole file's bytes, which the nodes refer to. `name` is what errors call it. The nodes
/// have the form that PrefixTree::Import wants, and all tokens are of the vocabulary.
Result<std::vector<StoredPrefix>> ParsePrefixFile(std::span<const std::byte> bytes,
                                                  const std::string& name,
                                                  const PrefixFileKey& key);

}  // namespace facet
