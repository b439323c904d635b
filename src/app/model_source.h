// SPDX-License-Identifier: Apache-2.0
// Models by their names on the network (net/model_name.h): found in the cache, or downloaded into
// it. In the cache a file lies below a folder of its server, and a name always means the same path;
// for a name without a file, a record tells what was chosen. What is there is used without the
// network; to have it anew, delete it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/status.h"
#include "net/download.h"
#include "net/hub.h"
#include "net/model_name.h"

namespace facet {

struct SourceSettings {
  std::string endpoint;   ///< of hf: names, without '/' at its end
  std::string token;      ///< for that server only; empty: none
  std::string cache_dir;  ///< made when needed
};

/// Options, else environment (HF_TOKEN, XDG_CACHE_HOME, HOME), else files of other programs (the
/// token). The token is in no error.
Result<SourceSettings> ReadSourceSettings(const Options& options, const Environment& environment);

/// Where downloads and other models that can be made again are kept: --cache-dir, else by the
/// environment (XDG_CACHE_HOME, HOME). It may not exist yet.
Result<std::string> ReadCacheDir(const Options& options, const Environment& environment);

struct SourceHooks {
  std::function<void(const std::string& line)> note;
  std::function<void(std::chrono::milliseconds)> wait;
};

/// Lines on standard error, and sleep.
SourceHooks DefaultSourceHooks();

struct PullRequest {
  ModelName name;
  std::string output = {};  ///< path of the file; empty: in the cache
  std::string sha256 = {};  ///< of the file, lower-case hexadecimal; empty: what the server says
};

class ModelSource {
 public:
  ModelSource(SourceSettings settings, SourceHooks hooks)
      : settings_(std::move(settings)), hooks_(std::move(hooks)) {}

  /// The path to open, if all of the model is in the cache. Without the network.
  [[nodiscard]] Result<std::optional<std::string>> Find(const ModelName& name) const;
  /// The path to open, once everything is there.
  [[nodiscard]] Result<std::string> Pull(const PullRequest& request) const;

 private:
  /// One file of a model.
  struct Item {
    std::string url;
    std::string path;
    std::string sha256 = {};
    std::optional<uint64_t> size = {};
  };
  [[nodiscard]] Result<std::vector<Item>> ItemsOf(const ModelName& name) const;
  [[nodiscard]] Result<std::vector<Item>> ItemsOfUrl(const std::string& url) const;
  [[nodiscard]] std::vector<Item> ItemsOfFiles(const ModelName& name,
                                               const std::vector<HubFile>& files) const;
  [[nodiscard]] Result<HubChoice> Choose(const ModelName& name) const;
  [[nodiscard]] Result<std::string> PullChosen(const ModelName& name) const;
  [[nodiscard]] Status Fetch(const Item& item) const;
  [[nodiscard]] DownloadHooks QuietHooks() const;
  [[nodiscard]] std::string FolderOf(const ModelName& name) const;
  [[nodiscard]] std::string RecordOf(const ModelName& name) const;

  SourceSettings settings_;
  SourceHooks hooks_;
};

/// Replaces every name among the texts by which the command is told a model by the path of the
/// model, which is downloaded if need be.
Status ResolveModelNames(const Environment& environment, Options* options);

/// Replaces every folder of GGUF files (model_folder.h) among them by the model in it, and tells
/// so; a projector and a drafter in the folder of the command's own model are what --mmproj and
/// --draft did not name. A folder that --draft names becomes the drafter in it. facet convert takes
/// only directories of Hugging Face.
Status ResolveModelFolders(Options* options);

}  // namespace facet
