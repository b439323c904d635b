// SPDX-License-Identifier: Apache-2.0
// Config from config.json and generation_config.json. Two spellings of the full layers' geometry
// circulate: global_head_dim / num_global_key_value_heads, and per_layer_config (reference.md 1.3).
#include <fmt/format.h>

#include <array>
#include <climits>
#include <optional>

#include "model/config.h"
#include "model/config_parts.h"
#include "model/json_members.h"

namespace facet {
namespace {

Status CheckModelType(const Json& config, const std::string& name) {
  static constexpr std::array<std::string_view, 3> kKnown = {"gemma4", "gemma4_text",
                                                             "gemma4_unified"};
  const std::string& type = config["model_type"].as_string();
  for (const std::string_view known : kKnown) {
    if (type == known) {
      return {};
    }
  }
  std::string found = type.empty() ? "nothing" : fmt::format("\"{}\"", type);
  if (type.find("assistant") != std::string::npos) {
    found += " (a drafter)";
  }
  return Refuse(name + ", model_type", found, "\"gemma4\", \"gemma4_text\" or \"gemma4_unified\"");
}

/// The numbers that layers have unless per_layer_config says otherwise.
struct LayerDefaults {
  int d_head_sliding, d_head_full, n_kv_sliding, n_kv_full, n_ff;
  bool is_double_wide;
};

Result<LayerDefaults> ReadLayerDefaults(const JsonMembers& text, const Config& c) {
  LayerDefaults d{};
  FACET_ASSIGN(d.d_head_sliding, text.Int("head_dim", std::nullopt));
  FACET_ASSIGN(d.d_head_full, text.Int("global_head_dim", d.d_head_sliding));
  FACET_ASSIGN(d.n_kv_sliding, text.Int("num_key_value_heads", c.n_heads));
  FACET_ASSIGN(d.n_kv_full, text.Int("num_global_key_value_heads", d.n_kv_sliding));
  FACET_ASSIGN(d.n_ff, text.Int("intermediate_size", std::nullopt));
  d.is_double_wide = text["use_double_wide_mlp"].as_bool();
  return d;
}

Status ReadLayers(const JsonMembers& text, Config* c) {
  FACET_ASSIGN(const LayerDefaults defaults, ReadLayerDefaults(text, *c));
  const Json::Array& kinds = text["layer_types"].items();
  if (static_cast<int>(kinds.size()) != c->n_layers) {
    return Refuse(text.Where("layer_types"), fmt::format("{} entries", kinds.size()),
                  fmt::format("{}, one per layer", c->n_layers));
  }
  const bool v_is_k = text["attention_k_eq_v"].as_bool();
  for (int l = 0; l < c->n_layers; ++l) {
    const std::string& kind = kinds[static_cast<size_t>(l)].as_string();
    if (kind != "sliding_attention" && kind != "full_attention") {
      return Refuse(text.Where(fmt::format("layer_types[{}]", l)), fmt::format("\"{}\"", kind),
                    "\"sliding_attention\" or \"full_attention\"");
    }
    LayerDesc layer;
    layer.kind = kind == "full_attention" ? LayerKind::kFull : LayerKind::kSliding;
    const bool is_full = layer.kind == LayerKind::kFull;
    const std::string key = fmt::format("{}", l);
    const JsonMembers own(text["per_layer_config"][key], text.Where("per_layer_config." + key));
    FACET_ASSIGN(layer.d_head,
                 own.Int("head_dim", is_full ? defaults.d_head_full : defaults.d_head_sliding));
    FACET_ASSIGN(layer.n_kv_heads, own.Int("num_key_value_heads",
                                           is_full ? defaults.n_kv_full : defaults.n_kv_sliding));
    const bool is_wide = defaults.is_double_wide && l >= c->first_shared_layer();
    FACET_ASSIGN(layer.n_ff,
                 own.Int("intermediate_size", is_wide ? 2 * defaults.n_ff : defaults.n_ff));
    layer.v_is_k = v_is_k && is_full;
    c->layers.push_back(layer);
  }
  return {};
}

Status ReadRope(const JsonMembers& text, Config* c) {
  const Json& rope = text["rope_parameters"];
  const JsonMembers full(rope["full_attention"], text.Where("rope_parameters.full_attention"));
  const JsonMembers sliding(rope["sliding_attention"],
                            text.Where("rope_parameters.sliding_attention"));
  FACET_ASSIGN(c->rope_theta_full, full.Float("rope_theta", 1e6F));
  FACET_ASSIGN(c->rope_full_turning, full.Float("partial_rotary_factor", 0.25F));
  FACET_ASSIGN(c->rope_theta_sliding, sliding.Float("rope_theta", 1e4F));
  return {};
}

Result<std::vector<int>> IntOrList(const Json& value, const std::string& where) {
  std::vector<int> ids;
  const Json::Array single = value.is_null() ? Json::Array{} : Json::Array{value};
  for (const Json& item : value.is_array() ? value.items() : single) {
    if (!item.is_integer() || item.as_int() < 0 || item.as_int() > INT_MAX) {
      return Refuse(where, std::string(item.KindName()), "a token id or a list of them");
    }
    ids.push_back(static_cast<int>(item.as_int()));
  }
  return ids;
}

}  // namespace

Result<Config> ConfigFromHf(const Json& config, const std::string& name) {
  if (!config.is_object()) {
    return Refuse(name, std::string(config.KindName()), "an object");
  }
  FACET_RETURN_IF_ERROR(CheckModelType(config, name));
  const Json& text_config = config["text_config"];
  return ConfigFromTextMembers(
      JsonMembers(text_config.is_object() ? text_config : config,
                  text_config.is_object() ? name + ", text_config" : name));
}

Result<Config> ConfigFromTextMembers(const JsonMembers& text) {
  Config c;
  FACET_ASSIGN(c.n_layers, text.Int("num_hidden_layers", std::nullopt));
  if (c.n_layers < 1 || c.n_layers > 1024) {
    return Refuse(text.Where("num_hidden_layers"), fmt::format("{}", c.n_layers), "1 to 1024");
  }
  FACET_ASSIGN(c.n_embd, text.Int("hidden_size", std::nullopt));
  FACET_ASSIGN(c.n_heads, text.Int("num_attention_heads", std::nullopt));
  FACET_ASSIGN(c.n_vocab, text.Int("vocab_size", std::nullopt));
  FACET_ASSIGN(c.n_context, text.Int("max_position_embeddings", std::nullopt));
  FACET_ASSIGN(c.sliding_window, text.Int("sliding_window", 0));
  FACET_ASSIGN(c.n_shared_kv_layers, text.Int("num_kv_shared_layers", 0));
  FACET_ASSIGN(c.n_embd_per_layer, text.Int("hidden_size_per_layer_input", 0));
  FACET_ASSIGN(c.norm_eps, text.Float("rms_norm_eps", 1e-6F));
  FACET_ASSIGN(c.logit_softcap, text.Float("final_logit_softcapping", 0.0F));
  if (text["enable_moe_block"].as_bool()) {
    FACET_ASSIGN(c.n_experts, text.Int("num_experts", std::nullopt));
    FACET_ASSIGN(c.n_experts_used, text.Int("top_k_experts", std::nullopt));
    FACET_ASSIGN(c.n_ff_expert, text.Int("moe_intermediate_size", std::nullopt));
  }
  c.has_bidirectional_spans = text["use_bidirectional_attention"].as_string() == "vision";
  FACET_RETURN_IF_ERROR(ReadRope(text, &c));
  FACET_RETURN_IF_ERROR(ReadLayers(text, &c));
  return c;
}

Result<GenerationDefaults> DefaultsFromHf(const Json& generation_config, const std::string& name) {
  const JsonMembers members(generation_config, name);
  GenerationDefaults d;
  FACET_ASSIGN(d.temperature, members.Float("temperature", d.temperature));
  FACET_ASSIGN(d.top_k, members.Int("top_k", d.top_k));
  FACET_ASSIGN(d.top_p, members.Float("top_p", d.top_p));
  if (!(d.temperature >= 0 && d.temperature <= 100 && d.top_k >= 0 && d.top_p > 0 &&
        d.top_p <= 1)) {
    return Refuse(
        name, fmt::format("temperature {}, top_k {}, top_p {}", d.temperature, d.top_k, d.top_p),
        "0 to 100, 0 or more, above 0 and at most 1");
  }
  FACET_ASSIGN(d.end_tokens,
               IntOrList(generation_config["eos_token_id"], members.Where("eos_token_id")));
  FACET_ASSIGN(d.suppressed_tokens,
               IntOrList(generation_config["suppress_tokens"], members.Where("suppress_tokens")));
  return d;
}

}  // namespace facet
