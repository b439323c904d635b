// SPDX-License-Identifier: Apache-2.0
#include "model/hf_media_names.h"

#include <algorithm>
#include <array>
#include <span>

#include "model/hf_names.h"

namespace facet {
namespace {

struct Pair {
  std::string_view hf;
  std::string_view gguf;
};

constexpr std::array kGlobal = {
    Pair{"vision_tower.patch_embedder.input_proj.weight", "v.patch_embd.weight"},
    Pair{"vision_tower.patch_embedder.position_embedding_table", "v.position_embd.weight"},
    Pair{"vision_tower.std_bias", "v.std_bias"},
    Pair{"vision_tower.std_scale", "v.std_scale"},
    Pair{"embed_vision.embedding_projection.weight", "mm.input_projection.weight"},
    Pair{"vision_embedder.patch_ln1.weight", "v.patch_norm.1.weight"},
    Pair{"vision_embedder.patch_ln1.bias", "v.patch_norm.1.bias"},
    Pair{"vision_embedder.patch_dense.weight", "v.patch_embd.weight"},
    Pair{"vision_embedder.patch_dense.bias", "v.patch_embd.bias"},
    Pair{"vision_embedder.patch_ln2.weight", "v.patch_norm.2.weight"},
    Pair{"vision_embedder.patch_ln2.bias", "v.patch_norm.2.bias"},
    Pair{"vision_embedder.pos_embedding", "v.position_embd.weight"},
    Pair{"vision_embedder.pos_norm.weight", "v.patch_norm.3.weight"},
    Pair{"vision_embedder.pos_norm.bias", "v.patch_norm.3.bias"},
    Pair{"audio_tower.subsample_conv_projection.layer0.conv.weight", "a.conv1d.0.weight"},
    Pair{"audio_tower.subsample_conv_projection.layer0.norm.weight", "a.conv1d.0.norm.weight"},
    Pair{"audio_tower.subsample_conv_projection.layer1.conv.weight", "a.conv1d.1.weight"},
    Pair{"audio_tower.subsample_conv_projection.layer1.norm.weight", "a.conv1d.1.norm.weight"},
    Pair{"audio_tower.subsample_conv_projection.input_proj_linear.weight",
         "a.input_projection.weight"},
    Pair{"audio_tower.output_proj.weight", "a.pre_encode.out.weight"},
    Pair{"audio_tower.output_proj.bias", "a.pre_encode.out.bias"},
    Pair{"embed_audio.embedding_projection.weight", "mm.a.input_projection.weight"},
};

constexpr std::array kVisionLayer = {
    Pair{"input_layernorm", "ln1"},
    Pair{"self_attn.q_proj", "attn_q"},
    Pair{"self_attn.k_proj", "attn_k"},
    Pair{"self_attn.v_proj", "attn_v"},
    Pair{"self_attn.o_proj", "attn_out"},
    Pair{"self_attn.q_norm", "attn_q_norm"},
    Pair{"self_attn.k_norm", "attn_k_norm"},
    Pair{"post_attention_layernorm", "attn_post_norm"},
    Pair{"pre_feedforward_layernorm", "ln2"},
    Pair{"mlp.gate_proj", "ffn_gate"},
    Pair{"mlp.up_proj", "ffn_up"},
    Pair{"mlp.down_proj", "ffn_down"},
    Pair{"post_feedforward_layernorm", "ffn_post_norm"},
};

constexpr std::array kAudioLayer = {
    Pair{"feed_forward1.pre_layer_norm", "ffn_norm"},
    Pair{"feed_forward1.ffw_layer_1", "ffn_up"},
    Pair{"feed_forward1.ffw_layer_2", "ffn_down"},
    Pair{"feed_forward1.post_layer_norm", "ffn_post_norm"},
    Pair{"norm_pre_attn", "attn_pre_norm"},
    Pair{"self_attn.q_proj", "attn_q"},
    Pair{"self_attn.k_proj", "attn_k"},
    Pair{"self_attn.v_proj", "attn_v"},
    Pair{"self_attn.post", "attn_out"},
    Pair{"self_attn.relative_k_proj", "attn_k_rel"},
    Pair{"self_attn.per_dim_scale", "per_dim_scale"},
    Pair{"norm_post_attn", "attn_post_norm"},
    // GGUF's names of these two norms stand the wrong way round in every file that llama.cpp's
    // converter has made; nothing in a file could tell another order, so it is the only one.
    Pair{"lconv1d.pre_layer_norm", "conv_norm"},
    Pair{"lconv1d.conv_norm", "norm_conv"},
    Pair{"lconv1d.linear_start", "conv_pw1"},
    Pair{"lconv1d.depthwise_conv1d", "conv_dw"},
    Pair{"lconv1d.linear_end", "conv_pw2"},
    Pair{"feed_forward2.pre_layer_norm", "ffn_norm_1"},
    Pair{"feed_forward2.ffw_layer_1", "ffn_up_1"},
    Pair{"feed_forward2.ffw_layer_2", "ffn_down_1"},
    Pair{"feed_forward2.post_layer_norm", "ffn_post_norm_1"},
    Pair{"norm_out", "ln2"},
};

/// What follows a module's name. Linears with bounds keep their matrix one module deeper.
constexpr std::array kEndings = {
    Pair{".linear.weight", ".weight"},
    Pair{".weight", ".weight"},
    Pair{".input_min", ".input_min"},
    Pair{".input_max", ".input_max"},
    Pair{".output_min", ".output_min"},
    Pair{".output_max", ".output_max"},
    Pair{"", ".weight"},
};

std::optional<std::string_view> Lookup(std::span<const Pair> table, std::string_view hf) {
  const auto* found = std::find_if(table.data(), table.data() + table.size(),
                                   [hf](const Pair& pair) { return pair.hf == hf; });
  return found == table.data() + table.size() ? std::nullopt : std::optional(found->gguf);
}

std::optional<std::string> LayerName(std::span<const Pair> table, std::string_view prefix,
                                     const HfNameParts& parts) {
  for (const Pair& ending : kEndings) {
    if (!parts.rest.ends_with(ending.hf)) {
      continue;
    }
    const auto stem = Lookup(table, parts.rest.substr(0, parts.rest.size() - ending.hf.size()));
    if (stem.has_value()) {
      return std::string(prefix).append(parts.layer).append(".").append(*stem).append(ending.gguf);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> MediaGgufNameOf(std::string_view name) {
  if (const auto vision = SplitHfName(name, "vision_tower.encoder.");
      vision.has_value() && !vision->layer.empty()) {
    return LayerName(kVisionLayer, "v.blk.", *vision);
  }
  if (const auto audio = SplitHfName(name, "audio_tower.");
      audio.has_value() && !audio->layer.empty()) {
    return LayerName(kAudioLayer, "a.blk.", *audio);
  }
  const auto parts = SplitHfName(name, "");
  const auto global = parts.has_value() ? Lookup(kGlobal, parts->rest) : std::nullopt;
  return global.has_value() ? std::optional<std::string>(*global) : std::nullopt;
}

}  // namespace facet
