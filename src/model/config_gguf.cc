// SPDX-License-Identifier: Apache-2.0
// Config from and to GGUF metadata (reference.md 9.1). Per-layer numbers may be arrays or one
// scalar for all layers.
#include <fmt/format.h>

#include <optional>

#include "model/config.h"
#include "model/config_parts.h"
#include "model/gguf_keys.h"

namespace facet {
namespace {

constexpr std::string_view kArchitecture = "gemma4";

Status CheckArchitecture(const gguf::Metadata& metadata, const std::string& name) {
  const gguf::Value* value = metadata.Find("general.architecture");
  const std::string* text = value != nullptr ? value->AsString() : nullptr;
  if (text == nullptr) {
    return Refuse(name + ", general.architecture", "nothing", "\"gemma4\"");
  }
  if (*text == kArchitecture) {
    return {};
  }
  std::string found = fmt::format("\"{}\"", *text);
  if (*text == "gemma4-assistant" || *text == "gemma4_assistant") {
    found += " (a drafter)";
  } else if (*text == "clip") {
    found += " (a projector for images or audio)";
  }
  return Refuse(name + ", general.architecture", found, "\"gemma4\"");
}

/// True where a layer is sliding. Without a pattern every layer is full; a number n means that
/// every n-th is full.
Result<std::vector<bool>> SlidingPattern(const GgufKeys& keys, int n_layers) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const gguf::Value* value = keys.Find(kKey);
  std::vector<bool> is_sliding(static_cast<size_t>(n_layers), false);
  if (value == nullptr) {
    return is_sliding;
  }
  FACET_ASSIGN(const std::vector<int> numbers, keys.PerLayer(kKey, n_layers, 0));
  for (size_t l = 0; l < is_sliding.size(); ++l) {
    if (value->is_array()) {
      is_sliding[l] = numbers[l] != 0;
    } else if (numbers[l] > 1) {
      is_sliding[l] = (static_cast<int>(l) + 1) % numbers[l] != 0;
    }
  }
  return is_sliding;
}

Status ReadLayers(const GgufKeys& keys, Config* c) {
  FACET_ASSIGN(const std::vector<bool> is_sliding, SlidingPattern(keys, c->n_layers));
  FACET_ASSIGN(const std::vector<int> n_ff,
               keys.PerLayer("feed_forward_length", c->n_layers, std::nullopt));
  FACET_ASSIGN(const std::vector<int> n_heads,
               keys.PerLayer("attention.head_count", c->n_layers, std::nullopt));
  FACET_ASSIGN(const std::vector<int> n_kv,
               keys.PerLayer("attention.head_count_kv", c->n_layers, n_heads[0]));
  const int d_default = c->n_embd / std::max(1, n_heads[0]);
  FACET_ASSIGN(const std::vector<int> d_full,
               keys.PerLayer("attention.key_length", c->n_layers, d_default));
  FACET_ASSIGN(const std::vector<int> d_sliding,
               keys.PerLayer("attention.key_length_swa", c->n_layers, d_full[0]));
  c->n_heads = n_heads[0];
  for (size_t l = 0; l < is_sliding.size(); ++l) {
    if (n_heads[l] != c->n_heads) {
      return Refuse(keys.Where("attention.head_count"),
                    fmt::format("{} in layer {}", n_heads[l], l),
                    fmt::format("{}, the same in all layers", c->n_heads));
    }
    LayerDesc layer;
    layer.kind = is_sliding[l] ? LayerKind::kSliding : LayerKind::kFull;
    layer.d_head = is_sliding[l] ? d_sliding[l] : d_full[l];
    layer.n_kv_heads = n_kv[l];
    layer.n_ff = n_ff[l];
    c->layers.push_back(layer);
  }
  return {};
}

int VocabularySize(const gguf::Metadata& metadata, int otherwise) {
  const gguf::Value* tokens = metadata.Find("tokenizer.ggml.tokens");
  return tokens != nullptr && tokens->is_array() ? static_cast<int>(tokens->array_size())
                                                 : otherwise;
}

}  // namespace

Result<Config> ConfigFromGguf(const gguf::Metadata& metadata, const std::string& name) {
  FACET_RETURN_IF_ERROR(CheckArchitecture(metadata, name));
  return ConfigFromGgufKeys(metadata, GgufKeys(metadata, name, kArchitecture));
}

Result<Config> ConfigFromGgufKeys(const gguf::Metadata& metadata, const GgufKeys& keys) {
  Config c;
  if (const gguf::Value* value = metadata.Find("general.name");
      value != nullptr && value->AsString() != nullptr) {
    c.name = *value->AsString();
  }
  FACET_ASSIGN(c.n_layers, keys.Int("block_count", std::nullopt));
  if (c.n_layers < 1 || c.n_layers > 1024) {
    return Refuse(keys.Where("block_count"), fmt::format("{}", c.n_layers), "1 to 1024");
  }
  FACET_ASSIGN(c.n_embd, keys.Int("embedding_length", std::nullopt));
  FACET_ASSIGN(c.n_context, keys.Int("context_length", std::nullopt));
  FACET_ASSIGN(c.n_vocab, keys.Int("vocab_size", VocabularySize(metadata, 0)));
  FACET_ASSIGN(c.sliding_window, keys.Int("attention.sliding_window", 0));
  FACET_ASSIGN(c.n_shared_kv_layers, keys.Int("attention.shared_kv_layers", 0));
  FACET_ASSIGN(c.n_embd_per_layer, keys.Int("embedding_length_per_layer_input", 0));
  FACET_ASSIGN(c.n_experts, keys.Int("expert_count", 0));
  FACET_ASSIGN(c.n_experts_used, keys.Int("expert_used_count", 0));
  FACET_ASSIGN(c.n_ff_expert, keys.Int("expert_feed_forward_length", 0));
  FACET_ASSIGN(c.norm_eps, keys.Float("attention.layer_norm_rms_epsilon", 1e-6F));
  FACET_ASSIGN(c.logit_softcap, keys.Float("final_logit_softcapping", 30.0F));
  FACET_ASSIGN(c.rope_theta_full, keys.Float("rope.freq_base", 1e6F));
  FACET_ASSIGN(c.rope_theta_sliding, keys.Float("rope.freq_base_swa", 1e4F));
  // No key says it: the sizes with per-layer embeddings are causal throughout, the others are not
  // (reference.md 1.10).
  c.has_bidirectional_spans = c.n_embd_per_layer == 0;
  FACET_RETURN_IF_ERROR(ReadLayers(keys, &c));
  return c;
}

Result<GenerationDefaults> DefaultsFromGguf(const gguf::Metadata& metadata,
                                            const std::string& name) {
  GenerationDefaults d;
  const auto number = [&](std::string_view key, double otherwise) -> Result<double> {
    const gguf::Value* value = metadata.Find(key);
    if (value == nullptr) {
      return otherwise;
    }
    if (!value->AsDouble().has_value()) {
      return Refuse(fmt::format("{}, {}", name, key), std::string(gguf::NameOf(value->type)),
                    "a number");
    }
    return *value->AsDouble();
  };
  FACET_ASSIGN(const double temperature, number("general.sampling.temp", d.temperature));
  FACET_ASSIGN(const double top_k, number("general.sampling.top_k", d.top_k));
  FACET_ASSIGN(const double top_p, number("general.sampling.top_p", d.top_p));
  if (!(temperature >= 0 && temperature <= 100 && top_k >= 0 && top_k <= 1e6 && top_p > 0 &&
        top_p <= 1)) {
    return Refuse(name + ", general.sampling",
                  fmt::format("temperature {}, top_k {}, top_p {}", temperature, top_k, top_p),
                  "0 to 100, 0 to 1000000, above 0 and at most 1");
  }
  d.temperature = static_cast<float>(temperature);
  d.top_k = static_cast<int>(top_k);
  d.top_p = static_cast<float>(top_p);
  return d;
}

void SetGgufConfig(const Config& config, gguf::Metadata* metadata) {
  SetGgufKeys(config, kArchitecture, metadata);
  metadata->Set(fmt::format("{}.final_logit_softcapping", kArchitecture),
                gguf::Value::F32(config.logit_softcap));
}

void SetGgufKeys(const Config& c, std::string_view architecture, gguf::Metadata* metadata) {
  using gguf::Value;
  const auto key = [architecture](std::string_view k) {
    return fmt::format("{}.{}", architecture, k);
  };
  const auto set_int = [&](std::string_view k, int v) {
    metadata->Set(key(k), Value::U32(static_cast<uint32_t>(v)));
  };
  const auto set_float = [&](std::string_view k, float v) { metadata->Set(key(k), Value::F32(v)); };
  std::vector<bool> is_sliding;
  std::vector<int32_t> n_ff;
  std::vector<int32_t> n_kv;
  int d_full = 0;
  int d_sliding = 0;
  for (const LayerDesc& layer : c.layers) {
    is_sliding.push_back(layer.kind == LayerKind::kSliding);
    n_ff.push_back(layer.n_ff);
    n_kv.push_back(layer.n_kv_heads);
    (is_sliding.back() ? d_sliding : d_full) = layer.d_head;
  }
  d_full = d_full == 0 ? d_sliding : d_full;
  d_sliding = d_sliding == 0 ? d_full : d_sliding;
  metadata->Set("general.architecture", Value::String(std::string(architecture)));
  metadata->Set("general.name", Value::String(c.name));
  set_int("block_count", c.n_layers);
  set_int("context_length", c.n_context);
  set_int("embedding_length", c.n_embd);
  metadata->Set(key("feed_forward_length"), Value::I32s(n_ff));
  set_int("attention.head_count", c.n_heads);
  metadata->Set(key("attention.head_count_kv"), Value::I32s(n_kv));
  set_float("attention.layer_norm_rms_epsilon", c.norm_eps);
  set_int("attention.key_length", d_full);
  set_int("attention.value_length", d_full);
  set_int("attention.key_length_swa", d_sliding);
  set_int("attention.value_length_swa", d_sliding);
  set_int("attention.sliding_window", c.sliding_window);
  metadata->Set(key("attention.sliding_window_pattern"), Value::Bools(is_sliding));
  set_int("attention.shared_kv_layers", c.n_shared_kv_layers);
  set_int("embedding_length_per_layer_input", c.n_embd_per_layer);
  set_float("rope.freq_base", c.rope_theta_full);
  set_float("rope.freq_base_swa", c.rope_theta_sliding);
  set_int("rope.dimension_count", d_full);
  set_int("rope.dimension_count_swa", d_sliding);
  if (c.n_experts > 0) {
    set_int("expert_count", c.n_experts);
    set_int("expert_used_count", c.n_experts_used);
    set_int("expert_feed_forward_length", c.n_ff_expert);
  }
}

}  // namespace facet
