// SPDX-License-Identifier: Apache-2.0
#include "app/encoders.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/embedded_model.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

namespace facet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 1000;  // looked at in a folder
constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;

/// Whether the directory's configuration names encoders. One that cannot be read is refused where
/// the model is opened.
bool HasEncoders(const std::string& directory) {
  const std::string path = directory + "/config.json";
  const Result<std::string> text = ReadFile(path, kMaxConfigBytes);
  const Result<Json> config = text.ok() ? ParseJson(*text, path) : text.error();
  return config.ok() &&
         ((*config)["vision_config"].is_object() || (*config)["audio_config"].is_object());
}

Result<std::optional<MediaCheckpoint>> OpenNamed(const std::string& path,
                                                 const Checkpoint& checkpoint) {
  FACET_ASSIGN(MediaCheckpoint media, MediaCheckpoint::Open(path));
  FACET_RETURN_IF_ERROR(CheckFits(media, checkpoint));
  return std::optional(std::move(media));
}

/// What was not asked for must not keep the model from running.
std::optional<MediaCheckpoint> OpenFound(const std::string& path, const Checkpoint& checkpoint) {
  Result<std::optional<MediaCheckpoint>> media = OpenNamed(path, checkpoint);
  if (!media.ok()) {
    Warn(media.error().Message() + "; the model takes text only");
    return std::nullopt;
  }
  return *std::move(media);
}

std::optional<MediaCheckpoint> OpenBeside(const std::string& model, const Checkpoint& checkpoint) {
  const std::vector<std::string> paths = ProjectorsBeside(model);
  if (paths.size() > 1) {
    Warn(fmt::format("{} projectors lie beside the model; --mmproj names the one to be used",
                     paths.size()));
  }
  if (paths.size() != 1) {
    return std::nullopt;
  }
  std::optional<MediaCheckpoint> media = OpenFound(paths[0], checkpoint);
  if (media) {
    Note(fmt::format("using the projector {}", ShownText(paths[0])));
  }
  return media;
}

}  // namespace

std::vector<std::string> ProjectorsBeside(const std::string& model) {
  const std::string parent = fs::path(model).parent_path().string();
  std::vector<std::string> paths;
  std::error_code error;
  size_t n_files = 0;
  for (fs::directory_iterator it(parent.empty() ? "." : parent, error), end;
       !error && it != end && n_files < kMostFiles; it.increment(error), ++n_files) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("mmproj") && name.ends_with(".gguf")) {
      paths.push_back((fs::path(parent) / name).string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Result<std::optional<MediaCheckpoint>> OpenEncoders(const Options& options,
                                                    const Checkpoint& checkpoint) {
  if (options.no_mmproj) {
    return std::optional<MediaCheckpoint>();
  }
  if (!options.mmproj.empty()) {
    return OpenNamed(options.mmproj, checkpoint);
  }
  if (options.model.empty()) {
    FACET_ASSIGN(MediaCheckpoint media,
                 MediaCheckpoint::FromGgufBytes(EmbeddedProjector(), "embedded projector"));
    return std::optional(std::move(media));
  }
  if (!IsDirectory(options.model)) {
    return OpenBeside(options.model, checkpoint);
  }
  return HasEncoders(options.model) ? OpenFound(options.model, checkpoint) : std::nullopt;
}

}  // namespace facet
