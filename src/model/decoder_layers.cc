// SPDX-License-Identifier: Apache-2.0
#include "model/decoder_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "compute/thread_pool.h"
#include "quant/codec.h"

namespace facet {
namespace {

/// Decodes columns [begin, begin + n) of row `row`. Blocks that the columns only touch are decoded
/// whole.
void DecodeColumns(const WeightMatrix& w, int64_t row, int64_t begin, int64_t n, float* out) {
  const TensorTypeInfo info = InfoOf(w.type);
  const int64_t first_block = begin / info.block_elements;
  const int64_t end_block = (begin + n + info.block_elements - 1) / info.block_elements;
  const int64_t n_decoded = (end_block - first_block) * info.block_elements;
  const std::byte* blocks = w.row(row) + first_block * info.block_bytes;
  const Codec* codec = FindCodec(w.type);
  if (n_decoded == n) {
    codec->decode(blocks, n, out);
    return;
  }
  std::vector<float> decoded(static_cast<size_t>(n_decoded));
  codec->decode(blocks, n_decoded, decoded.data());
  std::copy_n(decoded.begin() + (begin - first_block * info.block_elements), n, out);
}

/// Moves row `from` of width n to place `to` <= `from`.
template <typename Vector>
void MoveRow(Vector* values, int64_t from, int64_t to, int64_t n) {
  std::copy_n(values->begin() + from * n, n, values->begin() + to * n);
}

/// The `n_used` experts of highest probability (ties: lower id), best first.
std::vector<int> TopExperts(const float* probability, int n_experts, int n_used) {
  std::vector<int> ids(static_cast<size_t>(n_experts));
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(), ids.begin() + n_used, ids.end(), [probability](int a, int b) {
    return probability[a] != probability[b] ? probability[a] > probability[b] : a < b;
  });
  ids.resize(static_cast<size_t>(n_used));
  return ids;
}

}  // namespace

DecoderLayers::DecoderLayers(const Config* config, const Weights* weights,
                             const ComputeContext& context, const KvStore* kv)
    : config_(*config), weights_(*weights), context_(context), kv_(*kv) {}

void DecoderLayers::EmitTap(std::string_view name, int layer, const AlignedVector<float>& values,
                            int64_t n_columns) const {
  if (tap_) {
    tap_(fmt::format("layer{}.{}", layer, name),
         std::span(values).first(static_cast<size_t>(n_rows() * n_columns)), n_rows());
  }
}

void DecoderLayers::Begin(std::vector<LayerRow> rows, std::span<const SequenceBlocks> sequences) {
  rows_ = std::move(rows);
  std::vector<int32_t> positions;
  positions.reserve(rows_.size());
  for (const LayerRow& row : rows_) {
    positions.push_back(row.pos);
  }
  rope_sliding_ = MakeRopeTable(context_, weights_.inverse_frequency_sliding, positions);
  rope_full_ = MakeRopeTable(context_, weights_.inverse_frequency_full, positions);
  blocks_ = {};
  for (const SequenceBlocks& sequence : sequences) {
    blocks_.sliding.push_back(AddressesOf(LayerKind::kSliding, sequence.sliding));
    blocks_.full.push_back(AddressesOf(LayerKind::kFull, sequence.full));
  }
  Reserve(&x_, n_rows() * config_.n_embd);
}

std::vector<std::byte*> DecoderLayers::AddressesOf(LayerKind group,
                                                   std::span<const BlockId> ids) const {
  std::vector<std::byte*> addresses;
  addresses.reserve(ids.size());
  for (const BlockId id : ids) {
    addresses.push_back(id == kNoBlock ? nullptr : kv_.block(group, id));
  }
  return addresses;
}

const std::vector<std::byte*>& DecoderLayers::BlocksOf(const LayerRow& row, bool is_full) const {
  return (is_full ? blocks_.full : blocks_.sliding)[static_cast<size_t>(row.sequence)];
}

void DecoderLayers::Run() {
  if (config_.n_embd_per_layer > 0) {
    const int64_t n = config_.n_embd;
    std::copy_n(x_.data(), n_rows() * n, Reserve(&embedded_, n_rows() * n));
    embedded_activations_.Set(embedded_.data(), n_rows(), n);
  }
  for (int l = 0; l < config_.n_layers && !rows_.empty(); ++l) {
    Layer(l);
  }
}

void DecoderLayers::Layer(int l) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  const int64_t n = config_.n_embd;
  float* h = Reserve(&h_, n_rows() * n);
  float* branch = Reserve(&branch_, n_rows() * n);

  RmsNorm(context_, x_.data(), {w.attn_norm.data(), config_.norm_eps}, n_rows(), n, h);
  activations_.Set(h, n_rows(), n);
  StoreKeysAndValues(l, &activations_);
  if (l + 1 == config_.first_shared_layer()) {
    KeepWantedRows();
    if (rows_.empty()) {
      return;
    }
  }
  Attend(l);
  RmsNorm(context_, branch, {w.post_attn_norm.data(), config_.norm_eps}, n_rows(), n, branch);
  Add(context_, branch, n_rows() * n, x_.data());
  EmitTap("after_attention", l, x_, n);

  FeedForward(l);
  RmsNorm(context_, branch, {w.post_ffn_norm.data(), config_.norm_eps}, n_rows(), n, branch);
  Add(context_, branch, n_rows() * n, x_.data());
  EmitTap("after_mlp", l, x_, n);

  if (config_.n_embd_per_layer > 0) {
    PerLayerInput(l);
  }
  Scale(context_, w.output_scale, n_rows() * n, x_.data());
  EmitTap("output", l, x_, n);
}

/// k = rope(rms(k_proj h)), v = rms0(v_proj h or the raw k) (reference.md 1.5), written into the
/// rows' blocks.
void DecoderLayers::StoreKeysAndValues(int l, Activations* h) {
  const LayerDesc& layer = config_.layers[static_cast<size_t>(l)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  if (l >= config_.first_shared_layer()) {
    return;
  }
  const bool is_full = layer.kind == LayerKind::kFull;
  const int64_t width = int64_t{layer.n_kv_heads} * layer.d_head;
  const int64_t n_vectors = n_rows() * layer.n_kv_heads;
  float* k = Reserve(&k_, n_rows() * width);
  float* v = Reserve(&v_, n_rows() * width);
  MatMul(context_, w.k, *h, k);
  if (layer.v_is_k) {
    std::copy_n(k, n_rows() * width, v);
  } else {
    MatMul(context_, w.v, *h, v);
  }
  RmsNorm(context_, k, {w.k_norm.data(), config_.norm_eps}, n_vectors, layer.d_head, k);
  Rope(context_, is_full ? rope_full_ : rope_sliding_, n_rows(), layer.n_kv_heads, layer.d_head, k);
  RmsNorm(context_, v, {nullptr, config_.norm_eps}, n_vectors, layer.d_head, v);
  EmitTap("k", l, k_, width);
  EmitTap("v", l, v_, width);

  StoreRows(l, k, v);
}

/// Rows stand at different positions, so threads write different slots.
void DecoderLayers::StoreRows(int l, const float* k, const float* v) {
  const KvLayout& layout = kv_.layout(l);
  const int64_t width = int64_t{layout.shape.n_kv_heads} * layout.shape.d_head;
  const bool is_full = config_.layers[static_cast<size_t>(l)].kind == LayerKind::kFull;
  constexpr int64_t kRowsPerThread = 32;
  context_.pool->RunRanges(n_rows(), kRowsPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const LayerRow& row = rows_[static_cast<size_t>(r)];
      const std::vector<std::byte*>& blocks = BlocksOf(row, is_full);
      const auto index = static_cast<size_t>(row.pos / kBlockPositions);
      FACET_CHECK(index < blocks.size() && blocks[index] != nullptr);
      StoreKv(layout, k + r * width, v + r * width, row.pos % kBlockPositions, blocks[index]);
    }
  });
}

/// All K and V of this batch are written: rows whose output nobody wants have nothing left to give.
void DecoderLayers::KeepWantedRows() {
  const int64_t n = config_.n_embd;
  int64_t kept = 0;
  for (int64_t r = 0; r < n_rows(); ++r) {
    if (!rows_[static_cast<size_t>(r)].is_wanted) {
      continue;
    }
    rows_[static_cast<size_t>(kept)] = rows_[static_cast<size_t>(r)];
    MoveRow(&x_, r, kept, n);
    MoveRow(&h_, r, kept, n);
    if (config_.n_embd_per_layer > 0) {
      MoveRow(&embedded_, r, kept, n);
    }
    for (RopeTable* table : {&rope_sliding_, &rope_full_}) {
      if (table->n_pairs > 0) {
        MoveRow(&table->cosine, r, kept, table->n_pairs);
        MoveRow(&table->sine, r, kept, table->n_pairs);
      }
    }
    ++kept;
  }
  if (kept == n_rows()) {
    return;
  }
  rows_.resize(static_cast<size_t>(kept));
  activations_.Set(h_.data(), kept, n);
  embedded_activations_.Set(embedded_.data(), kept, n);
}

/// branch = o_proj(attention(rope(rms(q_proj h)))). The K and V are those of the layer that the
/// table names.
void DecoderLayers::Attend(int l) {
  const LayerDesc& layer = config_.layers[static_cast<size_t>(l)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  const bool is_full = layer.kind == LayerKind::kFull;
  const int64_t width = int64_t{config_.n_heads} * layer.d_head;
  float* q = Reserve(&q_, n_rows() * width);
  float* heads = Reserve(&heads_, n_rows() * width);
  MatMul(context_, w.q, activations_, q);
  RmsNorm(context_, q, {w.q_norm.data(), config_.norm_eps}, n_rows() * config_.n_heads,
          layer.d_head, q);
  Rope(context_, is_full ? rope_full_ : rope_sliding_, n_rows(), config_.n_heads, layer.d_head, q);
  EmitTap("q", l, q_, width);

  std::vector<AttentionRow> attention_rows;
  attention_rows.reserve(rows_.size());
  for (int64_t r = 0; r < n_rows(); ++r) {
    const LayerRow& row = rows_[static_cast<size_t>(r)];
    const PositionRange& visible = is_full ? row.full : row.sliding;
    attention_rows.push_back(
        {q + r * width, heads + r * width, visible.begin, visible.end, BlocksOf(row, is_full)});
  }
  Attention(context_, kv_.layout(layer.kv_layer), config_.n_heads, attention_rows);
  EmitTap("heads", l, heads_, width);
  activations_.Set(heads, n_rows(), width);
  MatMul(context_, w.o, activations_, branch_.data());
}

/// branch = mlp(rms(x)), beside it the experts where there are some (reference.md 1.7, 1.8)
void DecoderLayers::FeedForward(int l) {
  const LayerDesc& layer = config_.layers[static_cast<size_t>(l)];
  const LayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  const int64_t n = config_.n_embd;
  const int64_t n_inner = n_rows() * layer.n_ff;
  float* gate = Reserve(&gate_, n_inner);
  float* up = Reserve(&up_, n_inner);
  RmsNorm(context_, x_.data(), {w.ffn_norm.data(), config_.norm_eps}, n_rows(), n, h_.data());
  activations_.Set(h_.data(), n_rows(), n);
  MatMul(context_, w.gate, activations_, gate);
  MatMul(context_, w.up, activations_, up);
  GeluMul(context_, gate, up, n_inner, gate);
  inner_activations_.Set(gate, n_rows(), layer.n_ff);
  MatMul(context_, w.down, inner_activations_, branch_.data());
  if (config_.n_experts > 0) {
    Experts(l);
    const MixtureWeights& m = w.mixture;
    RmsNorm(context_, branch_.data(), {m.post_norm_dense.data(), config_.norm_eps}, n_rows(), n,
            branch_.data());
    RmsNorm(context_, expert_sum_.data(), {m.post_norm_experts.data(), config_.norm_eps}, n_rows(),
            n, expert_sum_.data());
    Add(context_, expert_sum_.data(), n_rows() * n, branch_.data());
  }
}

/// expert_weight = the used experts' probabilities, renormalised, times per_expert_scale
/// (reference.md 1.8). The router reads the raw residual.
void DecoderLayers::Route(const MixtureWeights& w) {
  const int n_experts = config_.n_experts;
  RmsNorm(context_, x_.data(), {w.router_scale.data(), config_.norm_eps}, n_rows(), config_.n_embd,
          h_.data());
  float* router = Reserve(&router_, n_rows() * n_experts);
  float* weight = Reserve(&expert_weight_, n_rows() * n_experts);
  activations_.Set(h_.data(), n_rows(), config_.n_embd);
  MatMul(context_, w.router, activations_, router);
  Softmax(context_, router, n_rows(), n_experts, router);
  std::fill_n(weight, n_rows() * n_experts, 0.0F);
  for (int64_t r = 0; r < n_rows(); ++r) {
    const float* probability = router + r * n_experts;
    const std::vector<int> used = TopExperts(probability, n_experts, config_.n_experts_used);
    float sum = 0;
    for (const int e : used) {
      sum += probability[e];
    }
    for (const int e : used) {
      weight[r * n_experts + e] = probability[e] / sum * w.expert_scale[static_cast<size_t>(e)];
    }
  }
}

/// expert_sum = Σ_e weight_e · down_e(gelu(gate_e h) · up_e h), experts in ascending id. Each
/// expert runs once, over the rows that use it.
void DecoderLayers::Experts(int l) {
  const MixtureWeights& w = weights_.layers[static_cast<size_t>(l)].mixture;
  const int64_t n = config_.n_embd;
  Route(w);
  EmitTap("router_weights", l, expert_weight_, config_.n_experts);
  RmsNorm(context_, x_.data(), {w.pre_norm.data(), config_.norm_eps}, n_rows(), n, h_.data());
  activations_.Set(h_.data(), n_rows(), n);
  std::fill_n(Reserve(&expert_sum_, n_rows() * n), n_rows() * n, 0.0F);
  for (int e = 0; e < config_.n_experts; ++e) {
    expert_rows_.clear();
    for (int64_t r = 0; r < n_rows(); ++r) {
      if (expert_weight_[static_cast<size_t>(r * config_.n_experts + e)] != 0.0F) {
        expert_rows_.push_back(r);
      }
    }
    if (!expert_rows_.empty()) {
      Expert(w.experts[static_cast<size_t>(e)], e);
    }
  }
}

/// Expert `e` over expert_rows_, whose int8 form all experts share.
void DecoderLayers::Expert(const ExpertWeights& w, int e) {
  const auto n_users = static_cast<int64_t>(expert_rows_.size());
  const int64_t n = config_.n_embd;
  const int64_t n_inner = n_users * config_.n_ff_expert;
  float* gate = Reserve(&gate_, n_inner);
  float* up = Reserve(&up_, n_inner);
  float* down = Reserve(&expert_out_, n_users * n);
  expert_activations_.SetRowsOf(&activations_, expert_rows_);
  MatMul(context_, w.gate, expert_activations_, gate);
  MatMul(context_, w.up, expert_activations_, up);
  GeluMul(context_, gate, up, n_inner, gate);
  inner_activations_.Set(gate, n_users, config_.n_ff_expert);
  MatMul(context_, w.down, inner_activations_, down);
  AddWeightedRows(context_, down, expert_rows_, {expert_weight_.data() + e, config_.n_experts}, n,
                  expert_sum_.data());
}

/// x += rms(proj(gelu(gate x) · ple_l)), where ple_l = (rms(proj_l embedded · n_embd^-1/2) +
/// E_l[token] · sqrt(P)) / sqrt(2) (reference.md 1.2, 1.4). Computed layer by layer, so that rows
/// that stop early never pay for later layers.
void DecoderLayers::PerLayerInput(int l) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(l)];
  const int64_t n = config_.n_embd;
  const int64_t width = config_.n_embd_per_layer;
  float* ple = Reserve(&ple_, n_rows() * width);
  float* token = Reserve(&ple_token_, n_rows() * width);
  MatMul(context_, w.ple_model_proj, embedded_activations_, ple);
  Scale(context_, 1.0F / std::sqrt(static_cast<float>(n)), n_rows() * width, ple);
  RmsNorm(context_, ple, {weights_.ple_proj_norm.data(), config_.norm_eps}, n_rows(), width, ple);
  for (int64_t r = 0; r < n_rows(); ++r) {
    const int64_t id = rows_[static_cast<size_t>(r)].per_layer_token;
    DecodeColumns(weights_.ple_token_embd, id, l * width, width, token + r * width);
  }
  Scale(context_, std::sqrt(static_cast<float>(width)), n_rows() * width, token);
  AddScale(context_, ple, token, 1.0F / std::sqrt(2.0F), n_rows() * width, ple);
  EmitTap("ple", l, ple_, width);

  float* gate = Reserve(&gate_, n_rows() * width);
  activations_.Set(x_.data(), n_rows(), n);
  MatMul(context_, w.ple_gate, activations_, gate);
  GeluMul(context_, gate, ple, n_rows() * width, gate);
  inner_activations_.Set(gate, n_rows(), width);
  MatMul(context_, w.ple_proj, inner_activations_, branch_.data());
  RmsNorm(context_, branch_.data(), {w.ple_norm.data(), config_.norm_eps}, n_rows(), n,
          branch_.data());
  Add(context_, branch_.data(), n_rows() * n, x_.data());
}

}  // namespace facet
