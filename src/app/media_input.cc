// SPDX-License-Identifier: Apache-2.0
#include "app/media_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "app/dropped_files.h"
#include "base/file.h"
#include "media/video.h"

namespace facet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHelperName = "facet-media";
constexpr size_t kMostFrameFiles = 100'000;  // in a folder
constexpr std::array kKinds = {MediaPartKind::kImage, MediaPartKind::kAudio, MediaPartKind::kVideo};

bool IsProgram(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// The folders in which the helper may lie, the likeliest first.
std::vector<fs::path> HelperFolders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    folders.push_back(program.parent_path());
    folders.push_back(program.parent_path() / ".." / "libexec" / "facet");
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? std::string_view() : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (rest[0] == '/') {  // never what lies in the working directory
      folders.emplace_back(rest.substr(0, end));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return folders;
}

/// The next placeholder from `begin` on.
struct FoundPlaceholder {
  size_t begin = std::string::npos;
  MediaPartKind kind = MediaPartKind::kImage;
};
FoundPlaceholder FindPlaceholder(const std::string& text, size_t begin) {
  FoundPlaceholder first;
  for (const MediaPartKind kind : kKinds) {
    const size_t found = text.find(PlaceholderOf(kind), begin);
    if (found < first.begin) {
      first = {found, kind};
    }
  }
  return first;
}

Status CheckPlaceholders(const std::string& text, std::span<const MediaFile> files) {
  for (const MediaPartKind kind : kKinds) {
    const auto n_files = std::count_if(files.begin(), files.end(),
                                       [kind](const MediaFile& file) { return file.kind == kind; });
    int64_t n_found = 0;
    const std::string_view placeholder = PlaceholderOf(kind);
    for (size_t pos = text.find(placeholder); pos != std::string::npos;
         pos = text.find(placeholder, pos + placeholder.size())) {
      ++n_found;
    }
    if (n_found != n_files) {
      return Refuse("prompt",
                    fmt::format("{} {} for {} --{}", n_found, placeholder, n_files, NameOf(kind)),
                    "a placeholder for each file, or none at all");
    }
  }
  return {};
}

Result<std::vector<std::string>> PicturesIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  size_t n_files = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (++n_files > kMostFrameFiles) {
      return Refuse(folder, fmt::format("more than {} files", kMostFrameFiles), "fewer frames");
    }
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.') && KindOfName(name) == MediaPartKind::kImage) {
      paths.push_back(it->path().string());
    }
  }
  if (error) {
    return Refuse(folder, error.message(), "a folder that can be read");
  }
  if (paths.empty()) {
    return Refuse(folder, "no pictures", "the frames of a video");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<Json> FolderPart(const std::string& folder, const Options& options) {
  FACET_ASSIGN(const std::vector<std::string> paths, PicturesIn(folder));
  const double fps = static_cast<double>(options.video_fps.value_or(1.0F));
  Json frames = Json(Json::Array());
  Json seconds = Json(Json::Array());
  for (const int64_t index :
       ChooseFrames(static_cast<int64_t>(paths.size()), fps, {.n_frames = options.video_frames})) {
    frames.Append(Json::MakeObject({{"path", paths[static_cast<size_t>(index)]}}));
    seconds.Append(static_cast<double>(index) / fps);
  }
  return Json::MakeObject(
      {{"type", "video"}, {"frames", std::move(frames)}, {"seconds", std::move(seconds)}});
}

}  // namespace

std::string FindMediaHelper(const std::string& named) {
  if (!named.empty()) {
    return named;
  }
  for (const fs::path& folder : HelperFolders()) {
    if (IsProgram(folder / kHelperName)) {
      return (folder / kHelperName).string();
    }
  }
  return {};
}

MediaSettings MediaSettingsFrom(const Options& options, const MediaTraits& traits,
                                const std::string& folder) {
  MediaSettings settings;
  settings.traits = traits;
  settings.image_tokens = options.image_tokens.value_or(traits.image_tokens);
  settings.image_reading =
      options.image_reading == "reference" ? ImageReading::kAsReference : ImageReading::kAsSeen;
  settings.long_audio = options.long_audio == "split"    ? LongAudio::kSplit
                        : options.long_audio == "refuse" ? LongAudio::kRefuse
                                                         : LongAudio::kCut;
  settings.frames.n_frames = options.video_frames;
  if (options.video_fps) {
    settings.frames.fps = static_cast<double>(*options.video_fps);
  }
  settings.helper = FindMediaHelper(options.media_helper);
  settings.max_items = std::max(settings.max_items, options.video_frames);
  const uint64_t most = std::max({settings.image_limits.max_bytes, settings.audio_limits.max_bytes,
                                  settings.helper_limits.max_bytes});
  settings.open = [folder, most](const std::string& path) {
    return ReadFile((fs::path(folder) / path).string(), most);
  };
  return settings;
}

std::string_view PlaceholderOf(MediaPartKind kind) {
  switch (kind) {
    case MediaPartKind::kImage:
      return "<|image|>";
    case MediaPartKind::kAudio:
      return "<|audio|>";
    case MediaPartKind::kVideo:
      break;
  }
  return "<|video|>";
}

std::string_view NameOf(MediaPartKind kind) { return PlaceholderOf(kind).substr(2, 5); }

Result<std::vector<MessagePiece>> ArrangeMedia(const std::string& text,
                                               std::span<const MediaFile> files) {
  std::vector<MessagePiece> pieces;
  const bool is_placed = !files.empty() && FindPlaceholder(text, 0).begin != std::string::npos;
  if (!is_placed) {
    for (const MediaFile& file : files) {
      pieces.push_back({.file = &file});
    }
    if (!text.empty() || files.empty()) {
      pieces.push_back({.text = text});
    }
    return pieces;
  }
  FACET_RETURN_IF_ERROR(CheckPlaceholders(text, files));
  std::array<size_t, kKinds.size()> next = {};  // file of each kind
  size_t begin = 0;
  while (true) {
    const FoundPlaceholder found = FindPlaceholder(text, begin);
    if (std::min(found.begin, text.size()) > begin) {
      pieces.push_back({.text = text.substr(begin, found.begin - begin)});
    }
    if (found.begin == std::string::npos) {
      return pieces;
    }
    size_t& i = next[static_cast<size_t>(found.kind)];
    while (files[i].kind != found.kind) {
      ++i;
    }
    pieces.push_back({.file = &files[i++]});
    begin = found.begin + PlaceholderOf(found.kind).size();
  }
}

Result<Json> MediaPartOf(const MediaFile& file, const Options& options) {
  if (file.kind == MediaPartKind::kVideo && IsDirectory(file.path)) {
    return FolderPart(file.path, options);
  }
  return Json::MakeObject({{"type", NameOf(file.kind)}, {"path", file.path}});
}

Result<Json> MessageContent(const std::string& text, std::span<const MediaFile> files,
                            const Options& options) {
  if (files.empty()) {
    return Json(text);
  }
  FACET_ASSIGN(const std::vector<MessagePiece> pieces, ArrangeMedia(text, files));
  Json parts = Json(Json::Array());
  for (const MessagePiece& piece : pieces) {
    if (piece.file == nullptr) {
      parts.Append(Json::MakeObject({{"type", "text"}, {"text", piece.text}}));
      continue;
    }
    FACET_ASSIGN(Json part, MediaPartOf(*piece.file, options));
    parts.Append(std::move(part));
  }
  return parts;
}

}  // namespace facet
