// SPDX-License-Identifier: Apache-2.0
// Pictures, video frames and sound in the form that the encoders of a model take, ready to be
// placed in a prompt. Made on any thread (prepare_image.h, prepare_audio.h), encoded by the runner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace facet {

enum class MediaKind { kImage, kVideoFrame, kAudio };

/// What the encoder of sound reads.
enum class AudioForm {
  kLogMel,  ///< log_mel.h (reference.md 4.1)
  kRaw      ///< 640 samples a token (reference.md 4.6)
};

/// What a model takes beside text.
struct MediaTraits {
  bool sees = false;  ///< images, and video as frames
  bool hears = false;
  AudioForm audio_form = AudioForm::kLogMel;
  int image_tokens = 280;  ///< most soft tokens of an image, where nobody says otherwise
};

inline constexpr int kVideoFrameTokens = 70;  ///< most soft tokens of a video frame
inline constexpr int kMostItemTokens = 1120;  ///< of a picture

/// One picture, frame or stretch of sound. Immutable once made.
struct MediaItem {
  MediaKind kind = MediaKind::kImage;
  int n_tokens = 0;  ///< soft tokens it takes in the prompt, at least 1
  int width = 0;     ///< pictures: multiples of 48
  int height = 0;
  std::vector<uint8_t> pixels;  ///< pictures: [height, width, 3], red first
  AudioForm audio_form = AudioForm::kLogMel;
  /// Sound: kLogMel [n_frames, 128], only valid frames; kRaw [n_tokens, 640], the last padded with
  /// zeros.
  std::vector<float> sound;
  int n_frames = 0;  ///< kLogMel
  std::string hash;  ///< SHA-256, 64 hexadecimal digits, of all of the above (HashOf)
};
using MediaItemPtr = std::shared_ptr<const MediaItem>;

/// What `hash` has to be: equal only for items that an encoder cannot tell apart.
std::string HashOf(const MediaItem& item);

/// An item in a prompt: its soft tokens are the positions [begin, begin + n_tokens).
struct PlacedMedia {
  int begin = 0;
  MediaItemPtr item;

  [[nodiscard]] int end() const { return begin + item->n_tokens; }
};

}  // namespace facet
