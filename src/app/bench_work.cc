// SPDX-License-Identifier: Apache-2.0
#include "app/bench_work.h"

#include <algorithm>

namespace facet {
namespace {

double VisiblePositions(const LayerDesc& layer, const Config& config, int pos) {
  return layer.kind == LayerKind::kFull ? pos + 1 : std::min(pos + 1, config.sliding_window);
}

/// Weights that a row meets for the keys and values of a layer.
double KvProducts(const LayerDesc& layer, const Config& config) {
  const double n_outputs = static_cast<double>(layer.n_kv_heads) * layer.d_head;
  return n_outputs * config.n_embd * (layer.v_is_k ? 1 : 2);
}

/// Weights that a row meets in the rest of a layer.
double RestProducts(const LayerDesc& layer, const Config& config) {
  const double n_embd = config.n_embd;
  const double attention = 2 * n_embd * config.n_heads * layer.d_head;
  const double mlp = 3 * n_embd * layer.n_ff;
  const double experts =
      n_embd * config.n_experts + 3 * n_embd * config.n_experts_used * config.n_ff_expert;
  const double per_layer_input = 3 * n_embd * config.n_embd_per_layer;
  return attention + mlp + (config.n_experts > 0 ? experts : 0) + per_layer_input;
}

/// Multiplications of one row.
double RowProducts(const Config& config, int pos, bool wants_logits) {
  double n = wants_logits ? static_cast<double>(config.n_vocab) * config.n_embd : 0;
  const int last_kv_layer = config.first_shared_layer() - 1;
  for (int l = 0; l < config.n_layers; ++l) {
    const LayerDesc& layer = config.layers[static_cast<size_t>(l)];
    if (layer.kv_layer == l) {
      n += KvProducts(layer, config);
    }
    if (l < last_kv_layer || wants_logits) {
      n += RestProducts(layer, config) +
           2.0 * config.n_heads * layer.d_head * VisiblePositions(layer, config, pos);
    }
  }
  return n;
}

/// Keys and values that one row reads.
double RowKvBytes(const Config& config, KvType kv_type, int pos) {
  double n_bytes = 0;
  for (const LayerDesc& layer : config.layers) {
    const size_t block = 2 * KvHalfBlockBytes(kv_type, {layer.n_kv_heads, layer.d_head});
    n_bytes +=
        static_cast<double>(block) / kKvBlockPositions * VisiblePositions(layer, config, pos);
  }
  return n_bytes;
}

}  // namespace

BenchWork WorkOf(const BenchCase& bench, const Config& config, KvType kv_type, double step_bytes) {
  double n_products = 0;
  for (int pos = 0; pos < bench.n_prompt; ++pos) {
    n_products += RowProducts(config, pos, pos == bench.n_prompt - 1);
  }
  double n_bytes = step_bytes * bench.n_gen;
  for (int pos = bench.n_depth; pos < bench.n_depth + bench.n_gen; ++pos) {
    n_products += bench.n_sequences * RowProducts(config, pos, true);
    n_bytes += bench.n_sequences * RowKvBytes(config, kv_type, pos);
  }
  return {.operations = 2 * n_products, .bytes = n_bytes};
}

BenchLimit LimitOf(const BenchWork& work, const MachineRates& rates, double seconds) {
  const double memory_s = work.bytes / rates.read_bytes;
  const double arithmetic_s = work.operations / rates.operations;
  return {.is_memory = memory_s >= arithmetic_s,
          .share = std::max(memory_s, arithmetic_s) / seconds};
}

}  // namespace facet
