// SPDX-License-Identifier: Apache-2.0
// The tensors of a model, bound once. After this there are only fields; no other file knows a
// tensor's name. Names are GGUF's (reference.md 9.1). Matrices stay where they lie in the file;
// vectors are small and are decoded to float.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/page_memory.h"
#include "base/status.h"
#include "compute/matmul.h"
#include "model/checkpoint.h"
#include "model/config.h"

namespace facet {

class TensorBinder;

/// One expert of a mixture: gate and up [n_ff_expert, n_embd], down [n_embd, n_ff_expert].
struct ExpertWeights {
  WeightMatrix gate;
  WeightMatrix up;
  WeightMatrix down;
};

/// Mixture of experts beside the dense MLP (reference.md 1.8).
struct MixtureWeights {
  WeightMatrix router;              // [n_experts, n_embd]
  std::vector<float> router_scale;  // [n_embd], times n_embd^-1/2
  std::vector<float> expert_scale;  // [n_experts]
  std::vector<ExpertWeights> experts;
  std::vector<float> pre_norm;           // [n_embd] pre_feedforward_layernorm_2
  std::vector<float> post_norm_dense;    // [n_embd] post_feedforward_layernorm_1
  std::vector<float> post_norm_experts;  // [n_embd] post_feedforward_layernorm_2
};

struct LayerWeights {
  std::vector<float> attn_norm;       // [n_embd]
  WeightMatrix q;                     // [n_heads * d_head, n_embd]
  WeightMatrix k;                     // [n_kv_heads * d_head, n_embd]; not on shared layers
  WeightMatrix v;                     // like k; not where v_is_k
  WeightMatrix o;                     // [n_embd, n_heads * d_head]
  std::vector<float> q_norm;          // [d_head]
  std::vector<float> k_norm;          // [d_head]
  std::vector<float> post_attn_norm;  // [n_embd]
  std::vector<float> ffn_norm;        // [n_embd]
  WeightMatrix gate;                  // [n_ff, n_embd]
  WeightMatrix up;                    // [n_ff, n_embd]
  WeightMatrix down;                  // [n_embd, n_ff]
  std::vector<float> post_ffn_norm;   // [n_embd]
  MixtureWeights mixture;             // experts empty when there is none
  WeightMatrix ple_model_proj;        // [n_embd_per_layer, n_embd]
  WeightMatrix ple_gate;              // [n_embd_per_layer, n_embd]
  WeightMatrix ple_proj;              // [n_embd, n_embd_per_layer]
  std::vector<float> ple_norm;        // [n_embd]
  float output_scale = 1.0F;          // multiplies the whole residual stream
};

struct Weights {
  WeightMatrix token_embd;           // [n_vocab, n_embd]
  WeightMatrix output;               // [n_vocab, n_embd]: token_embd when tied
  std::vector<float> output_norm;    // [n_embd]
  WeightMatrix ple_token_embd;       // [n_vocab, n_layers * n_embd_per_layer]
  std::vector<float> ple_proj_norm;  // [n_embd_per_layer]
  /// Angle per position of each turning pair (reference.md 1.6); pairs that stand still are left
  /// out.
  std::vector<float> inverse_frequency_sliding;
  std::vector<float> inverse_frequency_full;
  std::vector<LayerWeights> layers;
  PageMemory packed;  ///< what WeightMatrix::packed points into (packing.h)
};

/// Finds every tensor that `config` asks for; the first that is missing, misshapen or of a type
/// that cannot be computed is refused, with what was wanted. The checkpoint must outlive the
/// result.
Result<Weights> BindWeights(const Checkpoint& checkpoint);

/// x [n_embd] = E[token] · sqrt(n_embd), with the exact root (reference.md 1.1).
void ScaledEmbedding(const WeightMatrix& token_embd, int64_t token, float* x);

/// Binds of a layer what a text model's and a drafter's have in common: all but keys and values,
/// experts and per-layer inputs.
void BindLayerCore(const Config& config, int layer, TensorBinder* binder, LayerWeights* w);

/// Whether a Gemma 4 text model has a tensor of this name.
bool IsTextTensorName(std::string_view name);

/// Bytes of weights that one generated token reads: tables that are only looked up do not count,
/// and of a mixture's experts only the share in use.
double BytesPerToken(const Checkpoint& checkpoint);

/// The same for a step of `n_rows` rows of different sequences, which read the weights together. Of
/// a mixture the experts that are met at least once, as if each row drew its own evenly.
double BytesPerStep(const Checkpoint& checkpoint, int n_rows);

/// Sets head sizes, KV heads, feed-forward widths and v_is_k from the shapes of the tensors where
/// the metadata says otherwise (files differ), with one warning that names the first difference.
/// Shapes themselves are checked by BindWeights.
Status ReconcileGeometry(const std::vector<CheckpointTensor>& tensors, const std::string& name,
                         Config* config);

}  // namespace facet
