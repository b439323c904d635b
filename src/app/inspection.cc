// SPDX-License-Identifier: Apache-2.0
#include "app/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "app/progress.h"
#include "app/text_width.h"
#include "compute/cpu.h"
#include "model/model.h"
#include "model/weights.h"

namespace facet {
namespace {

constexpr std::array<KvType, 4> kKvTypes = {KvType::kF32, KvType::kF16, KvType::kBf16,
                                            KvType::kQ8_0};

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

Json InspectTensorTypes(const Checkpoint& checkpoint) {
  std::map<std::string_view, std::pair<int64_t, int64_t>> types;  // name -> count, bytes
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    auto& [n_tensors, n_bytes] = types[InfoOf(tensor.type).name];
    ++n_tensors;
    n_bytes += static_cast<int64_t>(tensor.data.size());
  }
  Json all = Json(Json::Array());
  for (const auto& [name, sums] : types) {
    all.Append(Json::MakeObject({{"type", name}, {"tensors", sums.first}, {"bytes", sums.second}}));
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
    for (const KvType type : kKvTypes) {
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

std::string Shown(const Json& text) { return ShownText(text.as_string()); }

/// 2964448 -> "2,964,448"
std::string Grouped(int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (size_t pos = digits.size(); pos > 3;) {
    pos -= 3;
    digits.insert(pos, ",");
  }
  return digits;
}

std::string ShowModel(const Json& model) {
  std::string out =
      fmt::format("{}{}\n", Shown(model["name"]),
                  model["size"].as_string().empty() ? "" : ", size " + Shown(model["size"]));
  const auto line = [&out](std::string_view name, const std::string& text) {
    out += fmt::format("  {:<14}{}\n", name, text);
  };
  line("file", fmt::format("{}, {}, {} file{}, {}", Shown(model["path"]), Shown(model["format"]),
                           model["files"].as_int(), model["files"].as_int() == 1 ? "" : "s",
                           ShownBytes(model["bytes"].as_double())));
  line("parameters", Grouped(model["parameters"].as_int()));
  line("weights read",
       fmt::format("{} per token", ShownBytes(model["bytes_per_token"].as_double())));
  line("context", fmt::format("{} positions, sliding window {}", model["context"].as_int(),
                              model["sliding_window"].as_int()));
  line("width", fmt::format("{}, {} heads, vocabulary {}", model["width"].as_int(),
                            model["heads"].as_int(), model["vocabulary"].as_int()));
  if (model["per_layer_width"].as_int() > 0) {
    line("per layer", fmt::format("embeddings of {}", model["per_layer_width"].as_int()));
  }
  if (model["experts"].as_int() > 0) {
    line("experts", fmt::format("{} of {}, width {}", model["experts_used"].as_int(),
                                model["experts"].as_int(), model["expert_width"].as_int()));
  }
  return out;
}

std::string ShowLayers(const Json& layers) {
  std::string out = "\nLayers\n   #  kind     heads  kv heads  head size     ff  keys and values\n";
  for (const Json& layer : layers.items()) {
    const bool is_own = layer["kv_layer"].as_int() == layer["index"].as_int();
    std::string source = is_own ? "own" : fmt::format("of layer {}", layer["kv_layer"].as_int());
    source += layer["v_is_k"].as_bool() ? ", V is K" : "";
    out += fmt::format("{:>4}  {:<8} {:>5}  {:>8}  {:>9}  {:>5}  {}\n", layer["index"].as_int(),
                       Shown(layer["kind"]), layer["heads"].as_int(), layer["kv_heads"].as_int(),
                       layer["head_size"].as_int(), layer["ff"].as_int(), source);
  }
  return out;
}

std::string ShowTokens(const Json& tokens) {
  std::string out;
  for (const Json& token : tokens.items()) {
    out +=
        fmt::format("{}{} {}", out.empty() ? "" : ", ", token["id"].as_int(), Shown(token["text"]));
  }
  return out;
}

std::string ShowTokenizer(const Json& tokenizer) {
  constexpr size_t kMaxShown = 32;
  const size_t n_special = tokenizer["special"].items().size();
  std::string out = fmt::format("\nTokenizer\n  {} tokens, {} merges, {} special; bos {}, eos {}\n",
                                tokenizer["tokens"].as_int(), tokenizer["merges"].as_int(),
                                n_special, tokenizer["bos"].as_int(), tokenizer["eos"].as_int());
  out += fmt::format("  replies end at: {}\n", ShowTokens(tokenizer["end"]));
  if (tokenizer["suppressed"].as_int() > 0) {
    out += fmt::format("  never drawn: {} tokens\n", tokenizer["suppressed"].as_int());
  }
  if (n_special <= kMaxShown) {
    out += fmt::format("  special: {}\n", ShowTokens(tokenizer["special"]));
  }
  return out;
}

std::string ShowTemplate(const Json& chat_template) {
  std::string knows;
  for (const std::string_view trait :
       {"thinking", "tools", "tool_role", "tool_responses", "system_parts"}) {
    if (chat_template[trait].as_bool()) {
      knows += fmt::format("{}{}", knows.empty() ? "" : ", ", trait);
    }
  }
  std::string out =
      fmt::format("\nChat template\n  {}, {} bytes; knows: {}\n", Shown(chat_template["source"]),
                  chat_template["bytes"].as_int(), knows.empty() ? "none of the extras" : knows);
  for (const Json& finding : chat_template["findings"].items()) {
    out += fmt::format("  line {}, column {}: {}\n", finding["line"].as_int(),
                       finding["column"].as_int(), Shown(finding["text"]));
  }
  return out;
}

std::string ShowKvMemory(const Json& rows) {
  std::string out = "\nMemory for keys and values\n   context";
  for (const KvType type : kKvTypes) {
    out += fmt::format("  {:>9}", NameOf(type));
  }
  for (const Json& row : rows.items()) {
    out += fmt::format("\n  {:>8}", row["context"].as_int());
    for (const KvType type : kKvTypes) {
      const Json& n_bytes = row[NameOf(type)];
      out += fmt::format("  {:>9}", n_bytes.is_null() ? "-" : ShownBytes(n_bytes.as_double()));
    }
  }
  return out + "\n";
}

}  // namespace

Json Inspect(const LoadedModel& model) {
  const Checkpoint& checkpoint = model.checkpoint();
  const GenerationDefaults& defaults = checkpoint.defaults();
  return Json::MakeObject(
      {{"model", InspectModel(checkpoint)},
       {"layers", InspectLayers(checkpoint.config())},
       {"tensor_types", InspectTensorTypes(checkpoint)},
       {"tokenizer", InspectTokenizer(model)},
       {"chat_template", InspectTemplate(model)},
       {"sampling", Json::MakeObject({{"temperature", static_cast<double>(defaults.temperature)},
                                      {"top_k", defaults.top_k},
                                      {"top_p", static_cast<double>(defaults.top_p)}})},
       {"kv_memory", InspectKvMemory(checkpoint.config())},
       {"compute", InspectCompute()}});
}

std::string ShowInspection(const Json& inspection) {
  std::string out =
      ShowModel(inspection["model"]) + ShowLayers(inspection["layers"]) + "\nTensors\n";
  for (const Json& type : inspection["tensor_types"].items()) {
    out += fmt::format("  {:<8}  {:>5}  {:>9}\n", Shown(type["type"]), type["tensors"].as_int(),
                       ShownBytes(type["bytes"].as_double()));
  }
  out += ShowTokenizer(inspection["tokenizer"]) + ShowTemplate(inspection["chat_template"]);
  const Json& sampling = inspection["sampling"];
  out += fmt::format("\nSampling\n  temperature {:.4g}, top-k {}, top-p {:.4g}\n",
                     sampling["temperature"].as_double(), sampling["top_k"].as_int(),
                     sampling["top_p"].as_double());
  out += ShowKvMemory(inspection["kv_memory"]) + "\nInstruction sets\n ";
  for (const Json& isa : inspection["compute"]["supported"].items()) {
    out += fmt::format(" {}{}", isa.as_string(),
                       isa == inspection["compute"]["isa"] ? " (in use)" : "");
  }
  return out + "\n";
}

}  // namespace facet
