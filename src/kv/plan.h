// SPDX-License-Identifier: Apache-2.0
// How many blocks a context takes, and how many bytes that is: computed before anything is loaded,
// printed by `facet inspect`, and the same arithmetic that admission counts with. Pure integers;
// what one block weighs follows from the layers and the KV type and is computed elsewhere.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kv/block_pool.h"

namespace facet {

/// Blocks that hold `n_positions` positions from 0 on.
constexpr int BlocksFor(int n_positions) {
  return n_positions / kBlockPositions + (n_positions % kBlockPositions != 0 ? 1 : 0);
}

/// The most blocks that `n_positions` neighbouring positions touch, wherever they begin: a partial
/// one at each end.
constexpr int BlocksTouched(int n_positions) {
  return n_positions == 0 ? 0
                          : (n_positions - 1) / kBlockPositions +
                                ((n_positions - 1) % kBlockPositions != 0 ? 1 : 0) + 1;
}

/// The first position that the next row of a sequence with `n_computed` positions can still see on
/// a sliding layer (a row at q sees k > q - window). All before it is done with.
constexpr int FirstVisible(int n_computed, int window) {
  return n_computed < window ? 0 : n_computed - window + 1;
}

/// One group of layers.
struct KvGroupPlan {
  int n_layers = 0;             ///< that write K/V; layers that share another's count nowhere
  int64_t bytes_per_block = 0;  ///< K and V of kBlockPositions positions, all n_layers
  int n_blocks = 0;
  int64_t bytes = 0;  ///< n_blocks * bytes_per_block
};

struct KvPoolPlan {
  KvGroupPlan sliding;  ///< no blocks without sliding layers
  KvGroupPlan full;
  int64_t bytes = 0;
};

struct KvPoolInput {
  int n_sliding_layers = 0;
  int64_t sliding_bytes_per_block = 0;
  int n_full_layers = 0;
  int64_t full_bytes_per_block = 0;
  int window = 0;           ///< 0: no sliding layers
  int n_context = 0;        ///< positions of one sequence
  int n_sequences = 1;      ///< at once
  int max_rows = 512;       ///< of one step, all sequences together
  int64_t cache_bytes = 0;  ///< for what no sequence uses any more (kv/prefix_tree.h)
};

/// Full group: the whole context of every sequence. Sliding group: of every sequence the window, a
/// partial block at each end and one that its rows may begin, and once the rows of a step, which
/// the sequences share; or the whole context where that is less. The cache: as many blocks of both
/// groups, since a position is found again only with both. Refused where a count or the bytes
/// overflow, or a number makes no sense.
Result<KvPoolPlan> PlanKvPools(const KvPoolInput& input);

}  // namespace facet
