// SPDX-License-Identifier: Apache-2.0
#include "model/media_model.h"

#include <algorithm>
#include <utility>

#include "model/audio_embedder.h"
#include "model/audio_tower.h"
#include "model/vision_embedder.h"
#include "model/vision_tower.h"

namespace facet {

/// Of each pair one at most is there.
struct MediaModel::State {
  MediaConfig config;
  std::unique_ptr<VisionTower> vision_tower;
  std::unique_ptr<VisionEmbedder> vision_embedder;
  std::unique_ptr<AudioTower> audio_tower;
  std::unique_ptr<AudioEmbedder> audio_embedder;

  [[nodiscard]] Status Check(const MediaItem& item) const;
  /// All items of one sense, in their order, to where they belong in `soft`.
  void EncodeSense(bool is_sound, std::span<const MediaItem* const> items, float* soft);
  void EncodeTogether(bool is_sound, std::span<const MediaItem* const> items, float* soft);
};

MediaModel::MediaModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
MediaModel::~MediaModel() = default;

Result<std::unique_ptr<MediaModel>> MediaModel::Make(const MediaCheckpoint& checkpoint,
                                                     const ComputeContext& context) {
  auto state = std::make_unique<State>();
  state->config = checkpoint.config();
  const MediaConfig& config = state->config;
  if (config.vision.has_value() && config.vision->is_unified) {
    FACET_ASSIGN(state->vision_embedder, VisionEmbedder::Make(checkpoint, context));
  } else if (config.vision.has_value()) {
    FACET_ASSIGN(state->vision_tower, VisionTower::Make(checkpoint, context));
  }
  if (config.audio.has_value() && config.audio->is_raw) {
    FACET_ASSIGN(state->audio_embedder, AudioEmbedder::Make(checkpoint, context));
  } else if (config.audio.has_value()) {
    FACET_ASSIGN(state->audio_tower, AudioTower::Make(checkpoint, context));
  }
  return std::unique_ptr<MediaModel>(new MediaModel(std::move(state)));
}

const MediaConfig& MediaModel::config() const { return state_->config; }

Status MediaModel::State::Check(const MediaItem& item) const {
  if (item.kind == MediaKind::kAudio) {
    if (audio_tower == nullptr && audio_embedder == nullptr) {
      return Refuse("media", "sound, which the model has no encoder for");
    }
    return audio_tower != nullptr ? AudioTower::Check(item) : AudioEmbedder::Check(item);
  }
  if (vision_tower == nullptr && vision_embedder == nullptr) {
    return Refuse("media", "a picture, which the model has no encoder for");
  }
  return vision_tower != nullptr ? vision_tower->Check(item) : vision_embedder->Check(item);
}

void MediaModel::State::EncodeTogether(bool is_sound, std::span<const MediaItem* const> items,
                                       float* soft) {
  if (is_sound) {
    audio_tower != nullptr ? audio_tower->Encode(items, soft) : audio_embedder->Encode(items, soft);
  } else {
    vision_tower != nullptr ? vision_tower->Encode(items, soft)
                            : vision_embedder->Encode(items, soft);
  }
}

void MediaModel::State::EncodeSense(bool is_sound, std::span<const MediaItem* const> items,
                                    float* soft) {
  const int64_t n = config.n_embd_text;
  std::vector<const MediaItem*> chosen;
  int64_t n_tokens = 0;
  for (const MediaItem* item : items) {
    if ((item->kind == MediaKind::kAudio) == is_sound) {
      chosen.push_back(item);
      n_tokens += item->n_tokens;
    }
  }
  if (chosen.empty() || chosen.size() == items.size()) {
    if (!chosen.empty()) {
      EncodeTogether(is_sound, items, soft);
    }
    return;
  }
  std::vector<float> together(static_cast<size_t>(n_tokens * n));
  EncodeTogether(is_sound, chosen, together.data());
  const float* next = together.data();
  for (const MediaItem* item : items) {
    if ((item->kind == MediaKind::kAudio) == is_sound) {
      std::copy_n(next, item->n_tokens * n, soft);
      next += item->n_tokens * n;
    }
    soft += item->n_tokens * n;
  }
}

Result<std::vector<float>> MediaModel::Encode(std::span<const MediaItem* const> items) {
  int64_t n_tokens = 0;
  for (const MediaItem* item : items) {
    FACET_RETURN_IF_ERROR(state_->Check(*item));
    n_tokens += item->n_tokens;
  }
  std::vector<float> soft(static_cast<size_t>(n_tokens * state_->config.n_embd_text));
  state_->EncodeSense(false, items, soft.data());
  state_->EncodeSense(true, items, soft.data());
  return soft;
}

}  // namespace facet
