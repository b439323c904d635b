// SPDX-License-Identifier: Apache-2.0
// The media parts of messages, from whatever they are given as to items that a model takes. Parts
// are checked by CheckMessages before; docs/http_api.md tells their forms.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "chat/media_prompt.h"
#include "media/image.h"
#include "media/media_helper.h"
#include "media/media_item.h"
#include "media/prepare_audio.h"
#include "media/video.h"

namespace facet {

struct MediaSettings {
  MediaTraits traits;      ///< of the model; what it does not take is refused
  int image_tokens = 280;  ///< budget of an image that says no `detail`
  ImageReading image_reading = ImageReading::kAsSeen;
  LongAudio long_audio = LongAudio::kCut;
  FrameChoice frames;
  std::string helper;  ///< path of facet-media; empty: none
  ImageLimits image_limits = {};
  AudioLimits audio_limits = {};
  HelperLimits helper_limits = {};
  // Of one request:
  int max_items = 256;                   ///< pictures, frames and windows of sound
  int max_tokens = 1 << 18;              ///< soft tokens; the context, where it is smaller
  size_t max_bytes = size_t{256} << 20;  ///< of all files
  int64_t max_pixels = 400'000'000;      ///< of all pictures and frames, before they are resized
  double max_seconds = 3600;             ///< of all sound
  double max_helper_s = 120;             ///< that the helper may work
  /// Fetches an http or https URL; empty: refused with how to allow it. `where` names the part.
  std::function<Result<std::string>(const std::string& url, const std::string& where,
                                    size_t max_bytes)>
      fetch = {};
  /// Reads a file that a part names by `path`; empty: such parts are refused.
  std::function<Result<std::string>(const std::string& path)> open = {};
};

struct MediaContent {
  std::vector<MediaPart> parts = {};  ///< in the order of the messages
  std::vector<std::string> notices =
      {};  ///< what a user should know: what was cut, shrunk, unheard
};

/// Immutable, so any number of threads may read.
class MediaReader {
 public:
  explicit MediaReader(MediaSettings settings);
  [[nodiscard]] const MediaSettings& settings() const { return settings_; }

  /// Of messages that passed CheckMessages. Files are known by their first bytes, whatever a part
  /// says of them. An error names the member in `where` ("messages[0].content[1].image_url.url"),
  /// or the file that it names by `path`.
  [[nodiscard]] Result<MediaContent> Read(const Json& messages) const;

 private:
  MediaSettings settings_;
};

/// Whether any message has a media part.
bool HasMedia(const Json& messages);

}  // namespace facet
