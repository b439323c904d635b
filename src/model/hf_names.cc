// SPDX-License-Identifier: Apache-2.0
#include "model/hf_names.h"

#include <algorithm>
#include <array>

namespace facet {
namespace {

struct Pair {
  std::string_view hf;
  std::string_view gguf;
};

constexpr std::array kGlobal = {
    Pair{"embed_tokens.weight", "token_embd.weight"},
    Pair{"lm_head.weight", "output.weight"},
    Pair{"norm.weight", "output_norm.weight"},
    Pair{"embed_tokens_per_layer.weight", "per_layer_token_embd.weight"},
    Pair{"per_layer_model_projection.weight", "per_layer_model_proj.weight"},
    Pair{"per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
};

constexpr std::array kLayer = {
    Pair{"input_layernorm.weight", "attn_norm.weight"},
    Pair{"self_attn.q_proj.weight", "attn_q.weight"},
    Pair{"self_attn.k_proj.weight", "attn_k.weight"},
    Pair{"self_attn.v_proj.weight", "attn_v.weight"},
    Pair{"self_attn.o_proj.weight", "attn_output.weight"},
    Pair{"self_attn.q_norm.weight", "attn_q_norm.weight"},
    Pair{"self_attn.k_norm.weight", "attn_k_norm.weight"},
    Pair{"post_attention_layernorm.weight", "post_attention_norm.weight"},
    Pair{"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
    Pair{"mlp.gate_proj.weight", "ffn_gate.weight"},
    Pair{"mlp.up_proj.weight", "ffn_up.weight"},
    Pair{"mlp.down_proj.weight", "ffn_down.weight"},
    Pair{"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
    Pair{"post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight"},
    Pair{"post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight"},
    Pair{"pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight"},
    Pair{"router.proj.weight", "ffn_gate_inp.weight"},
    Pair{"router.scale", "ffn_gate_inp.scale"},
    Pair{"router.per_expert_scale", "ffn_down_exps.scale"},
    Pair{"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    Pair{"experts.gate_proj", "ffn_gate_exps.weight"},
    Pair{"experts.up_proj", "ffn_up_exps.weight"},
    Pair{"experts.down_proj", "ffn_down_exps.weight"},
    Pair{"per_layer_input_gate.weight", "inp_gate.weight"},
    Pair{"per_layer_projection.weight", "proj.weight"},
    Pair{"post_per_layer_input_norm.weight", "post_norm.weight"},
    Pair{"layer_scalar", "layer_output_scale.weight"},
};

template <size_t N>
std::optional<std::string_view> Lookup(const std::array<Pair, N>& table, std::string_view hf) {
  const auto* found =
      std::find_if(table.begin(), table.end(), [hf](const Pair& pair) { return pair.hf == hf; });
  if (found == table.end()) {
    return std::nullopt;
  }
  return found->gguf;
}

/// Parameters that are no module's weight are spelled with and without ".weight".
std::optional<std::string_view> LookupInLayer(std::string_view hf) {
  constexpr std::string_view kWeight = ".weight";
  const auto found = Lookup(kLayer, hf);
  return found.has_value() || !hf.ends_with(kWeight)
             ? found
             : Lookup(kLayer, hf.substr(0, hf.size() - kWeight.size()));
}

bool StripPrefix(std::string_view* text, std::string_view prefix) {
  if (text->substr(0, prefix.size()) != prefix) {
    return false;
  }
  text->remove_prefix(prefix.size());
  return true;
}

/// Which of these stand before a name, and in which order, differs between versions of transformers
/// and between the programs that save checkpoints.
void StripModelPrefixes(std::string_view* name) {
  while (StripPrefix(name, "model.") || StripPrefix(name, "language_model.")) {
  }
}

}  // namespace

std::optional<HfNameParts> SplitHfName(std::string_view name, std::string_view prefix) {
  StripModelPrefixes(&name);
  if (!StripPrefix(&name, prefix)) {
    return std::nullopt;
  }
  if (!StripPrefix(&name, "layers.")) {
    return HfNameParts{{}, name};
  }
  const size_t dot = name.find('.');
  const std::string_view number = name.substr(0, dot);
  const bool is_number =
      dot != std::string_view::npos && !number.empty() && number.size() <= 4 &&
      std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) {
    return std::nullopt;
  }
  return HfNameParts{number, name.substr(dot + 1)};
}

std::optional<std::string> GgufNameOf(std::string_view name) {
  const auto parts = SplitHfName(name, "");
  if (!parts.has_value()) {
    return std::nullopt;
  }
  if (parts->layer.empty()) {
    const auto global = Lookup(kGlobal, parts->rest);
    return global.has_value() ? std::optional<std::string>(*global) : std::nullopt;
  }
  const auto layer = LookupInLayer(parts->rest);
  if (!layer.has_value()) {
    return std::nullopt;
  }
  return std::string("blk.").append(parts->layer).append(".").append(*layer);
}

bool IsMediaTensor(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kPrefixes = {
      "vision_tower.",    "audio_tower.",    "embed_vision.",         "embed_audio.",
      "vision_embedder.", "audio_embedder.", "multi_modal_projector."};
  StripModelPrefixes(&name);
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [name](std::string_view prefix) {
    return name.substr(0, prefix.size()) == prefix;
  });
}

}  // namespace facet
