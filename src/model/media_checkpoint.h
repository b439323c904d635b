// SPDX-License-Identifier: Apache-2.0
// Weights of the encoders on disk: an mmproj GGUF file, or the Hugging Face directory of the whole
// model. Both become one thing with GGUF's tensor names (reference.md 9.3).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "media/media_item.h"
#include "model/checkpoint.h"

namespace facet {

struct VisionConfig {
  bool is_unified = false;  ///< the 12B's embedder of 48-pixel blocks; no layers
  int n_layers = 0;
  int n_embd = 0;
  int n_heads = 0;
  int d_head = 0;
  int n_ff = 0;
  int n_positions = 0;  ///< of each side, in patches (is_unified: blocks)
  bool is_standardised = false;
};

struct AudioConfig {
  bool is_raw = false;  ///< the 12B's embedder of 640 samples; no layers
  int n_layers = 0;
  int n_embd = 0;
  int n_heads = 0;
  int n_ff = 0;
  int n_conv_channels = 0;  ///< of the second convolution; the first has as many as mel bands
  int n_out = 0;            ///< width before the projection
};

struct MediaConfig {
  int n_embd_text = 0;  ///< width of the soft tokens
  std::optional<VisionConfig> vision;
  std::optional<AudioConfig> audio;
  int image_tokens = 280;  ///< the directory's processor_config.json; else the family's

  [[nodiscard]] MediaTraits traits() const;
};

class MediaCheckpoint {
 public:
  /// PATH is an mmproj .gguf or a directory with encoders (config.json names them).
  static Result<MediaCheckpoint> Open(const std::string& path);
  /// The bytes must outlive the checkpoint.
  static Result<MediaCheckpoint> FromGgufBytes(std::span<const std::byte> bytes,
                                               const std::string& name);
  MediaCheckpoint(MediaCheckpoint&&) noexcept;
  MediaCheckpoint& operator=(MediaCheckpoint&&) noexcept;
  ~MediaCheckpoint();

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const MediaConfig& config() const;
  [[nodiscard]] const std::vector<CheckpointTensor>& tensors() const;
  [[nodiscard]] const CheckpointTensor* Find(std::string_view gguf_name) const;
  [[nodiscard]] uint64_t n_bytes() const;  ///< of the tensors

 private:
  struct State;
  explicit MediaCheckpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Whether the encoders belong to the model; refused with both widths otherwise.
Status CheckFits(const MediaCheckpoint& media, const Checkpoint& checkpoint);

}  // namespace facet
