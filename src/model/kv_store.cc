// SPDX-License-Identifier: Apache-2.0
#include "model/kv_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace facet {
namespace {

/// Positions rounded up to whole blocks.
int64_t BlocksFor(int64_t n_positions) {
  return (n_positions + kBlockPositions - 1) / kBlockPositions;
}

/// Most memory that a plan may ask for: beyond it a number is wrong, not a machine large.
constexpr int64_t kMaxPlanBytes = int64_t{1} << 44;

}  // namespace

Result<KvPlan> PlanKv(const Config& config, const RunnerOptions& options) {
  KvPlan plan;
  plan.n_context = options.n_context > 0 ? options.n_context : config.n_context;
  if (plan.n_context > config.n_context) {
    return Refuse("context", fmt::format("{} positions", plan.n_context),
                  fmt::format("at most {}, what {} was made for", config.n_context, config.name));
  }
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
    (is_full ? plan.full_block_bytes : plan.sliding_block_bytes) += bytes;
    (is_full ? plan.n_full_layers : plan.n_sliding_layers) += 1;
  }
  const int64_t n_context_blocks = BlocksFor(plan.n_context);
  // What a sliding layer sees, the rows of one step, and a partial block at each end.
  const int64_t n_window_blocks = BlocksFor(int64_t{config.sliding_window} + options.max_rows) + 1;
  const int64_t n_sequences = options.n_sequences;
  const int64_t n_full = plan.n_full_layers > 0 ? n_context_blocks * n_sequences : 0;
  const int64_t n_sliding =
      plan.n_sliding_layers > 0 ? std::min(n_context_blocks, n_window_blocks) * n_sequences : 0;
  const double total =
      static_cast<double>(n_full) * static_cast<double>(plan.full_block_bytes) +
      static_cast<double>(n_sliding) * static_cast<double>(plan.sliding_block_bytes);
  if (n_full > INT32_MAX || n_sliding > INT32_MAX || total > static_cast<double>(kMaxPlanBytes)) {
    return Refuse("KV memory",
                  fmt::format("{:.0f} GiB for {} sequences of {} positions", total / (1 << 30),
                              n_sequences, plan.n_context),
                  fmt::format("at most {} GiB", kMaxPlanBytes >> 30));
  }
  plan.n_full_blocks = static_cast<int>(n_full);
  plan.n_sliding_blocks = static_cast<int>(n_sliding);
  return plan;
}

KvStore::Pool KvStore::MakePool(int n_blocks, int64_t block_bytes) {
  Pool pool;
  pool.n_blocks = n_blocks;
  pool.block_bytes = static_cast<size_t>(block_bytes);
  if (n_blocks > 0) {
    pool.memory.reset(
        static_cast<std::byte*>(std::calloc(static_cast<size_t>(n_blocks), pool.block_bytes)));
    FACET_CHECK(pool.memory != nullptr);
  }
  return pool;
}

KvStore::KvStore(const Config& config, KvType type, const KvPlan& plan) : type_(type) {
  size_t full_end = 0;
  size_t sliding_end = 0;
  for (int l = 0; l < config.n_layers; ++l) {
    const LayerDesc& layer = config.layers[static_cast<size_t>(l)];
    if (layer.kv_layer != l) {
      places_.push_back(places_[static_cast<size_t>(layer.kv_layer)]);
      continue;
    }
    size_t& end = layer.kind == LayerKind::kFull ? full_end : sliding_end;
    const size_t half = KvHalfBlockBytes(type, {layer.n_kv_heads, layer.d_head});
    places_.push_back({layer.kind, end, end + half});
    end += 2 * half;
  }
  FACET_CHECK(static_cast<int64_t>(full_end) == plan.full_block_bytes);
  FACET_CHECK(static_cast<int64_t>(sliding_end) == plan.sliding_block_bytes);
  sliding_ = MakePool(plan.n_sliding_blocks, plan.sliding_block_bytes);
  full_ = MakePool(plan.n_full_blocks, plan.full_block_bytes);
}

std::byte* KvStore::block(LayerKind group, BlockId id) const {
  const Pool& pool = group == LayerKind::kFull ? full_ : sliding_;
  FACET_CHECK(id >= 0 && id < pool.n_blocks);
  return pool.memory.get() + static_cast<size_t>(id) * pool.block_bytes;
}

}  // namespace facet
