// SPDX-License-Identifier: Apache-2.0
#include "model/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "format/safetensors.h"
#include "model/hf_directory.h"
#include "model/hf_names.h"
#include "model/tensor_binder.h"
#include "model/weights.h"

namespace facet {

struct Checkpoint::State {
  std::string path;
  Config config;
  GenerationDefaults defaults;
  std::optional<gguf::File> gguf;
  std::optional<safetensors::File> safetensors;
  std::vector<CheckpointTensor> tensors;
  std::unordered_map<std::string_view, size_t> by_name;  // keys lie in tensors
  uint64_t n_bytes = 0;
  size_t n_media_tensors = 0;
  std::string chat_template;
  Json tokenizer;
  Json tokenizer_config;

  Status FillFromGguf(facet::gguf::File file);
  Status FillFromDirectory(UnknownTensors unknown);
  Status TakeTensors(bool is_tied, UnknownTensors policy);
  /// The last step: indexes the tensors and checks the numbers against them.
  Status Complete(const std::string& config_name);
};

namespace {

/// chat_template.jinja, or chat_template of tokenizer_config.json: a text, or a list of named ones
/// with "default".
Result<std::string> ReadHfTemplate(const std::string& directory, const Json& tokenizer_config) {
  const std::string file = directory + "/chat_template.jinja";
  if (FileExists(file)) {
    return ReadFile(file, kMaxConfigBytes);
  }
  const Json& entry = tokenizer_config["chat_template"];
  for (const Json& named : entry.items()) {
    if (named["name"].as_string() == "default") {
      return named["template"].as_string();
    }
  }
  return entry.as_string();
}

/// Embeddings serve as the output matrix unless config.json says otherwise.
bool IsTied(const Json& config) {
  constexpr std::string_view kKey = "tie_word_embeddings";
  return config[kKey].as_bool(config["text_config"][kKey].as_bool(true));
}

}  // namespace

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Status Checkpoint::State::Complete(const std::string& config_name) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!by_name.emplace(tensors[i].name, i).second) {
      return Refuse(path, fmt::format("tensor {} twice", tensors[i].source_name), "one");
    }
  }
  FACET_RETURN_IF_ERROR(ReconcileGeometry(tensors, path, &config));
  return CompleteConfig(&config, config_name);
}

Status Checkpoint::State::FillFromGguf(facet::gguf::File file) {
  gguf = std::move(file);
  const facet::gguf::Metadata& metadata = gguf->metadata();
  FACET_ASSIGN(config, ConfigFromGguf(metadata, path));
  if (config.name.empty()) {
    config.name = LastPart(path);
  }
  FACET_ASSIGN(defaults, DefaultsFromGguf(metadata, path));
  n_bytes = gguf->n_bytes();
  if (const facet::gguf::Value* value = metadata.Find("tokenizer.chat_template");
      value != nullptr && value->AsString() != nullptr) {
    chat_template = *value->AsString();
  }
  std::vector<std::string> unknown;
  for (const facet::gguf::TensorView& view : gguf->tensors()) {
    tensors.push_back({view.name, view.name, view.type, view.shape, view.data});
    if (!IsTextTensorName(view.name)) {
      unknown.push_back(view.name);
    }
  }
  WarnOfUnknown(path, "a Gemma 4 text model", unknown);
  return Complete(path);
}

Status Checkpoint::State::TakeTensors(bool is_tied, UnknownTensors policy) {
  std::vector<std::string> unknown;
  bool has_output = false;
  for (const safetensors::TensorView& view : safetensors->tensors()) {
    auto name = GgufNameOf(view.name);
    const bool is_output = name == "output.weight";
    has_output = has_output || is_output;
    if (is_output && is_tied) {
      continue;
    }
    if (name.has_value()) {
      tensors.push_back({*std::move(name), view.name, view.type, view.shape, view.data});
    } else if (IsMediaTensor(view.name)) {
      ++n_media_tensors;
    } else if (policy == UnknownTensors::kRefuse) {
      return Refuse(fmt::format("{}, tensor {}", path, view.name),
                    fmt::format("unknown, shape [{}]", fmt::join(view.shape, ", ")),
                    "a tensor of a Gemma 4 model");
    } else {
      unknown.push_back(view.name);
    }
  }
  WarnOfUnknown(path, "a Gemma 4 text model", unknown);
  if (!is_tied && !has_output) {
    return Refuse(path + ", tensor lm_head.weight", "missing",
                  "an output matrix, as tie_word_embeddings is false");
  }
  return {};
}

Status Checkpoint::State::FillFromDirectory(UnknownTensors unknown) {
  const std::string config_path = path + "/config.json";
  FACET_ASSIGN(const Json config_json, ReadJson(config_path, kMaxConfigBytes));
  FACET_ASSIGN(config, ConfigFromHf(config_json, config_path));
  config.name = LastPart(path);
  const std::string generation_path = path + "/generation_config.json";
  FACET_ASSIGN(const Json generation, ReadJsonIfThere(generation_path, kMaxConfigBytes));
  FACET_ASSIGN(defaults, DefaultsFromHf(generation, generation_path));
  FACET_ASSIGN(tokenizer, ReadJsonIfThere(path + "/tokenizer.json", kMaxTokenizerBytes));
  FACET_ASSIGN(tokenizer_config, ReadJsonIfThere(path + "/tokenizer_config.json", kMaxConfigBytes));
  FACET_ASSIGN(chat_template, ReadHfTemplate(path, tokenizer_config));
  FACET_ASSIGN(safetensors, OpenSafetensors(path));
  n_bytes = safetensors->n_bytes();
  FACET_RETURN_IF_ERROR(TakeTensors(IsTied(config_json), unknown));
  return Complete(config_path);
}

Result<Checkpoint> Checkpoint::Open(const std::string& path, UnknownTensors unknown) {
  auto state = std::make_unique<State>();
  state->path = path;
  if (IsDirectory(path)) {
    FACET_RETURN_IF_ERROR(state->FillFromDirectory(unknown));
  } else {
    FACET_ASSIGN(gguf::File file, gguf::File::Open(path));
    FACET_RETURN_IF_ERROR(state->FillFromGguf(std::move(file)));
  }
  return Checkpoint(std::move(state));
}

Result<Checkpoint> Checkpoint::FromGgufBytes(std::span<const std::byte> bytes,
                                             const std::string& name) {
  auto state = std::make_unique<State>();
  state->path = name;
  FACET_ASSIGN(gguf::File file, gguf::File::FromBytes(bytes, name));
  FACET_RETURN_IF_ERROR(state->FillFromGguf(std::move(file)));
  return Checkpoint(std::move(state));
}

const std::string& Checkpoint::path() const { return state_->path; }
const Config& Checkpoint::config() const { return state_->config; }
const GenerationDefaults& Checkpoint::defaults() const { return state_->defaults; }
const std::vector<CheckpointTensor>& Checkpoint::tensors() const { return state_->tensors; }
uint64_t Checkpoint::n_bytes() const { return state_->n_bytes; }
size_t Checkpoint::n_media_tensors() const { return state_->n_media_tensors; }
const std::string& Checkpoint::chat_template() const { return state_->chat_template; }
const Json& Checkpoint::tokenizer_json() const { return state_->tokenizer; }
const Json& Checkpoint::tokenizer_config_json() const { return state_->tokenizer_config; }

const CheckpointTensor* Checkpoint::Find(std::string_view gguf_name) const {
  const auto found = state_->by_name.find(gguf_name);
  return found != state_->by_name.end() ? &state_->tensors[found->second] : nullptr;
}

void Checkpoint::Release(std::span<const std::byte> data) const {
  if (state_->gguf.has_value()) {
    state_->gguf->Release(data);
  }
}

const gguf::Metadata* Checkpoint::gguf_metadata() const {
  return state_->gguf.has_value() ? &state_->gguf->metadata() : nullptr;
}

uint32_t Checkpoint::gguf_version() const {
  return state_->gguf.has_value() ? state_->gguf->version() : 0;
}

size_t Checkpoint::n_files() const {
  return state_->gguf.has_value() ? state_->gguf->n_shards() : 1;
}

}  // namespace facet
