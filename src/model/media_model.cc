// SPDX-License-Identifier: Apache-2.0
#include "model/media_model.h"

#include <utility>

namespace facet {

struct MediaModel::State {
  MediaConfig config;
};

MediaModel::MediaModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
MediaModel::~MediaModel() = default;

Result<std::unique_ptr<MediaModel>> MediaModel::Make(const MediaCheckpoint& checkpoint,
                                                     const ComputeContext& /*context*/) {
  return Refuse(checkpoint.path(), "not bound yet");
}

const MediaConfig& MediaModel::config() const { return state_->config; }

Result<std::vector<float>> MediaModel::Encode(std::span<const MediaItem* const> /*items*/) {
  return Refuse("media", "not encoded yet");
}

}  // namespace facet
