// SPDX-License-Identifier: Apache-2.0
#include "model/media_checkpoint.h"

#include <utility>

namespace facet {

struct MediaCheckpoint::State {
  std::string path;
  MediaConfig config;
  std::vector<CheckpointTensor> tensors;
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

Result<MediaCheckpoint> MediaCheckpoint::Open(const std::string& path) {
  return Refuse(path, "not read yet");
}
Result<MediaCheckpoint> MediaCheckpoint::FromGgufBytes(std::span<const std::byte> /*bytes*/,
                                                       const std::string& name) {
  return Refuse(name, "not read yet");
}
const std::string& MediaCheckpoint::path() const { return state_->path; }
const MediaConfig& MediaCheckpoint::config() const { return state_->config; }
const std::vector<CheckpointTensor>& MediaCheckpoint::tensors() const { return state_->tensors; }
const CheckpointTensor* MediaCheckpoint::Find(std::string_view /*gguf_name*/) const {
  return nullptr;
}
uint64_t MediaCheckpoint::n_bytes() const { return 0; }
Status CheckFits(const MediaCheckpoint& media, const Checkpoint& /*checkpoint*/) {
  return Refuse(media.path(), "not read yet");
}

}  // namespace facet
