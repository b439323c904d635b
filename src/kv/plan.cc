// SPDX-License-Identifier: Apache-2.0
#include "kv/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace facet {

namespace {

constexpr int64_t kMaxBlocks = std::numeric_limits<BlockId>::max();
constexpr int64_t kMaxCachedBlocks = int64_t{1} << 20;

Status CheckAtLeast(const char* what, int64_t value, int64_t least) {
  if (value < least) {
    return Refuse("KV plan", fmt::format("{} {}", what, value), fmt::format("at least {}", least));
  }
  return {};
}

Result<KvGroupPlan> PlanGroup(const char* name, int n_layers, int64_t bytes_per_block,
                              int64_t n_blocks) {
  if (n_blocks > kMaxBlocks) {
    return Refuse("KV plan", fmt::format("{} blocks of the {} layers", n_blocks, name),
                  fmt::format("at most {}", kMaxBlocks));
  }
  KvGroupPlan group{.n_layers = n_layers,
                    .bytes_per_block = bytes_per_block,
                    .n_blocks = static_cast<int>(n_blocks),
                    .bytes = 0};
  if (__builtin_mul_overflow(n_blocks, bytes_per_block, &group.bytes)) {
    return Refuse("KV plan", fmt::format("{} blocks of {} bytes", n_blocks, bytes_per_block),
                  "a total below 2^63 bytes");
  }
  return group;
}

int64_t SlidingBlocks(const KvPoolInput& input) {
  if (input.window == 0) {
    return 0;
  }
  const int64_t n_sequences = input.n_sequences;
  const int64_t whole = n_sequences * BlocksFor(input.n_context);
  // Each sequence's rows may begin one more block than they fill, hence the + 1.
  const int64_t moving =
      n_sequences * (int64_t{BlocksTouched(input.window)} + 1) + input.max_rows / kBlockPositions;
  return std::min(whole, moving);
}

/// Of each group.
int64_t CachedBlocks(const KvPoolInput& input) {
  // Unsigned: two of them cannot overflow.
  const uint64_t pair_bytes =
      static_cast<uint64_t>(input.full_bytes_per_block) +
      static_cast<uint64_t>(input.window > 0 ? input.sliding_bytes_per_block : 0);
  if (pair_bytes == 0) {
    return 0;
  }
  // A model whose keys and values are tiny needs no more than this either.
  return std::min(static_cast<int64_t>(static_cast<uint64_t>(input.cache_bytes) / pair_bytes),
                  kMaxCachedBlocks);
}

}  // namespace

Result<KvPoolPlan> PlanKvPools(const KvPoolInput& input) {
  FACET_RETURN_IF_ERROR(CheckAtLeast("context", input.n_context, 1));
  FACET_RETURN_IF_ERROR(CheckAtLeast("sequences", input.n_sequences, 1));
  FACET_RETURN_IF_ERROR(CheckAtLeast("rows of a step", input.max_rows, 1));
  FACET_RETURN_IF_ERROR(CheckAtLeast("window", input.window, 0));
  FACET_RETURN_IF_ERROR(CheckAtLeast("cache bytes", input.cache_bytes, 0));
  FACET_RETURN_IF_ERROR(CheckAtLeast("bytes of a sliding block", input.sliding_bytes_per_block, 0));
  FACET_RETURN_IF_ERROR(CheckAtLeast("bytes of a full block", input.full_bytes_per_block, 0));
  const int64_t n_cached = CachedBlocks(input);
  const int64_t n_cached_sliding = input.window > 0 ? n_cached : 0;
  KvPoolPlan plan;
  FACET_ASSIGN(plan.sliding,
               PlanGroup("sliding", input.n_sliding_layers, input.sliding_bytes_per_block,
                         SlidingBlocks(input) + n_cached_sliding));
  FACET_ASSIGN(plan.full,
               PlanGroup("full", input.n_full_layers, input.full_bytes_per_block,
                         int64_t{input.n_sequences} * BlocksFor(input.n_context) + n_cached));
  if (__builtin_add_overflow(plan.sliding.bytes, plan.full.bytes, &plan.bytes)) {
    return Refuse("KV plan", fmt::format("{} and {} bytes", plan.sliding.bytes, plan.full.bytes),
                  "a total below 2^63 bytes");
  }
  return plan;
}

}  // namespace facet
