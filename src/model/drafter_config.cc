// SPDX-License-Identifier: Apache-2.0
#include "model/drafter_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

#include "model/config_parts.h"
#include "model/drafter_names.h"

namespace facet {
namespace {

constexpr std::string_view kArchitecture = "gemma4-assistant";
/// Other programs' names of it, which are also the prefixes of their keys.
constexpr std::array<std::string_view, 3> kArchitectures = {kArchitecture, "gemma4_assistant",
                                                            "gemma4_mtp"};

constexpr int kMaxLayers = 64;
constexpr int kMaxWidth = 1 << 16;
constexpr int kMaxVocabulary = 1 << 24;

/// What a file says of the head; 0: nothing.
struct HeadNumbers {
  int n_embd_target = 0;
  int n_centroids = 0;
  int n_top_centroids = 0;
  std::optional<bool> has_centroids;
};

Status CheckRange(const std::string& where, std::string_view what, int64_t value, int64_t most) {
  if (value < 1 || value > most) {
    return Refuse(where, fmt::format("{} {}", what, value), fmt::format("1 to {}", most));
  }
  return {};
}

/// The tensors of one drafter, whose shapes decide.
class Shapes {
 public:
  Shapes(const std::string& name, const DrafterTensorFinder& find) : name_(name), find_(find) {}

  [[nodiscard]] bool Has(std::string_view tensor) const { return find_(tensor) != nullptr; }

  /// Length of an axis, or `otherwise` where there is no such tensor or axis. Absurd lengths stop
  /// at the largest int, which no range admits.
  [[nodiscard]] int Axis(std::string_view tensor, size_t axis, int otherwise) const {
    const CheckpointTensor* found = find_(tensor);
    if (found == nullptr || axis >= found->shape.size()) {
      return otherwise;
    }
    return static_cast<int>(std::min<int64_t>(found->shape[axis], INT32_MAX));
  }

  [[nodiscard]] Status Check(std::string_view tensor, const std::vector<int64_t>& wanted) const {
    const CheckpointTensor* found = find_(tensor);
    const std::string where = fmt::format("{}, tensor {}", name_, tensor);
    const std::string shape = fmt::format("shape [{}]", fmt::join(wanted, ", "));
    if (found == nullptr) {
      return Refuse(where, "missing", shape);
    }
    if (found->shape != wanted) {
      return Refuse(where, fmt::format("shape [{}]", fmt::join(found->shape, ", ")), shape);
    }
    return {};
  }

 private:
  const std::string& name_;
  const DrafterTensorFinder& find_;
};

/// Its layers are those of a text model; what a drafter never has is refused, and what is the
/// target's is cleared.
Status CompleteBody(const std::string& name, const Shapes& shapes, Config* c) {
  FACET_RETURN_IF_ERROR(CheckRange(name, "layers", c->n_layers, kMaxLayers));
  FACET_RETURN_IF_ERROR(CheckRange(name, "embedding width", c->n_embd, kMaxWidth));
  FACET_RETURN_IF_ERROR(CheckRange(name, "attention heads", c->n_heads, 1024));
  FACET_RETURN_IF_ERROR(CheckRange(name, "context length", c->n_context, 1 << 24));
  if (c->n_vocab == 0) {
    c->n_vocab = shapes.Axis("token_embd.weight", 0, 0);
  }
  FACET_RETURN_IF_ERROR(CheckRange(name, "vocabulary size", c->n_vocab, kMaxVocabulary));
  if (c->n_embd_per_layer != 0 || c->n_experts != 0) {
    return Refuse(name,
                  c->n_experts != 0
                      ? fmt::format("{} experts", c->n_experts)
                      : fmt::format("per-layer embeddings of width {}", c->n_embd_per_layer),
                  "none in a drafter");
  }
  if (!(c->norm_eps > 0 && c->norm_eps < 1)) {
    return Refuse(name, fmt::format("norm epsilon {}", c->norm_eps), "above 0 and below 1");
  }
  for (size_t l = 0; l < c->layers.size(); ++l) {
    LayerDesc& layer = c->layers[l];
    layer.v_is_k = false;
    layer.d_head = shapes.Axis(fmt::format("blk.{}.attn_q_norm.weight", l), 0, layer.d_head);
    layer.n_ff = shapes.Axis(fmt::format("blk.{}.ffn_gate.weight", l), 0, layer.n_ff);
    const std::string where = fmt::format("{}, layer {}", name, l);
    FACET_RETURN_IF_ERROR(CheckRange(where, "head size", layer.d_head, 4096));
    FACET_RETURN_IF_ERROR(CheckRange(where, "KV heads", layer.n_kv_heads, 1024));
    FACET_RETURN_IF_ERROR(CheckRange(where, "feed-forward width", layer.n_ff, 1 << 20));
    if (layer.d_head % 2 != 0) {
      return Refuse(where, fmt::format("head size {}", layer.d_head), "an even number");
    }
  }
  c->n_shared_kv_layers = c->n_layers;
  c->logit_softcap = 0;
  c->has_bidirectional_spans = false;
  return {};
}

/// Both tensors of the centroid head, or neither: then the head is dense.
Status CompleteHead(const std::string& name, const HeadNumbers& said, const Shapes& shapes,
                    DrafterConfig* c) {
  c->n_embd_target =
      said.n_embd_target != 0 ? said.n_embd_target : shapes.Axis(kDrafterPostProjection, 0, 0);
  const Config& body = c->body;
  FACET_RETURN_IF_ERROR(shapes.Check("token_embd.weight", {body.n_vocab, body.n_embd}));
  FACET_RETURN_IF_ERROR(CheckRange(name, "target width", c->n_embd_target, kMaxWidth));
  FACET_RETURN_IF_ERROR(
      shapes.Check(kDrafterPreProjection, {body.n_embd, 2 * int64_t{c->n_embd_target}}));
  FACET_RETURN_IF_ERROR(shapes.Check(kDrafterPostProjection, {c->n_embd_target, body.n_embd}));
  const bool is_there = shapes.Has(kDrafterCentroids) || shapes.Has(kDrafterOrdering);
  if (!said.has_centroids.value_or(is_there)) {
    return {};
  }
  c->n_centroids = said.n_centroids != 0 ? said.n_centroids : shapes.Axis(kDrafterCentroids, 0, 0);
  FACET_RETURN_IF_ERROR(CheckRange(name, "centroids", c->n_centroids, body.n_vocab));
  FACET_RETURN_IF_ERROR(shapes.Check(kDrafterCentroids, {c->n_centroids, body.n_embd}));
  FACET_RETURN_IF_ERROR(shapes.Check(kDrafterOrdering, {body.n_vocab}));
  if (body.n_vocab % c->n_centroids != 0) {
    return Refuse(name, fmt::format("{} tokens in {} clusters", body.n_vocab, c->n_centroids),
                  "clusters of one size");
  }
  c->n_top_centroids = said.n_top_centroids != 0 ? said.n_top_centroids
                                                 : std::min(kDefaultTopCentroids, c->n_centroids);
  return CheckRange(name, "centroids scored", c->n_top_centroids, c->n_centroids);
}

// --- GGUF

std::string ArchitectureOf(const gguf::Metadata& metadata) {
  const gguf::Value* value = metadata.Find("general.architecture");
  const std::string* text = value != nullptr ? value->AsString() : nullptr;
  return text != nullptr ? *text : std::string();
}

/// The number under the first of several names of one key that is there; 0: none is.
Result<int> FirstInt(const GgufKeys& keys, std::initializer_list<std::string_view> names) {
  for (const std::string_view key : names) {
    if (keys.Find(key) == nullptr) {
      continue;
    }
    FACET_ASSIGN(const int number, keys.Int(key, std::nullopt));
    if (number < 1) {
      return Refuse(keys.Where(key), fmt::format("{}", number), "at least 1");
    }
    return number;
  }
  return 0;
}

Result<HeadNumbers> ReadHead(const GgufKeys& keys) {
  HeadNumbers n;
  FACET_ASSIGN(n.n_embd_target,
               FirstInt(keys, {"embedding_length_out", "backbone_hidden_size", "n_embd_backbone"}));
  FACET_ASSIGN(n.n_centroids, FirstInt(keys, {"assistant.num_centroids", "n_centroids"}));
  FACET_ASSIGN(n.n_top_centroids,
               FirstInt(keys, {"assistant.centroid_intermediate_top_k", "centroid_top_k"}));
  for (const std::string_view key :
       {"assistant.use_ordered_embeddings", "use_ordered_embeddings"}) {
    const gguf::Value* value = keys.Find(key);
    if (value == nullptr) {
      continue;
    }
    n.has_centroids = value->AsBool();
    if (!n.has_centroids.has_value()) {
      return Refuse(keys.Where(key), std::string(gguf::NameOf(value->type)), "a bool");
    }
    break;
  }
  return n;
}

// --- Hugging Face

Result<HeadNumbers> ReadHead(const JsonMembers& members) {
  HeadNumbers n;
  FACET_ASSIGN(n.n_embd_target, members.Int("backbone_hidden_size", std::nullopt));
  constexpr std::string_view kOrdered = "use_ordered_embeddings";
  const Json& ordered = members[kOrdered];
  if (!ordered.is_null() && !ordered.is_bool()) {
    return Refuse(members.Where(kOrdered), std::string(ordered.KindName()), "true or false");
  }
  if (ordered.is_bool()) {
    n.has_centroids = ordered.as_bool();
  }
  if (n.has_centroids.value_or(true)) {
    FACET_ASSIGN(n.n_centroids, members.Int("num_centroids", 0));
    FACET_ASSIGN(n.n_top_centroids, members.Int("centroid_intermediate_top_k", 0));
  }
  return n;
}

}  // namespace

bool IsDrafterArchitecture(std::string_view architecture) {
  return std::find(kArchitectures.begin(), kArchitectures.end(), architecture) !=
         kArchitectures.end();
}

Status CheckIsDrafter(const gguf::Metadata& metadata, const std::string& name) {
  const std::string architecture = ArchitectureOf(metadata);
  if (IsDrafterArchitecture(architecture)) {
    return {};
  }
  std::string found = architecture.empty() ? "nothing" : fmt::format("\"{}\"", architecture);
  if (architecture == "clip") {
    found += " (a projector for images or audio)";
  } else if (architecture.starts_with("gemma4")) {
    found += " (a language model)";
  }
  return Refuse(name + ", general.architecture", found,
                fmt::format("\"{}\", a drafter", kArchitecture));
}

Status CheckIsDrafter(const Json& config, const std::string& name) {
  const std::string& type = config["model_type"].as_string();
  if (type == "gemma4_assistant" || type == "gemma4_unified_assistant") {
    return {};
  }
  std::string found = type.empty() ? "nothing" : fmt::format("\"{}\"", type);
  if (type.starts_with("gemma4")) {
    found += " (a language model)";
  }
  return Refuse(name + ", model_type", found,
                "\"gemma4_assistant\" or \"gemma4_unified_assistant\", a drafter");
}

Result<DrafterConfig> DrafterConfigFromGguf(const gguf::Metadata& metadata, const std::string& name,
                                            const DrafterTensorFinder& find) {
  const GgufKeys keys(metadata, name, ArchitectureOf(metadata));
  const Shapes shapes(name, find);
  DrafterConfig c;
  FACET_ASSIGN(c.body, ConfigFromGgufKeys(metadata, keys));
  FACET_ASSIGN(const HeadNumbers head, ReadHead(keys));
  FACET_RETURN_IF_ERROR(CompleteBody(name, shapes, &c.body));
  FACET_RETURN_IF_ERROR(CompleteHead(name, head, shapes, &c));
  return c;
}

Result<DrafterConfig> DrafterConfigFromHf(const Json& config, const std::string& directory,
                                          const DrafterTensorFinder& find) {
  const std::string name = directory + "/config.json";
  if (!config["tie_word_embeddings"].as_bool(true)) {
    return Refuse(name + ", tie_word_embeddings", "false", "true: the table is the output matrix");
  }
  const Shapes shapes(directory, find);
  DrafterConfig c;
  FACET_ASSIGN(c.body,
               ConfigFromTextMembers(JsonMembers(config["text_config"], name + ", text_config")));
  FACET_ASSIGN(const HeadNumbers head, ReadHead(JsonMembers(config, name)));
  FACET_RETURN_IF_ERROR(CompleteBody(name, shapes, &c.body));
  FACET_RETURN_IF_ERROR(CompleteHead(name, head, shapes, &c));
  return c;
}

void SetGgufDrafterConfig(const DrafterConfig& config, gguf::Metadata* metadata) {
  using gguf::Value;
  SetGgufKeys(config.body, kArchitecture, metadata);
  const auto key = [](std::string_view k) { return fmt::format("{}.{}", kArchitecture, k); };
  const auto set_int = [&](std::string_view k, int v) {
    metadata->Set(key(k), Value::U32(static_cast<uint32_t>(v)));
  };
  set_int("embedding_length_out", config.n_embd_target);
  set_int("nextn_predict_layers", config.body.n_layers);
  if (config.n_centroids > 0) {
    set_int("assistant.num_centroids", config.n_centroids);
    set_int("assistant.centroid_intermediate_top_k", config.n_top_centroids);
    metadata->Set(key("assistant.use_ordered_embeddings"), Value::Bool(true));
  }
}

}  // namespace facet
