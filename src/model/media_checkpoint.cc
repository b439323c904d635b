// SPDX-License-Identifier: Apache-2.0
#include "model/media_checkpoint.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "model/hf_directory.h"
#include "model/hf_media_names.h"
#include "model/hf_names.h"
#include "model/media_config.h"
#include "model/media_layout.h"
#include "model/tensor_binder.h"

namespace facet {

struct MediaCheckpoint::State {
  std::string path;
  MediaConfig config;
  std::optional<gguf::File> gguf;
  std::optional<safetensors::File> safetensors;
  OwnedTensors owned;
  std::vector<CheckpointTensor> tensors;
  std::unordered_map<std::string_view, size_t> by_name;  // keys lie in tensors
  uint64_t n_bytes = 0;

  Status FillFromGguf(facet::gguf::File file);
  Status FillFromDirectory();
  /// When all tensors are there.
  Status Index();
  [[nodiscard]] const CheckpointTensor* Find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found != by_name.end() ? &tensors[found->second] : nullptr;
  }
};

MediaTraits MediaConfig::traits() const {
  return {.sees = vision.has_value(),
          .hears = audio.has_value(),
          .audio_form = audio && audio->is_raw ? AudioForm::kRaw : AudioForm::kLogMel,
          .image_tokens = image_tokens};
}

MediaCheckpoint::MediaCheckpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
MediaCheckpoint::MediaCheckpoint(MediaCheckpoint&&) noexcept = default;
MediaCheckpoint& MediaCheckpoint::operator=(MediaCheckpoint&&) noexcept = default;
MediaCheckpoint::~MediaCheckpoint() = default;

Status MediaCheckpoint::State::Index() {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!by_name.emplace(tensors[i].name, i).second) {
      return Refuse(path, fmt::format("tensor {} twice", tensors[i].source_name), "one");
    }
    n_bytes += tensors[i].data.size();
  }
  return {};
}

Status MediaCheckpoint::State::FillFromGguf(facet::gguf::File file) {
  gguf = std::move(file);
  tensors.reserve(gguf->tensors().size());
  for (const facet::gguf::TensorView& view : gguf->tensors()) {
    tensors.push_back({view.name, view.name, view.type, view.shape, view.data});
    ArrangeFromGguf(&tensors.back(), &owned);
  }
  FACET_RETURN_IF_ERROR(Index());
  FACET_ASSIGN(config, MediaConfigFromGguf(gguf->metadata(), path,
                                           [this](std::string_view name) { return Find(name); }));
  return {};
}

Status MediaCheckpoint::State::FillFromDirectory() {
  FACET_ASSIGN(const Json config_json, ReadJson(path + "/config.json", kMaxConfigBytes));
  FACET_ASSIGN(const Json processor,
               ReadJsonIfThere(path + "/processor_config.json", kMaxConfigBytes));
  FACET_ASSIGN(safetensors, OpenSafetensors(path));
  std::vector<std::string> unknown;
  for (const facet::safetensors::TensorView& view : safetensors->tensors()) {
    if (!IsMediaTensor(view.name)) {
      continue;
    }
    auto name = MediaGgufNameOf(view.name);
    if (!name.has_value()) {
      unknown.push_back(view.name);
      continue;
    }
    tensors.push_back({*std::move(name), view.name, view.type, view.shape, view.data});
    ArrangeFromHf(&tensors.back(), &owned);
  }
  WarnOfUnknown(path, "Gemma 4's encoders", unknown);
  FACET_RETURN_IF_ERROR(Index());
  FACET_ASSIGN(config, MediaConfigFromHf(config_json, processor, path,
                                         [this](std::string_view name) { return Find(name); }));
  return {};
}

Result<MediaCheckpoint> MediaCheckpoint::Open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  if (IsDirectory(path)) {
    FACET_RETURN_IF_ERROR(state->FillFromDirectory());
  } else {
    FACET_ASSIGN(gguf::File file, gguf::File::Open(path));
    FACET_RETURN_IF_ERROR(state->FillFromGguf(std::move(file)));
  }
  return MediaCheckpoint(std::move(state));
}

Result<MediaCheckpoint> MediaCheckpoint::FromGgufBytes(std::span<const std::byte> bytes,
                                                       const std::string& name) {
  auto state = std::make_unique<State>();
  state->path = name;
  FACET_ASSIGN(gguf::File file, gguf::File::FromBytes(bytes, name));
  FACET_RETURN_IF_ERROR(state->FillFromGguf(std::move(file)));
  return MediaCheckpoint(std::move(state));
}

const std::string& MediaCheckpoint::path() const { return state_->path; }
const MediaConfig& MediaCheckpoint::config() const { return state_->config; }
const std::vector<CheckpointTensor>& MediaCheckpoint::tensors() const { return state_->tensors; }
uint64_t MediaCheckpoint::n_bytes() const { return state_->n_bytes; }

const CheckpointTensor* MediaCheckpoint::Find(std::string_view gguf_name) const {
  return state_->Find(gguf_name);
}

Status CheckFits(const MediaCheckpoint& media, const Checkpoint& checkpoint) {
  const int found = media.config().n_embd_text;
  const int wanted = checkpoint.config().n_embd;
  if (found != wanted) {
    return Refuse(media.path(), fmt::format("soft tokens of width {}", found),
                  fmt::format("{}, the width of {}", wanted, checkpoint.path()));
  }
  return {};
}

}  // namespace facet
