// SPDX-License-Identifier: Apache-2.0
#include "app/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "app/inspection_values.h"
#include "compute/context.h"
#include "compute/cpu.h"
#include "model/model.h"
#include "model/packing.h"

namespace facet {
namespace {

/// Elements of an array of the metadata that are listed; all are counted.
constexpr size_t kMaxItems = 1024;

int64_t ParametersOf(const InspectionSource& source) {
  int64_t n = 0;
  for (const SourceTensor& tensor : source.tensors()) {
    n += tensor.n_elements();
  }
  return n;
}

Json InspectFile(const InspectionSource& source) {
  return Json::MakeObject({{"path", source.path()},
                           {"format", source.format()},
                           {"files", static_cast<int64_t>(source.n_files())},
                           {"bytes", source.n_bytes()},
                           {"name", source.TextOf("general.name")},
                           {"architecture", source.TextOf("general.architecture")},
                           {"tensors", static_cast<int64_t>(source.tensors().size())},
                           {"parameters", ParametersOf(source)}});
}

Json InspectModel(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  int64_t n_parameters = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    int64_t n_elements = 1;
    for (const int64_t n : tensor.shape) {
      n_elements *= n;
    }
    n_parameters += n_elements;
  }
  const bool is_gguf = checkpoint.gguf_metadata() != nullptr;
  return Json::MakeObject(
      {{"path", checkpoint.path()},
       {"format", is_gguf ? fmt::format("GGUF v{}", checkpoint.gguf_version()) : "Hugging Face"},
       {"files", static_cast<int64_t>(checkpoint.n_files())},
       {"bytes", checkpoint.n_bytes()},
       {"name", config.name},
       {"size", config.size_label},
       {"parameters", n_parameters},
       {"bytes_per_token", BytesPerToken(checkpoint)},
       {"context", config.n_context},
       {"sliding_window", config.sliding_window},
       {"width", config.n_embd},
       {"heads", config.n_heads},
       {"vocabulary", config.n_vocab},
       {"per_layer_width", config.n_embd_per_layer},
       {"shared_kv_layers", config.n_shared_kv_layers},
       {"experts", config.n_experts},
       {"experts_used", config.n_experts_used},
       {"expert_width", config.n_ff_expert}});
}

Json InspectLayers(const Config& config) {
  Json layers = Json(Json::Array());
  for (size_t l = 0; l < config.layers.size(); ++l) {
    const LayerDesc& layer = config.layers[l];
    layers.Append(
        Json::MakeObject({{"index", static_cast<int64_t>(l)},
                          {"kind", layer.kind == LayerKind::kSliding ? "sliding" : "full"},
                          {"heads", config.n_heads},
                          {"kv_heads", layer.n_kv_heads},
                          {"head_size", layer.d_head},
                          {"ff", layer.n_ff},
                          {"kv_layer", layer.kv_layer},
                          {"v_is_k", layer.v_is_k}}));
  }
  return layers;
}

Json InspectTensorTypes(const InspectionSource& source) {
  std::map<std::string_view, std::pair<int64_t, int64_t>> types;  // name -> count, bytes
  int64_t n_all_bytes = 0;
  for (const SourceTensor& tensor : source.tensors()) {
    const auto n_bytes = static_cast<int64_t>(tensor.data.size());
    auto& [n_tensors, n_type_bytes] = types[InfoOf(tensor.type).name];
    ++n_tensors;
    n_type_bytes += n_bytes;
    n_all_bytes += n_bytes;
  }
  Json all = Json(Json::Array());
  for (const auto& [name, sums] : types) {
    const double share =
        static_cast<double>(sums.second) / static_cast<double>(std::max<int64_t>(1, n_all_bytes));
    all.Append(Json::MakeObject(
        {{"type", name}, {"tensors", sums.first}, {"bytes", sums.second}, {"share", share}}));
  }
  return all;
}

Json TokenList(const Vocab& vocab, const std::vector<int32_t>& ids) {
  Json all = Json(Json::Array());
  for (const int32_t id : ids) {
    all.Append(Json::MakeObject(
        {{"id", id}, {"text", id < vocab.size() ? vocab.text(id) : std::string_view()}}));
  }
  return all;
}

Json InspectTokenizer(const LoadedModel& model) {
  const Vocab& vocab = model.vocab();
  std::vector<int32_t> special;
  for (int id = 0; id < vocab.size(); ++id) {
    if (vocab.is_special(id)) {
      special.push_back(id);
    }
  }
  return Json::MakeObject({{"tokens", vocab.size()},
                           {"merges", static_cast<int64_t>(vocab.merges().size())},
                           {"bos", vocab.bos_id()},
                           {"eos", vocab.eos_id()},
                           {"end", TokenList(vocab, model.end_tokens())},
                           {"suppressed", static_cast<int64_t>(model.suppressed_tokens().size())},
                           {"special", TokenList(vocab, special)}});
}

Json InspectTemplate(const LoadedModel& model) {
  const ChatTemplate& chat_template = model.chat_template();
  const TemplateTraits& traits = chat_template.traits();
  Json findings = Json(Json::Array());
  for (const jinja::Finding& finding : chat_template.findings()) {
    findings.Append(Json::MakeObject(
        {{"line", finding.line}, {"column", finding.column}, {"text", finding.text}}));
  }
  const bool is_of_file = !model.checkpoint().chat_template().empty() &&
                          model.checkpoint().chat_template() == chat_template.source();
  return Json::MakeObject({{"source", is_of_file ? "the model's" : "built-in"},
                           {"bytes", static_cast<int64_t>(chat_template.source().size())},
                           {"thinking", traits.knows_thinking},
                           {"tools", traits.knows_tools},
                           {"tool_role", traits.knows_tool_role},
                           {"tool_responses", traits.knows_tool_responses},
                           {"system_parts", traits.knows_system_parts},
                           {"findings", std::move(findings)}});
}

/// Bytes of keys and values per context length and type; null where a type does not suit the model.
Json InspectKvMemory(const Config& config) {
  std::vector<int> lengths;
  for (const int n_context : {4096, 8192, 32768, config.n_context}) {
    if (n_context <= config.n_context &&
        std::find(lengths.begin(), lengths.end(), n_context) == lengths.end()) {
      lengths.push_back(n_context);
    }
  }
  Json rows = Json(Json::Array());
  for (const int n_context : lengths) {
    Json row = Json::MakeObject({{"context", n_context}});
    for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kQ8_0}) {
      RunnerOptions options;
      options.n_context = n_context;
      options.kv_type = type;
      const Result<KvPoolPlan> plan = PlanKv(config, options);
      row.Set(NameOf(type), plan.ok() ? Json(plan->bytes) : Json());
    }
    rows.Append(std::move(row));
  }
  return rows;
}

Json InspectCompute() {
  Json supported = Json(Json::Array());
  for (const Isa isa : SupportedIsas()) {
    supported.Append(NameOf(isa));
  }
  return Json::MakeObject({{"isa", NameOf(BestIsa())},
                           {"supported", std::move(supported)},
                           {"threads", DefaultThreads()}});
}

}  // namespace

Json Inspect(const InspectionSource& source) {
  return Json::MakeObject(
      {{"file", InspectFile(source)}, {"tensor_types", InspectTensorTypes(source)}});
}

void AddModel(const LoadedModel& model, Json* inspection) {
  const Checkpoint& checkpoint = model.checkpoint();
  const GenerationDefaults& defaults = checkpoint.defaults();
  inspection->Set("model", InspectModel(checkpoint));
  inspection->Set("layers", InspectLayers(checkpoint.config()));
  inspection->Set("tokenizer", InspectTokenizer(model));
  inspection->Set("chat_template", InspectTemplate(model));
  inspection->Set("sampling",
                  Json::MakeObject({{"temperature", static_cast<double>(defaults.temperature)},
                                    {"top_k", defaults.top_k},
                                    {"top_p", static_cast<double>(defaults.top_p)}}));
  inspection->Set("kv_memory", InspectKvMemory(checkpoint.config()));
  inspection->Set("compute", InspectCompute());
}

void AddPacking(const Weights& weights, Json* inspection) {
  const PackingPlan plan = PlanPacking(weights, KernelsFor(BestIsa()));
  Json types = Json(Json::Array());
  for (const TensorType type : plan.types) {
    types.Append(InfoOf(type).name);
  }
  inspection->Set("packed_weights", Json::MakeObject({{"matrices", plan.n_matrices},
                                                      {"types", std::move(types)},
                                                      {"file_bytes", plan.file_bytes},
                                                      {"bytes", plan.packed_bytes}}));
}

void AddTensors(const InspectionSource& source, Json* inspection) {
  Json metadata = Json(Json::Array());
  for (const auto& [key, value] : source.metadata().entries()) {
    Json entry = Json::MakeObject({{"key", key}, {"type", TypeText(value)}});
    if (value.is_array()) {
      entry.Set("count", static_cast<int64_t>(value.array_size()));
    }
    entry.Set("value", ValueJson(value, kMaxItems));
    metadata.Append(std::move(entry));
  }
  Json tensors = Json(Json::Array());
  for (const SourceTensor& tensor : source.tensors()) {
    Json shape = Json(Json::Array());
    for (const int64_t d : tensor.shape) {
      shape.Append(d);
    }
    tensors.Append(Json::MakeObject({{"name", tensor.name},
                                     {"source_name", tensor.source_name},
                                     {"shape", std::move(shape)},
                                     {"type", InfoOf(tensor.type).name},
                                     {"bytes", static_cast<int64_t>(tensor.data.size())},
                                     {"file", static_cast<int64_t>(tensor.shard)},
                                     {"offset", tensor.offset}}));
  }
  inspection->Set("metadata", std::move(metadata));
  inspection->Set("tensors", std::move(tensors));
}

void AddEncoders(const MediaCheckpoint& media, const std::string& refused, Json* inspection) {
  const MediaConfig& config = media.config();
  Json encoders = Json::MakeObject({{"file", media.path()},
                                    {"bytes", static_cast<int64_t>(media.n_bytes())},
                                    {"width", config.n_embd_text}});
  if (config.vision) {
    const VisionConfig& v = *config.vision;
    encoders.Set("pictures", Json::MakeObject({{"kind", v.is_unified ? "embedder" : "tower"},
                                               {"layers", v.n_layers},
                                               {"width", v.n_embd},
                                               {"heads", v.n_heads},
                                               {"feed_forward", v.n_ff},
                                               {"positions", v.n_positions},
                                               {"tokens", config.image_tokens}}));
  }
  if (config.audio) {
    constexpr int kTokensPerSecond = 25;
    const AudioConfig& a = *config.audio;
    encoders.Set("sound", Json::MakeObject({{"kind", a.is_raw ? "embedder" : "conformer"},
                                            {"layers", a.n_layers},
                                            {"width", a.n_embd},
                                            {"heads", a.n_heads},
                                            {"feed_forward", a.n_ff},
                                            {"tokens_per_second", kTokensPerSecond}}));
  }
  encoders.Set("refused", refused.empty() ? Json() : Json(refused));
  inspection->Set("encoders", std::move(encoders));
}

void AddDrafter(const DrafterCheckpoint& drafter, const std::string& refused, Json* inspection) {
  const DrafterConfig& config = drafter.config();
  Json layers = Json(Json::Array());
  for (const LayerDesc& layer : config.body.layers) {
    layers.Append(
        Json::MakeObject({{"kind", layer.kind == LayerKind::kSliding ? "sliding" : "full"},
                          {"head_size", layer.d_head},
                          {"ff", layer.n_ff}}));
  }
  inspection->Set("drafter",
                  Json::MakeObject({{"file", drafter.path()},
                                    {"bytes", static_cast<int64_t>(drafter.n_bytes())},
                                    {"target_width", config.n_embd_target},
                                    {"width", config.body.n_embd},
                                    {"heads", config.body.n_heads},
                                    {"vocabulary", config.body.n_vocab},
                                    {"centroids", config.n_centroids},
                                    {"centroids_scored", config.n_top_centroids},
                                    {"layers", std::move(layers)},
                                    {"refused", refused.empty() ? Json() : Json(refused)}}));
}

}  // namespace facet
