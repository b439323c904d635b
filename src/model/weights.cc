// SPDX-License-Identifier: Apache-2.0
#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "base/log.h"
#include "model/tensor_binder.h"

namespace facet {
namespace {

/// Frequency factors in files at or above this stand for "does not turn" (written as 1e30).
constexpr float kStillFactor = 1e20F;

constexpr std::array<std::string_view, 8> kGlobalNames = {"token_embd.weight",
                                                          "output.weight",
                                                          "output.scale",
                                                          "output_norm.weight",
                                                          "per_layer_token_embd.weight",
                                                          "per_layer_model_proj.weight",
                                                          "per_layer_proj_norm.weight",
                                                          "rope_freqs.weight"};
constexpr std::array<std::string_view, 36> kLayerNames = {
    "attn_norm.weight",       "attn_q.weight",
    "attn_q.scale",           "attn_k.weight",
    "attn_k.scale",           "attn_v.weight",
    "attn_v.scale",           "attn_output.weight",
    "attn_output.scale",      "attn_q_norm.weight",
    "attn_k_norm.weight",     "post_attention_norm.weight",
    "ffn_norm.weight",        "ffn_gate.weight",
    "ffn_gate.scale",         "ffn_up.weight",
    "ffn_up.scale",           "ffn_down.weight",
    "ffn_down.scale",         "post_ffw_norm.weight",
    "post_ffw_norm_1.weight", "post_ffw_norm_2.weight",
    "pre_ffw_norm_2.weight",  "ffn_gate_inp.weight",
    "ffn_gate_inp.scale",     "ffn_gate_up_exps.weight",
    "ffn_gate_exps.weight",   "ffn_gate_exps.scale",
    "ffn_up_exps.weight",     "ffn_up_exps.scale",
    "ffn_down_exps.weight",   "ffn_down_exps.scale",
    "inp_gate.weight",        "proj.weight",
    "post_norm.weight",       "layer_output_scale.weight"};

std::string LayerTensor(int layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

/// With what only text models have: matrices of experts.
class Binder : public TensorBinder {
 public:
  explicit Binder(const Checkpoint& checkpoint)
      : TensorBinder(checkpoint.path(),
                     [&checkpoint](std::string_view name) { return checkpoint.Find(name); }),
        checkpoint_(checkpoint) {}

  /// One matrix per expert from a tensor [n_experts, n_rows, n_in]; rows [row_begin, row_begin +
  /// n_out) of each.
  void Experts(const std::string& name, std::array<int64_t, 3> shape, int64_t row_begin,
               int64_t n_out, WeightMatrix ExpertWeights::*field,
               std::vector<ExpertWeights>* experts) {
    const CheckpointTensor* tensor = Find(name, {shape[0], shape[1], shape[2]});
    if (tensor == nullptr) {
      return;
    }
    CheckComputable(*tensor, shape[2]);
    if (!status().ok()) {
      return;
    }
    const int64_t row_bytes = BytesOf(tensor->type, shape[2]);
    for (int64_t e = 0; e < shape[0]; ++e) {
      const std::byte* data = tensor->data.data() + (e * shape[1] + row_begin) * row_bytes;
      (*experts)[static_cast<size_t>(e)].*field = {tensor->type, n_out, shape[2], data};
    }
  }

  /// `name` [n_experts], where the file has it: multiplies the products of each expert's matrix.
  void ExpertScales(const std::string& name, WeightMatrix ExpertWeights::*field,
                    std::vector<ExpertWeights>* experts) {
    if (!Has(name)) {
      return;
    }
    std::vector<float> scales;
    Vector(name, static_cast<int64_t>(experts->size()), &scales);
    for (size_t e = 0; e < scales.size(); ++e) {
      ((*experts)[e].*field).scale = scales[e];
    }
  }

  /// A scale that no product would apply is refused: without it the model is another one.
  void RefuseOtherScales() {
    for (const CheckpointTensor& tensor : checkpoint_.tensors()) {
      const size_t dot = tensor.name.rfind(".scale");
      if (dot == std::string::npos || dot + 6 != tensor.name.size()) {
        continue;
      }
      const std::string weight = tensor.name.substr(0, dot) + ".weight";
      if (IsTextTensorName(tensor.name) && !Has(weight)) {
        Fail(Refuse(Where(tensor.name), fmt::format("no {} beside it", weight),
                    "the matrix that it scales"));
      } else if (IsTextTensorName(weight) && !IsTextTensorName(tensor.name)) {
        Fail(Refuse(Where(tensor.name), fmt::format("a scale of {}", weight),
                    "scales of attention, feed-forward and output matrices only"));
      }
    }
  }

 private:
  const Checkpoint& checkpoint_;
};

void BindMixture(const Config& c, int l, Binder* binder, MixtureWeights* m) {
  const auto name = [l](std::string_view n) { return LayerTensor(l, n); };
  const int64_t n_experts = c.n_experts;
  const int64_t n_ff = c.n_ff_expert;
  m->experts.resize(static_cast<size_t>(n_experts));
  binder->Matrix(name("ffn_gate_inp.weight"), n_experts, c.n_embd, &m->router);
  binder->Vector(name("ffn_gate_inp.scale"), c.n_embd, &m->router_scale);
  for (float& scale : m->router_scale) {
    scale *= 1.0F / std::sqrt(static_cast<float>(c.n_embd));
  }
  if (binder->Has(name("ffn_gate_exps.weight"))) {
    binder->Experts(name("ffn_gate_exps.weight"), {n_experts, n_ff, c.n_embd}, 0, n_ff,
                    &ExpertWeights::gate, &m->experts);
    binder->Experts(name("ffn_up_exps.weight"), {n_experts, n_ff, c.n_embd}, 0, n_ff,
                    &ExpertWeights::up, &m->experts);
    binder->ExpertScales(name("ffn_gate_exps.scale"), &ExpertWeights::gate, &m->experts);
    binder->ExpertScales(name("ffn_up_exps.scale"), &ExpertWeights::up, &m->experts);
  } else {  // fused: gate rows first
    const std::string fused = name("ffn_gate_up_exps.weight");
    binder->Experts(fused, {n_experts, 2 * n_ff, c.n_embd}, 0, n_ff, &ExpertWeights::gate,
                    &m->experts);
    binder->Experts(fused, {n_experts, 2 * n_ff, c.n_embd}, n_ff, n_ff, &ExpertWeights::up,
                    &m->experts);
  }
  binder->Experts(name("ffn_down_exps.weight"), {n_experts, c.n_embd, n_ff}, 0, c.n_embd,
                  &ExpertWeights::down, &m->experts);
  m->expert_scale.assign(static_cast<size_t>(n_experts), 1.0F);
  if (binder->Has(name("ffn_down_exps.scale"))) {
    binder->Vector(name("ffn_down_exps.scale"), n_experts, &m->expert_scale);
  }
  binder->Vector(name("pre_ffw_norm_2.weight"), c.n_embd, &m->pre_norm);
  binder->Vector(name("post_ffw_norm_1.weight"), c.n_embd, &m->post_norm_dense);
  binder->Vector(name("post_ffw_norm_2.weight"), c.n_embd, &m->post_norm_experts);
}

void BindLayer(const Config& c, int l, Binder* binder, LayerWeights* w) {
  const LayerDesc& layer = c.layers[static_cast<size_t>(l)];
  const auto name = [l](std::string_view n) { return LayerTensor(l, n); };
  const int64_t kv_width = int64_t{layer.n_kv_heads} * layer.d_head;
  BindLayerCore(c, l, binder, w);
  if (layer.kv_layer == l) {  // tensors that stand on shared layers all the same are ignored
    binder->Projection(name("attn_k"), kv_width, c.n_embd, &w->k);
    binder->Vector(name("attn_k_norm.weight"), layer.d_head, &w->k_norm);
    if (!layer.v_is_k) {
      binder->Projection(name("attn_v"), kv_width, c.n_embd, &w->v);
    }
  }
  if (c.n_experts > 0) {
    BindMixture(c, l, binder, &w->mixture);
  }
  if (c.n_embd_per_layer > 0) {
    binder->Matrix(name("inp_gate.weight"), c.n_embd_per_layer, c.n_embd, &w->ple_gate);
    binder->Matrix(name("proj.weight"), c.n_embd, c.n_embd_per_layer, &w->ple_proj);
    binder->Vector(name("post_norm.weight"), c.n_embd, &w->ple_norm);
  }
}

/// One tensor for all layers; each takes its rows.
void BindPerLayerProjection(const Config& c, Binder* binder, std::vector<LayerWeights>* layers) {
  const int64_t n = c.n_embd_per_layer;
  WeightMatrix all;
  binder->Matrix("per_layer_model_proj.weight", n * c.n_layers, c.n_embd, &all);
  for (int64_t l = 0; all.data != nullptr && l < c.n_layers; ++l) {
    (*layers)[static_cast<size_t>(l)].ple_model_proj = {all.type, n, all.n_in, all.row(l * n)};
  }
}

int HeadSize(const Config& c, LayerKind kind) {
  for (const LayerDesc& layer : c.layers) {
    if (layer.kind == kind) {
      return layer.d_head;
    }
  }
  return 0;
}

/// theta^(-2i/d), i < n_pairs; the exponent's denominator is always the whole head.
std::vector<float> InverseFrequencies(float theta, int d_head, int n_pairs) {
  std::vector<float> frequencies;
  frequencies.reserve(static_cast<size_t>(n_pairs));
  for (int i = 0; i < n_pairs; ++i) {
    frequencies.push_back(
        static_cast<float>(std::pow(static_cast<double>(theta), -2.0 * i / d_head)));
  }
  return frequencies;
}

void BindRope(const Config& c, Binder* binder, Weights* w) {
  const int d_sliding = HeadSize(c, LayerKind::kSliding);
  const int d_full = HeadSize(c, LayerKind::kFull);
  w->inverse_frequency_sliding = InverseFrequencies(c.rope_theta_sliding, d_sliding, d_sliding / 2);
  int n_turning = static_cast<int>(c.rope_full_turning * static_cast<float>(d_full) / 2);
  std::vector<float> factors;
  if (d_full > 0 && binder->Has("rope_freqs.weight")) {
    binder->Vector("rope_freqs.weight", d_full / 2, &factors);
    n_turning = static_cast<int>(
        std::find_if(factors.begin(), factors.end(), [](float f) { return f >= kStillFactor; }) -
        factors.begin());
  }
  w->inverse_frequency_full = InverseFrequencies(c.rope_theta_full, d_full, n_turning);
  for (size_t i = 0; i < w->inverse_frequency_full.size() && i < factors.size(); ++i) {
    w->inverse_frequency_full[i] /= factors[i];
  }
}

}  // namespace

Result<Weights> BindWeights(const Checkpoint& checkpoint) {
  const Config& c = checkpoint.config();
  Binder binder(checkpoint);
  Weights w;
  w.layers.resize(static_cast<size_t>(c.n_layers));
  binder.Matrix("token_embd.weight", c.n_vocab, c.n_embd, &w.token_embd);
  w.output = w.token_embd;
  if (binder.Has("output.weight")) {
    binder.Projection("output", c.n_vocab, c.n_embd, &w.output);
  }
  binder.Vector("output_norm.weight", c.n_embd, &w.output_norm);
  if (c.n_embd_per_layer > 0) {
    const int64_t width = int64_t{c.n_layers} * c.n_embd_per_layer;
    binder.Matrix("per_layer_token_embd.weight", c.n_vocab, width, &w.ple_token_embd);
    binder.Vector("per_layer_proj_norm.weight", c.n_embd_per_layer, &w.ple_proj_norm);
    BindPerLayerProjection(c, &binder, &w.layers);
  }
  BindRope(c, &binder, &w);
  for (int l = 0; l < c.n_layers; ++l) {
    BindLayer(c, l, &binder, &w.layers[static_cast<size_t>(l)]);
  }
  binder.RefuseOtherScales();
  FACET_RETURN_IF_ERROR(binder.status());
  return w;
}

void ScaledEmbedding(const WeightMatrix& token_embd, int64_t token, float* x) {
  RowOf(token_embd, token, x);
  const float scale = std::sqrt(static_cast<float>(token_embd.n_in));
  for (int64_t i = 0; i < token_embd.n_in; ++i) {
    x[i] *= scale;
  }
}

void BindLayerCore(const Config& config, int layer, TensorBinder* binder, LayerWeights* w) {
  const LayerDesc& desc = config.layers[static_cast<size_t>(layer)];
  const auto name = [layer](std::string_view n) { return LayerTensor(layer, n); };
  const int64_t n = config.n_embd;
  const int64_t q_width = int64_t{config.n_heads} * desc.d_head;
  binder->Vector(name("attn_norm.weight"), n, &w->attn_norm);
  binder->Projection(name("attn_q"), q_width, n, &w->q);
  binder->Vector(name("attn_q_norm.weight"), desc.d_head, &w->q_norm);
  binder->Projection(name("attn_output"), n, q_width, &w->o);
  binder->Vector(name("post_attention_norm.weight"), n, &w->post_attn_norm);
  binder->Vector(name("ffn_norm.weight"), n, &w->ffn_norm);
  binder->Projection(name("ffn_gate"), desc.n_ff, n, &w->gate);
  binder->Projection(name("ffn_up"), desc.n_ff, n, &w->up);
  binder->Projection(name("ffn_down"), n, desc.n_ff, &w->down);
  binder->Vector(name("post_ffw_norm.weight"), n, &w->post_ffn_norm);
  w->output_scale = binder->Scalar(name("layer_output_scale.weight"), 1.0F);
}

bool IsTextTensorName(std::string_view name) {
  if (std::find(kGlobalNames.begin(), kGlobalNames.end(), name) != kGlobalNames.end()) {
    return true;
  }
  if (name.substr(0, 4) != "blk.") {
    return false;
  }
  const size_t dot = name.find('.', 4);
  return dot != std::string_view::npos && std::find(kLayerNames.begin(), kLayerNames.end(),
                                                    name.substr(dot + 1)) != kLayerNames.end();
}

double BytesPerToken(const Checkpoint& checkpoint) { return BytesPerStep(checkpoint, 1); }

double BytesPerStep(const Checkpoint& checkpoint, int n_rows) {
  const Config& config = checkpoint.config();
  const bool has_output = checkpoint.Find("output.weight") != nullptr;
  const double unused =
      config.n_experts > 0 ? 1 - static_cast<double>(config.n_experts_used) / config.n_experts : 0;
  const double share_of_experts = 1 - std::pow(unused, n_rows);
  double n_bytes = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const bool is_lookup = tensor.name == "per_layer_token_embd.weight" ||
                           (has_output && tensor.name == "token_embd.weight");
    const bool is_of_experts =
        config.n_experts > 0 && tensor.name.find("_exps.") != std::string::npos;
    const double share = is_lookup ? 0 : is_of_experts ? share_of_experts : 1;
    n_bytes += share * static_cast<double>(tensor.data.size());
  }
  return n_bytes;
}

Status ReconcileGeometry(const std::vector<CheckpointTensor>& tensors, const std::string& name,
                         Config* config) {
  std::unordered_map<std::string_view, const CheckpointTensor*> by_name;
  for (const CheckpointTensor& tensor : tensors) {
    by_name.emplace(tensor.name, &tensor);
  }
  // First axis of a tensor, or 0 when it is not there or too large to be a width.
  const auto rows = [&by_name](int layer, std::string_view tensor) -> int {
    const auto found = by_name.find(LayerTensor(layer, tensor));
    const bool is_usable = found != by_name.end() && !found->second->shape.empty() &&
                           found->second->shape[0] <= (int64_t{1} << 24);
    return is_usable ? static_cast<int>(found->second->shape[0]) : 0;
  };
  std::string difference;
  const auto reconcile = [&difference](int layer, std::string_view what, int from_shape,
                                       int* value) {
    if (from_shape > 0 && from_shape != *value) {
      if (difference.empty()) {
        difference = fmt::format("layer {} {} is {} in the metadata and {} in the tensors", layer,
                                 what, *value, from_shape);
      }
      *value = from_shape;
    }
  };
  for (int l = 0; l < config->n_layers; ++l) {
    LayerDesc& layer = config->layers[static_cast<size_t>(l)];
    reconcile(l, "head size", rows(l, "attn_q_norm.weight"), &layer.d_head);
    reconcile(l, "feed-forward width", rows(l, "ffn_gate.weight"), &layer.n_ff);
    if (layer.d_head > 0 && rows(l, "attn_k.weight") % layer.d_head == 0) {
      reconcile(l, "KV heads", rows(l, "attn_k.weight") / layer.d_head, &layer.n_kv_heads);
    }
    if (l < config->first_shared_layer()) {
      layer.v_is_k = layer.kind == LayerKind::kFull && rows(l, "attn_v.weight") == 0;
    }
  }
  if (!difference.empty()) {
    Warn(fmt::format("{}: {}; the tensors count", name, difference));
  }
  return {};
}

}  // namespace facet
