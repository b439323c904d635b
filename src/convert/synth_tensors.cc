// SPDX-License-Identifier: Apache-2.0
#include "convert/synth_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/drafter_names.h"

namespace facet {
namespace {

/// Multiplies the residual stream after each layer; the released models have values around it.
constexpr float kLayerOutputScale = 0.7F;
/// Collects the tensors of one file in the order in which they are written.
class TensorList {
 public:
  void Matrix(std::string name, std::vector<int64_t> shape) {
    const int64_t fan_in = shape.back();
    Matrix(std::move(name), std::move(shape), fan_in);
  }
  void Matrix(std::string name, std::vector<int64_t> shape, int64_t fan_in) {
    tensors_.push_back({std::move(name), TensorType::kBF16, std::move(shape), fan_in, 0});
  }
  /// A matrix that stays F32 whatever the file's type.
  void ExactMatrix(std::string name, std::vector<int64_t> shape) {
    Matrix(std::move(name), std::move(shape));
    tensors_.back().type = TensorType::kF32;
  }
  void Vector(std::string name, int64_t n, float value) {
    tensors_.push_back({std::move(name), TensorType::kF32, {n}, 0, value});
  }
  void Vector(std::string name, int64_t n) { Vector(std::move(name), n, 1.0F); }

  void Ordering(std::string name, int64_t n) {
    tensors_.push_back({std::move(name), TensorType::kI32, {n}, 0, 0});
  }

  std::vector<SynthTensor> Take() { return std::move(tensors_); }

 private:
  std::vector<SynthTensor> tensors_;
};

void AddMixture(const Config& c, const std::string& layer, TensorList* list) {
  list->ExactMatrix(layer + "ffn_gate_inp.weight", {c.n_experts, c.n_embd});
  list->Vector(layer + "ffn_gate_inp.scale", c.n_embd);
  list->Vector(layer + "pre_ffw_norm_2.weight", c.n_embd);
  list->Vector(layer + "post_ffw_norm_1.weight", c.n_embd);
  list->Vector(layer + "post_ffw_norm_2.weight", c.n_embd);
  list->Matrix(layer + "ffn_gate_up_exps.weight",
               {c.n_experts, int64_t{2} * c.n_ff_expert, c.n_embd});
  list->Matrix(layer + "ffn_down_exps.weight", {c.n_experts, c.n_embd, c.n_ff_expert});
  list->Vector(layer + "ffn_down_exps.scale", c.n_experts);
}

void AddLayer(const Config& c, int l, TensorList* list) {
  const LayerDesc& desc = c.layers[static_cast<size_t>(l)];
  const std::string layer = fmt::format("blk.{}.", l);
  const int64_t q_width = int64_t{c.n_heads} * desc.d_head;
  const int64_t kv_width = int64_t{desc.n_kv_heads} * desc.d_head;
  list->Vector(layer + "attn_norm.weight", c.n_embd);
  list->Matrix(layer + "attn_q.weight", {q_width, c.n_embd});
  list->Vector(layer + "attn_q_norm.weight", desc.d_head);
  if (l < c.first_shared_layer()) {
    list->Matrix(layer + "attn_k.weight", {kv_width, c.n_embd});
    list->Vector(layer + "attn_k_norm.weight", desc.d_head);
    if (!desc.v_is_k) {
      list->Matrix(layer + "attn_v.weight", {kv_width, c.n_embd});
    }
  }
  list->Matrix(layer + "attn_output.weight", {c.n_embd, q_width});
  list->Vector(layer + "post_attention_norm.weight", c.n_embd);
  list->Vector(layer + "ffn_norm.weight", c.n_embd);
  list->Matrix(layer + "ffn_gate.weight", {desc.n_ff, c.n_embd});
  list->Matrix(layer + "ffn_up.weight", {desc.n_ff, c.n_embd});
  list->Matrix(layer + "ffn_down.weight", {c.n_embd, desc.n_ff});
  list->Vector(layer + "post_ffw_norm.weight", c.n_embd);
  if (c.n_experts > 0) {
    AddMixture(c, layer, list);
  }
  if (c.n_embd_per_layer > 0) {
    list->Matrix(layer + "inp_gate.weight", {c.n_embd_per_layer, c.n_embd});
    list->Matrix(layer + "proj.weight", {c.n_embd, c.n_embd_per_layer});
    list->Vector(layer + "post_norm.weight", c.n_embd);
  }
  list->Vector(layer + "layer_output_scale.weight", 1, kLayerOutputScale);
}

/// Of a model with at least one full layer.
void AddLayers(const Config& c, TensorList* list) {
  const auto full = std::find_if(c.layers.begin(), c.layers.end(), [](const LayerDesc& layer) {
    return layer.kind == LayerKind::kFull;
  });
  FACET_CHECK(full != c.layers.end());
  list->Vector("rope_freqs.weight", full->d_head / 2);
  for (int l = 0; l < c.n_layers; ++l) {
    AddLayer(c, l, list);
  }
}

}  // namespace

int64_t SynthTensor::n_elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) {
    n *= d;
  }
  return n;
}

std::vector<SynthTensor> ModelTensors(const Config& c) {
  TensorList list;
  list.Matrix("token_embd.weight", {c.n_vocab, c.n_embd});
  list.Vector("output_norm.weight", c.n_embd);
  if (c.n_embd_per_layer > 0) {
    const int64_t width = int64_t{c.n_layers} * c.n_embd_per_layer;
    list.Matrix("per_layer_token_embd.weight", {c.n_vocab, width}, c.n_embd_per_layer);
    list.Matrix("per_layer_model_proj.weight", {width, c.n_embd});
    list.Vector("per_layer_proj_norm.weight", c.n_embd_per_layer);
  }
  AddLayers(c, &list);
  return list.Take();
}

std::vector<SynthTensor> DrafterTensors(const DrafterConfig& drafter) {
  const Config& c = drafter.body;
  const int n_embd_model = drafter.n_embd_target;
  TensorList list;
  list.Matrix("token_embd.weight", {c.n_vocab, c.n_embd});
  list.Vector("output_norm.weight", c.n_embd);
  list.Matrix("nextn.pre_projection.weight", {c.n_embd, int64_t{2} * n_embd_model});
  list.Matrix("nextn.post_projection.weight", {n_embd_model, c.n_embd});
  if (drafter.n_centroids > 0) {
    list.Matrix(std::string(kDrafterCentroids), {drafter.n_centroids, c.n_embd});
    list.Ordering(std::string(kDrafterOrdering), c.n_vocab);
  }
  AddLayers(c, &list);
  return list.Take();
}

}  // namespace facet
