// SPDX-License-Identifier: Apache-2.0
#include "model/kv_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace facet {

// Two layers that may not know each other count positions in the same blocks.
static_assert(kKvBlockPositions == kBlockPositions);
Result<KvPoolPlan> PlanKv(const Config& config, const RunnerOptions& options) {
  const int n_context = options.n_context > 0 ? options.n_context : config.n_context;
  if (n_context > config.n_context) {
    return Refuse("context", fmt::format("{} positions", n_context),
                  fmt::format("at most {}, what {} was made for", config.n_context, config.name));
  }
  KvPoolInput input;
  input.n_context = n_context;
  input.n_sequences = options.n_sequences;
  // A step takes the last of its pictures whole.
  input.max_rows = options.max_rows + (options.media == nullptr ? 0 : kMostItemTokens);
  input.cache_bytes = options.cache_bytes;
  input.window = config.has_sliding_layers() ? config.sliding_window : 0;
  for (int l = 0; l < config.n_layers; ++l) {
    const LayerDesc& layer = config.layers[static_cast<size_t>(l)];
    if (layer.kv_layer != l) {
      continue;
    }
    if (options.kv_type == KvType::kQ8_0 && layer.d_head % 32 != 0) {
      return Refuse("KV type q8_0", fmt::format("head size {} in layer {}", layer.d_head, l),
                    "a multiple of 32");
    }
    const auto bytes = static_cast<int64_t>(
        2 * KvHalfBlockBytes(options.kv_type, {layer.n_kv_heads, layer.d_head}));
    const bool is_full = layer.kind == LayerKind::kFull;
    (is_full ? input.full_bytes_per_block : input.sliding_bytes_per_block) += bytes;
    (is_full ? input.n_full_layers : input.n_sliding_layers) += 1;
  }
  FACET_ASSIGN(const KvPoolPlan plan, PlanKvPools(input));
  // Beyond it a number is wrong, not a machine large.
  constexpr int64_t kMaxPlanBytes = int64_t{1} << 44;
  if (plan.bytes > kMaxPlanBytes) {
    return Refuse("KV memory",
                  fmt::format("{} GiB for {} sequences of {} positions", plan.bytes >> 30,
                              options.n_sequences, n_context),
                  fmt::format("at most {} GiB", kMaxPlanBytes >> 30));
  }
  return plan;
}

Result<KvStore::Pool> KvStore::MakePool(const KvGroupPlan& group) {
  Pool pool;
  pool.n_blocks = group.n_blocks;
  pool.block_bytes = static_cast<size_t>(group.bytes_per_block);
  // A group without layers has blocks of no bytes: they only count positions.
  FACET_ASSIGN(pool.memory, PageMemory::Allocate(static_cast<size_t>(group.bytes),
                                                 "keys and values (-c takes fewer positions)"));
  return pool;
}

Result<KvStore> KvStore::Allocate(const Config& config, KvType type, const KvPoolPlan& plan) {
  KvStore store;
  size_t full_end = 0;
  size_t sliding_end = 0;
  for (int l = 0; l < config.n_layers; ++l) {
    const LayerDesc& layer = config.layers[static_cast<size_t>(l)];
    if (layer.kv_layer != l) {
      store.layouts_.push_back(store.layouts_[static_cast<size_t>(layer.kv_layer)]);
      continue;
    }
    size_t& end = layer.kind == LayerKind::kFull ? full_end : sliding_end;
    const KvShape shape = {layer.n_kv_heads, layer.d_head};
    const size_t half = KvHalfBlockBytes(type, shape);
    store.layouts_.push_back({type, shape, end, end + half});
    end += 2 * half;
  }
  FACET_CHECK(static_cast<int64_t>(full_end) == plan.full.bytes_per_block);
  FACET_CHECK(static_cast<int64_t>(sliding_end) == plan.sliding.bytes_per_block);
  FACET_ASSIGN(store.sliding_, MakePool(plan.sliding));
  FACET_ASSIGN(store.full_, MakePool(plan.full));
  return store;
}

std::byte* KvStore::block(LayerKind group, BlockId id) const {
  const Pool& pool = group == LayerKind::kFull ? full_ : sliding_;
  FACET_CHECK(id >= 0 && id < pool.n_blocks);
  return pool.memory.data() + static_cast<size_t>(id) * pool.block_bytes;
}

}  // namespace facet
