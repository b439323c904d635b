// SPDX-License-Identifier: Apache-2.0
#include "chat/media_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/base64.h"
#include "chat/data_uri.h"
#include "chat/media_part.h"
#include "media/audio.h"
#include "media/prepare_image.h"

namespace facet {
namespace {

constexpr std::string_view kItems = "pictures, frames and windows of sound";

std::span<const std::byte> BytesOf(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

bool IsHttp(std::string_view url) {
  const std::string start = ToLowerAscii(url.substr(0, 8));
  return start.starts_with("http://") || start.starts_with("https://");
}

/// What errors call a file: its path, else the member that has it.
std::string NameOf(const GivenFile& file) {
  return file.form == GivenFile::Form::kPath ? std::string(file.text) : file.where;
}

/// The media of one request, as far as they are read.
class Reading {
 public:
  explicit Reading(const MediaSettings& settings)
      : settings_(settings),
        n_pixels_left_(settings.max_pixels),
        seconds_left_(settings.max_seconds),
        helper_s_left_(settings.max_helper_s) {}

  /// `where`: of the part.
  Status Add(const GivenMedia& media, const std::string& where);
  MediaContent Take() { return std::move(content_); }

 private:
  [[nodiscard]] Status CheckSenses(const GivenMedia& media) const;
  [[nodiscard]] Status CheckRoom(size_t n_more) const;
  Result<Image> ReadImage(const GivenFile& file);
  Status CountPixels(const Image& image);
  Result<MediaHelper> AskHelper() const;
  Result<Waveform> ReadAudio(std::span<const std::byte> bytes, const std::string& name);
  Result<std::string> ReadBytes(const GivenFile& file, size_t max_bytes);
  Result<std::string> FetchUrl(const GivenFile& file, size_t max_bytes) const;
  Status AddItem(MediaItemPtr item, MediaPart* part);

  Status AddImage(const GivenMedia& media, const std::string& where, MediaPart* part);
  Status AddAudio(const GivenFile& file, const std::string& where, MediaPart* part);
  Status AddFrames(const GivenMedia& media, MediaPart* part);
  Status AddVideo(const GivenMedia& media, const std::string& where, MediaPart* part);
  Status AddFrame(const Image& frame, double seconds, const std::string& name, MediaPart* part);

  const MediaSettings& settings_;
  MediaContent content_;
  size_t n_items_ = 0;
  int n_tokens_ = 0;
  size_t n_bytes_ = 0;
  int64_t n_pixels_left_;
  double seconds_left_;
  double helper_s_left_;
};

/// Runs `work` and takes the seconds that it lasted from `left`.
template <typename Work>
auto Timed(double* left, const Work& work) {
  const auto began = std::chrono::steady_clock::now();
  auto result = work();
  *left -= std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return result;
}

Status Reading::Add(const GivenMedia& media, const std::string& where) {
  FACET_RETURN_IF_ERROR(CheckSenses(media));
  MediaPart part;
  part.kind = media.kind;
  const std::string name = media.files.size() == 1 && media.files[0].form == GivenFile::Form::kPath
                               ? NameOf(media.files[0])
                               : where;
  if (media.kind == MediaPartKind::kImage) {
    FACET_RETURN_IF_ERROR(AddImage(media, name, &part));
  } else if (media.kind == MediaPartKind::kAudio) {
    FACET_RETURN_IF_ERROR(AddAudio(media.files[0], name, &part));
  } else if (media.has_frames) {
    FACET_RETURN_IF_ERROR(AddFrames(media, &part));
  } else {
    FACET_RETURN_IF_ERROR(AddVideo(media, name, &part));
  }
  content_.parts.push_back(std::move(part));
  return {};
}

Status Reading::CheckSenses(const GivenMedia& media) const {
  const bool is_sound = media.kind == MediaPartKind::kAudio;
  if (is_sound ? settings_.traits.hears : settings_.traits.sees) {
    return {};
  }
  return Refuse(media.files[0].where,
                is_sound                              ? "sound"
                : media.kind == MediaPartKind::kVideo ? "a video"
                                                      : "a picture",
                fmt::format("none (this model has no encoder for {}; give its projector with "
                            "--mmproj)",
                            is_sound ? "sound" : "pictures"));
}

Status Reading::CheckRoom(size_t n_more) const {
  const auto max_items = static_cast<size_t>(settings_.max_items);
  if (n_more <= max_items - n_items_) {
    return {};
  }
  return Refuse("messages", fmt::format("more than {} {}", max_items, kItems),
                "fewer in one request");
}

Result<std::string> Reading::FetchUrl(const GivenFile& file, size_t max_bytes) const {
  if (!IsHttp(file.text)) {
    return Refuse(file.where, "a URL of another kind", "data:, http:// or https://");
  }
  if (!settings_.fetch) {
    return Refuse(file.where, "a URL of the network", "a data URI (or --media-fetch)");
  }
  FACET_ASSIGN(std::string bytes, settings_.fetch(std::string(file.text), file.where, max_bytes));
  if (bytes.size() > max_bytes) {
    return Refuse(file.where, fmt::format("{} bytes", bytes.size()),
                  fmt::format("at most {}", max_bytes));
  }
  return bytes;
}

Result<std::string> Reading::ReadBytes(const GivenFile& file, size_t max_bytes) {
  const size_t limit = std::min(max_bytes, settings_.max_bytes - n_bytes_);
  const auto read = [&]() -> Result<std::string> {
    switch (file.form) {
      case GivenFile::Form::kBase64:
        return DecodeBase64(file.text, limit, file.where);
      case GivenFile::Form::kPath:
        return settings_.open ? settings_.open(std::string(file.text))
                              : Refuse(file.where, "a path", "a URL (files are not read here)");
      case GivenFile::Form::kUrl:
        break;
    }
    return IsDataUri(file.text) ? DecodeDataUri(file.text, limit, file.where)
                                : FetchUrl(file, limit);
  };
  FACET_ASSIGN(std::string bytes, read());
  if (bytes.empty()) {
    return Refuse(NameOf(file), "no bytes", "a file");
  }
  if (bytes.size() > settings_.max_bytes - n_bytes_) {
    return Refuse("messages", fmt::format("more than {} bytes of media", settings_.max_bytes),
                  "fewer in one request");
  }
  n_bytes_ += bytes.size();
  return bytes;
}

Status Reading::AddItem(MediaItemPtr item, MediaPart* part) {
  FACET_RETURN_IF_ERROR(CheckRoom(1));
  if (item->n_tokens > settings_.max_tokens - n_tokens_) {
    return Refuse("messages", fmt::format("media of more than {} tokens", settings_.max_tokens),
                  "fewer or smaller media");
  }
  ++n_items_;
  n_tokens_ += item->n_tokens;
  part->items.push_back(std::move(item));
  return {};
}

Status Reading::CountPixels(const Image& image) {
  n_pixels_left_ -= int64_t{image.width} * image.height;
  if (n_pixels_left_ < 0) {
    return Refuse("messages",
                  fmt::format("pictures and frames of more than {} pixels", settings_.max_pixels),
                  "fewer or smaller media");
  }
  return {};
}

Result<Image> Reading::ReadImage(const GivenFile& file) {
  FACET_ASSIGN(const std::string bytes, ReadBytes(file, settings_.image_limits.max_bytes));
  FACET_ASSIGN(Image image, DecodeImage(BytesOf(bytes), settings_.image_reading,
                                        settings_.image_limits, NameOf(file)));
  FACET_RETURN_IF_ERROR(CountPixels(image));
  return image;
}

/// The helper, for as long as it may still work.
Result<MediaHelper> Reading::AskHelper() const {
  if (helper_s_left_ <= 0) {
    return Refuse("messages",
                  fmt::format("media that take facet-media more than {} s", settings_.max_helper_s),
                  "fewer or smaller media");
  }
  HelperLimits limits = settings_.helper_limits;
  limits.timeout_s = std::min(limits.timeout_s, static_cast<int>(std::ceil(helper_s_left_)));
  return MediaHelper(settings_.helper, limits);
}

Result<Waveform> Reading::ReadAudio(std::span<const std::byte> bytes, const std::string& name) {
  const auto read = [&]() -> Result<Waveform> {
    if (!IsForHelper(bytes) && !IsVideoFile(bytes)) {
      return DecodeAudio(bytes, settings_.audio_limits, name);
    }
    FACET_ASSIGN(const MediaHelper helper, AskHelper());
    return Timed(&helper_s_left_, [&] { return helper.DecodeAudio(bytes, name); });
  };
  FACET_ASSIGN(Waveform waveform, read());
  seconds_left_ -= waveform.seconds();
  if (seconds_left_ < 0) {
    return Refuse("messages", fmt::format("more than {} s of sound", settings_.max_seconds),
                  "less in one request");
  }
  return waveform;
}

Status Reading::AddImage(const GivenMedia& media, const std::string& where, MediaPart* part) {
  const GivenFile& file = media.files[0];
  FACET_RETURN_IF_ERROR(CheckRoom(1));
  FACET_ASSIGN(const Image image, ReadImage(file));
  const int budget = media.detail == ImageDetail::kLow    ? kImageBudgets.front()
                     : media.detail == ImageDetail::kHigh ? kImageBudgets.back()
                                                          : settings_.image_tokens;
  FACET_ASSIGN(MediaItemPtr item, PrepareImage(image, MediaKind::kImage, budget, NameOf(file)));
  if (int64_t{item->width} * item->height < int64_t{image.width} * image.height) {
    content_.notices.push_back(fmt::format("{}: {}x{} pixels, seen as {}x{} in {} tokens", where,
                                           image.width, image.height, item->width, item->height,
                                           item->n_tokens));
  }
  return AddItem(std::move(item), part);
}

Status Reading::AddAudio(const GivenFile& file, const std::string& where, MediaPart* part) {
  FACET_RETURN_IF_ERROR(CheckRoom(1));
  const size_t max_bytes =
      std::max(settings_.audio_limits.max_bytes, settings_.helper_limits.max_bytes);
  FACET_ASSIGN(const std::string bytes, ReadBytes(file, max_bytes));
  FACET_ASSIGN(const Waveform waveform, ReadAudio(BytesOf(bytes), NameOf(file)));
  FACET_ASSIGN(PreparedAudio prepared,
               PrepareAudio(waveform, settings_.traits.audio_form, settings_.long_audio, where));
  if (!prepared.notice.empty()) {
    content_.notices.push_back(std::move(prepared.notice));
  }
  for (MediaItemPtr& item : prepared.items) {
    FACET_RETURN_IF_ERROR(AddItem(std::move(item), part));
  }
  return {};
}

Status Reading::AddFrame(const Image& frame, double seconds, const std::string& name,
                         MediaPart* part) {
  FACET_ASSIGN(MediaItemPtr item,
               PrepareImage(frame, MediaKind::kVideoFrame, kVideoFrameTokens, name));
  part->seconds.push_back(seconds);
  return AddItem(std::move(item), part);
}

Status Reading::AddFrames(const GivenMedia& media, MediaPart* part) {
  FACET_RETURN_IF_ERROR(CheckRoom(media.files.size()));
  for (size_t i = 0; i < media.files.size(); ++i) {
    const GivenFile& file = media.files[i];
    FACET_ASSIGN(const Image frame, ReadImage(file));
    FACET_RETURN_IF_ERROR(AddFrame(frame, media.seconds[i], NameOf(file), part));
  }
  return {};
}

Status Reading::AddVideo(const GivenMedia& media, const std::string& where, MediaPart* part) {
  const GivenFile& file = media.files[0];
  FrameChoice choice = settings_.frames;
  choice.n_frames = media.n_frames.value_or(choice.n_frames);
  choice.fps = media.fps ? media.fps : choice.fps;
  FACET_RETURN_IF_ERROR(CheckRoom(static_cast<size_t>(choice.n_frames)));
  FACET_ASSIGN(const std::string bytes, ReadBytes(file, settings_.helper_limits.max_bytes));
  if (!IsVideoFile(BytesOf(bytes))) {
    return Refuse(NameOf(file), "a file that is no video", "MP4, MOV, WebM, Matroska, AVI or GIF");
  }
  const auto add = [&](const Image& frame, double seconds) -> Status {
    FACET_RETURN_IF_ERROR(CountPixels(frame));
    return AddFrame(frame, seconds, NameOf(file), part);
  };
  FACET_ASSIGN(const MediaHelper helper, AskHelper());
  FACET_ASSIGN(const VideoFrames video, Timed(&helper_s_left_, [&] {
                 return helper.DecodeVideo(BytesOf(bytes), choice, NameOf(file), add);
               }));
  const auto n_wanted = static_cast<size_t>(media.n_frames.value_or(0));
  if (video.seconds.size() < n_wanted && !choice.fps) {
    content_.notices.push_back(fmt::format("{}: {} frames wanted, of a video that has {}", where,
                                           n_wanted, video.seconds.size()));
  }
  if (video.has_sound) {
    content_.notices.push_back(where + ": the sound of the video is not heard");
  }
  return {};
}

}  // namespace

MediaReader::MediaReader(MediaSettings settings) : settings_(std::move(settings)) {}

Result<MediaContent> MediaReader::Read(const Json& messages) const {
  Reading reading(settings_);
  for (size_t i = 0; i < messages.items().size(); ++i) {
    const Json::Array& parts = messages.items()[i]["content"].items();
    for (size_t n = 0; n < parts.size(); ++n) {
      if (!IsMediaPart(parts[n])) {
        continue;
      }
      const std::string where = fmt::format("messages[{}].content[{}]", i, n);
      FACET_ASSIGN(const GivenMedia media, ReadMediaPart(parts[n], where));
      FACET_RETURN_IF_ERROR(reading.Add(media, where));
    }
  }
  return reading.Take();
}

bool HasMedia(const Json& messages) {
  return std::any_of(messages.items().begin(), messages.items().end(), [](const Json& message) {
    const Json::Array& parts = message["content"].items();
    return std::any_of(parts.begin(), parts.end(), IsMediaPart);
  });
}

}  // namespace facet
