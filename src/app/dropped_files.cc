// SPDX-License-Identifier: Apache-2.0
#include "app/dropped_files.h"

#include <algorithm>
#include <iterator>

#include "base/ascii.h"
#include "base/file.h"

namespace facet {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

struct Ending {
  std::string_view text;
  MediaPartKind kind;
};
constexpr Ending kEndings[] = {
    {".jpg", MediaPartKind::kImage},  {".jpeg", MediaPartKind::kImage},
    {".png", MediaPartKind::kImage},  {".webp", MediaPartKind::kImage},
    {".gif", MediaPartKind::kImage},  {".bmp", MediaPartKind::kImage},
    {".wav", MediaPartKind::kAudio},  {".flac", MediaPartKind::kAudio},
    {".ogg", MediaPartKind::kAudio},  {".oga", MediaPartKind::kAudio},
    {".opus", MediaPartKind::kAudio}, {".mp3", MediaPartKind::kAudio},
    {".m4a", MediaPartKind::kAudio},  {".aac", MediaPartKind::kAudio},
    {".mp4", MediaPartKind::kVideo},  {".m4v", MediaPartKind::kVideo},
    {".mov", MediaPartKind::kVideo},  {".webm", MediaPartKind::kVideo},
    {".mkv", MediaPartKind::kVideo},  {".avi", MediaPartKind::kVideo},
};

std::string FromHome(const std::string& path, const std::string& home) {
  const bool is_of_home = path == "~" || path.starts_with("~/");
  return is_of_home && !home.empty() ? home + path.substr(1) : path;
}

/// Takes the next path from `*rest`, which begins with no blank.
Result<std::string> TakePath(std::string_view* rest) {
  std::string path;
  char quote = 0;
  size_t i = 0;
  for (; i < rest->size(); ++i) {
    const char c = (*rest)[i];
    const bool is_literal = quote == '\'';
    if (c == '\\' && !is_literal && i + 1 < rest->size()) {
      path += (*rest)[++i];
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote == 0 && kBlank.find(c) != std::string_view::npos) {
      break;
    } else {
      path += c;
    }
  }
  if (quote != 0) {
    return Refuse("path", std::string("no closing ") + quote, "a path, in quotes or not");
  }
  rest->remove_prefix(i);
  return path;
}

}  // namespace

Result<std::vector<std::string>> SplitPaths(std::string_view line, const std::string& home) {
  std::vector<std::string> paths;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    if (line.empty()) {
      return paths;
    }
    const bool is_quoted = line[0] == '\'' || line[0] == '"' || line[0] == '\\';
    FACET_ASSIGN(std::string path, TakePath(&line));
    paths.push_back(is_quoted ? std::move(path) : FromHome(path, home));
  }
}

std::optional<MediaPartKind> KindOfName(std::string_view path) {
  const std::string name = ToLowerAscii(path);
  const auto* found = std::find_if(std::begin(kEndings), std::end(kEndings),
                                   [&](const Ending& e) { return name.ends_with(e.text); });
  return found == std::end(kEndings) ? std::nullopt : std::optional(found->kind);
}

std::vector<MediaFile> DroppedFiles(std::string_view line, const std::string& home) {
  const Result<std::vector<std::string>> paths = SplitPaths(line, home);
  std::vector<MediaFile> files;
  if (!paths.ok()) {
    return files;
  }
  files.reserve(paths->size());
  for (const std::string& path : *paths) {
    const std::optional<MediaPartKind> kind = KindOfName(path);
    if (!kind || !FileExists(path) || IsDirectory(path)) {
      return {};
    }
    files.push_back({*kind, path});
  }
  return files;
}

}  // namespace facet
