// SPDX-License-Identifier: Apache-2.0
#include "chat/media_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "chat/json_check.h"
#include "media/video.h"

namespace facet {
namespace {

using Form = GivenFile::Form;

constexpr double kMostFps = 1000;
constexpr double kMostSeconds = 1e6;  // of a frame's place in its video

struct PartType {
  std::string_view name;
  MediaPartKind kind;
};
constexpr PartType kPartTypes[] = {
    {"image_url", MediaPartKind::kImage}, {"input_audio", MediaPartKind::kAudio},
    {"audio_url", MediaPartKind::kAudio}, {"video_url", MediaPartKind::kVideo},
    {"image", MediaPartKind::kImage},     {"audio", MediaPartKind::kAudio},
    {"video", MediaPartKind::kVideo},
};

const PartType* TypeOf(const Json& part) {
  const std::string& name = part["type"].as_string();
  const auto* found = std::find_if(std::begin(kPartTypes), std::end(kPartTypes),
                                   [&](const PartType& type) { return type.name == name; });
  return found == std::end(kPartTypes) ? nullptr : found;
}

bool IsText(const Json& value) { return !value.as_string().empty(); }

/// Null is as absent.
bool HasValue(const Json& object, std::string_view key) { return !object[key].is_null(); }

/// The URL of a member `key`: an object with `url`, or the URL itself.
Result<GivenFile> ReadUrl(const Json& part, std::string_view key, const std::string& where) {
  const Json& value = part[key];
  const std::string member = fmt::format("{}.{}", where, key);
  if (IsText(value)) {
    return GivenFile{Form::kUrl, value.as_string(), member};
  }
  FACET_RETURN_IF_ERROR(CheckMember(where, part, key, "an object with url", value.is_object()));
  FACET_RETURN_IF_ERROR(CheckMember(member, value, "url", "a URL", IsText(value["url"])));
  return GivenFile{Form::kUrl, value["url"].as_string(), member + ".url"};
}

Result<GivenFile> ReadPath(const Json& part, const std::string& where) {
  FACET_RETURN_IF_ERROR(CheckMember(where, part, "path", "a path", IsText(part["path"])));
  return GivenFile{Form::kPath, part["path"].as_string(), where + ".path"};
}

Result<ImageDetail> ReadDetail(const Json& image, const std::string& where) {
  static constexpr std::array<std::pair<std::string_view, ImageDetail>, 3> kDetails = {
      {{"low", ImageDetail::kLow}, {"auto", ImageDetail::kAuto}, {"high", ImageDetail::kHigh}}};
  if (!HasValue(image, "detail")) {
    return ImageDetail::kAuto;
  }
  for (const auto& [name, detail] : kDetails) {
    if (image["detail"].as_string() == name) {
      return detail;
    }
  }
  return CheckMember(where, image, "detail", "low, auto or high", false).error();
}

/// The format is a promise that nobody relies on; it is checked so that a client knows at once.
Result<GivenFile> ReadInputAudio(const Json& part, const std::string& where) {
  static constexpr std::string_view kFormats[] = {"wav",  "mp3", "flac", "ogg",
                                                  "opus", "m4a", "aac"};
  const Json& audio = part["input_audio"];
  FACET_RETURN_IF_ERROR(
      CheckMember(where, part, "input_audio", "an object with data and format", audio.is_object()));
  const std::string member = where + ".input_audio";
  FACET_RETURN_IF_ERROR(CheckMember(member, audio, "data", "base64", IsText(audio["data"])));
  const bool is_known = std::find(std::begin(kFormats), std::end(kFormats),
                                  audio["format"].as_string()) != std::end(kFormats);
  FACET_RETURN_IF_ERROR(
      CheckMember(member, audio, "format", "wav, mp3, flac, ogg, opus, m4a or aac", is_known));
  return GivenFile{Form::kBase64, audio["data"].as_string(), member + ".data"};
}

/// A number of the part, above `least` (0 itself is none) and at most `most`.
Result<std::optional<double>> ReadFps(const Json& part, const std::string& where) {
  const Json& fps = part["fps"];
  if (fps.is_null()) {
    return std::optional<double>();
  }
  const double value = fps.as_double();
  if (!fps.is_number() || !(value > 0) || value > kMostFps) {
    return Refuse(where + ".fps", fps.is_number() ? fps.Dump() : FoundValue(&fps),
                  fmt::format("a number above 0, at most {}", kMostFps));
  }
  return std::optional(value);
}

/// How a video file is looked at: `n_frames`, also called `frames`, and `fps`.
Status ReadFrameChoice(const Json& part, const std::string& where, GivenMedia* media) {
  const std::string_view key = HasValue(part, "n_frames") ? "n_frames" : "frames";
  const Json& n_frames = part[key];
  if (!n_frames.is_null()) {
    const int64_t n = n_frames.as_int();
    if (!n_frames.is_integer() || n < 1 || n > kMostVideoFrames) {
      return Refuse(fmt::format("{}.{}", where, key),
                    n_frames.is_number() ? n_frames.Dump() : FoundValue(&n_frames),
                    fmt::format("a whole number from 1 to {}", kMostVideoFrames));
    }
    media->n_frames = static_cast<int>(n);
  }
  FACET_ASSIGN(media->fps, ReadFps(part, where));
  return {};
}

/// When each of `n` frames is shown: `seconds` says, or `fps`.
Result<std::vector<double>> ReadSeconds(const Json& part, size_t n, const std::string& where) {
  std::vector<double> seconds;
  seconds.reserve(n);
  if (!HasValue(part, "seconds")) {
    FACET_ASSIGN(const std::optional<double> fps, ReadFps(part, where));
    if (!fps) {
      return Refuse(where + ".fps", "nothing", "fps, or seconds for each frame");
    }
    for (size_t i = 0; i < n; ++i) {
      seconds.push_back(static_cast<double>(i) / *fps);
    }
    return seconds;
  }
  const Json& list = part["seconds"];
  FACET_RETURN_IF_ERROR(CheckMember(where, part, "seconds", "an array", list.is_array()));
  if (list.items().size() != n) {
    return Refuse(where + ".seconds", fmt::format("{} items", list.items().size()),
                  fmt::format("one for each of {} frames", n));
  }
  for (const Json& item : list.items()) {
    const double value = item.as_double(-1);
    const double least = seconds.empty() ? 0 : seconds.back();
    if (!item.is_number() || !(value >= least) || value > kMostSeconds) {
      return Refuse(fmt::format("{}.seconds[{}]", where, seconds.size()),
                    item.is_number() ? item.Dump() : FoundValue(&item),
                    fmt::format("a number from {} to {}", least, kMostSeconds));
    }
    seconds.push_back(value);
  }
  return seconds;
}

Status ReadFrames(const Json& part, const std::string& where, GivenMedia* media) {
  const Json::Array& frames = part["frames"].items();
  if (frames.empty() || frames.size() > kMostVideoFrames) {
    return Refuse(where + ".frames", fmt::format("{} items", frames.size()),
                  fmt::format("1 to {}", kMostVideoFrames));
  }
  media->has_frames = true;
  media->files.reserve(frames.size());
  for (const Json& frame : frames) {
    const std::string frame_where = fmt::format("{}.frames[{}]", where, media->files.size());
    if (frame.is_object()) {
      FACET_ASSIGN(GivenFile file, ReadPath(frame, frame_where));
      media->files.push_back(std::move(file));
      continue;
    }
    if (!IsText(frame)) {
      return Refuse(frame_where, FoundValue(&frame), "a URL, or an object with path");
    }
    media->files.push_back({Form::kUrl, frame.as_string(), frame_where});
  }
  FACET_ASSIGN(media->seconds, ReadSeconds(part, frames.size(), where));
  return {};
}

Status ReadVideo(const Json& part, const std::string& where, GivenMedia* media) {
  if (part["type"].as_string() == "video_url") {
    FACET_ASSIGN(GivenFile file, ReadUrl(part, "video_url", where));
    media->files.push_back(std::move(file));
    return ReadFrameChoice(part, where, media);
  }
  if (part["frames"].is_array()) {
    return ReadFrames(part, where, media);
  }
  if (!HasValue(part, "path")) {
    return Refuse(where + ".frames", FoundValue(part.Find("frames")), "an array of URLs, or path");
  }
  FACET_ASSIGN(GivenFile file, ReadPath(part, where));
  media->files.push_back(std::move(file));
  return ReadFrameChoice(part, where, media);
}

Result<GivenFile> ReadOneFile(const Json& part, const std::string& where) {
  const std::string& type = part["type"].as_string();
  if (type == "input_audio") {
    return ReadInputAudio(part, where);
  }
  return type == "image_url" || type == "audio_url" ? ReadUrl(part, type, where)
                                                    : ReadPath(part, where);
}

}  // namespace

bool IsMediaPart(const Json& part) { return TypeOf(part) != nullptr; }

Result<GivenMedia> ReadMediaPart(const Json& part, const std::string& where) {
  GivenMedia media;
  media.kind = TypeOf(part)->kind;
  if (media.kind == MediaPartKind::kVideo) {
    FACET_RETURN_IF_ERROR(ReadVideo(part, where, &media));
    return media;
  }
  FACET_ASSIGN(GivenFile file, ReadOneFile(part, where));
  media.files.push_back(std::move(file));
  if (part["image_url"].is_object()) {
    FACET_ASSIGN(media.detail, ReadDetail(part["image_url"], where + ".image_url"));
  }
  return media;
}

std::string_view TemplateType(const Json& part) {
  switch (TypeOf(part)->kind) {
    case MediaPartKind::kImage:
      return "image";
    case MediaPartKind::kAudio:
      return "audio";
    case MediaPartKind::kVideo:
      break;
  }
  return "video";
}

size_t MediaBytes(const Json& messages) {
  size_t n_bytes = 0;
  for (const Json& message : messages.items()) {
    for (const Json& part : message["content"].items()) {
      if (!IsMediaPart(part)) {
        continue;
      }
      for (const std::string_view key : {"image_url", "audio_url", "video_url"}) {
        n_bytes += part[key].as_string().size() + part[key]["url"].as_string().size();
      }
      n_bytes += part["input_audio"]["data"].as_string().size();
      for (const Json& frame : part["frames"].items()) {
        n_bytes += frame.as_string().size();
      }
    }
  }
  return n_bytes;
}

}  // namespace facet
