// SPDX-License-Identifier: Apache-2.0
#include "app/inspection_source.h"

#include <fmt/format.h>

#include <utility>

#include "app/embedded_model.h"
#include "base/file.h"
#include "base/json.h"
#include "model/hf_names.h"

namespace facet {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;

gguf::Value ScalarValue(const Json& json) {
  using gguf::ValueType;
  gguf::Value value;
  if (json.is_integer()) {
    value.type = ValueType::kInt64;
    value.data = json.as_int();
  } else if (json.is_double()) {
    value.type = ValueType::kFloat64;
    value.data = json.as_double();
  } else if (json.is_bool()) {
    value = gguf::Value::Bool(json.as_bool());
  } else {
    value = gguf::Value::String(json.is_string() ? json.as_string() : json.Dump());
  }
  return value;
}

/// Members of members as "outer.inner"; an array, whatever it holds, is one value.
void Flatten(const Json& json, const std::string& prefix, gguf::Metadata::Entries* entries) {
  for (const auto& [key, member] : json.members()) {
    if (member.is_object() && !member.members().empty()) {
      Flatten(member, prefix + key + ".", entries);  // no deeper than ParseJson allows
    } else if (member.is_array()) {
      std::vector<std::string> items;
      items.reserve(member.items().size());
      for (const Json& item : member.items()) {
        items.push_back(item.is_string() ? item.as_string() : item.Dump());
      }
      entries->emplace_back(prefix + key, gguf::Value::Strings(std::move(items)));
    } else {
      entries->emplace_back(prefix + key, ScalarValue(member));
    }
  }
}

bool IsSafetensors(const std::string& path) {
  return path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json");
}

}  // namespace

int64_t SourceTensor::n_elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) {
    n *= d;
  }
  return n;
}

Status InspectionSource::OpenGguf() {
  FACET_ASSIGN(gguf_, path_.empty() ? gguf::File::FromBytes(EmbeddedModel(), "embedded model")
                                    : gguf::File::Open(path_));
  metadata_ = gguf_->metadata();
  for (const gguf::TensorView& view : gguf_->tensors()) {
    tensors_.push_back(
        {view.name, view.name, view.type, view.shape, view.data, view.shard, view.offset});
  }
  return {};
}

Status InspectionSource::OpenSafetensors(const std::string& path) {
  FACET_ASSIGN(safetensors_, safetensors::File::Open(path));
  for (const safetensors::TensorView& view : safetensors_->tensors()) {
    tensors_.push_back({GgufNameOf(view.name).value_or(view.name), view.name, view.type, view.shape,
                        view.data, view.shard, view.offset});
  }
  return {};
}

Status InspectionSource::ReadConfig() {
  const std::string path = path_ + "/config.json";
  if (!FileExists(path)) {
    return {};
  }
  FACET_ASSIGN(const std::string text, ReadFile(path, kMaxConfigBytes));
  FACET_ASSIGN(const Json config, ParseJson(text, path));
  gguf::Metadata::Entries entries;
  Flatten(config, "", &entries);
  metadata_ = gguf::Metadata(std::move(entries));
  return {};
}

Result<InspectionSource> InspectionSource::Open(const std::string& path) {
  InspectionSource source;
  source.path_ = path;
  if (IsDirectory(path)) {
    const std::string index = path + "/model.safetensors.index.json";
    const std::string single = path + "/model.safetensors";
    if (!FileExists(index) && !FileExists(single)) {
      return Refuse(path, "no weights", "model.safetensors or model.safetensors.index.json");
    }
    FACET_RETURN_IF_ERROR(source.OpenSafetensors(FileExists(index) ? index : single));
    FACET_RETURN_IF_ERROR(source.ReadConfig());
  } else if (IsSafetensors(path)) {
    FACET_RETURN_IF_ERROR(source.OpenSafetensors(path));
  } else {
    FACET_RETURN_IF_ERROR(source.OpenGguf());
  }
  if (path.empty()) {
    source.path_ = "embedded model";
  }
  for (size_t i = 0; i < source.tensors_.size(); ++i) {
    source.by_name_.emplace(source.tensors_[i].name, i);
  }
  return source;
}

std::string InspectionSource::format() const {
  return is_gguf() ? fmt::format("GGUF v{}", gguf_->version()) : "safetensors";
}

size_t InspectionSource::n_files() const {
  return is_gguf() ? gguf_->n_shards() : safetensors_->n_shards();
}

uint64_t InspectionSource::n_bytes() const {
  return is_gguf() ? gguf_->n_bytes() : safetensors_->n_bytes();
}

const SourceTensor* InspectionSource::Find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found != by_name_.end() ? &tensors_[found->second] : nullptr;
}

std::string InspectionSource::TextOf(std::string_view key) const {
  const gguf::Value* value = metadata_.Find(key);
  const std::string* text = value != nullptr ? value->AsString() : nullptr;
  return text != nullptr ? *text : "";
}

}  // namespace facet
