// SPDX-License-Identifier: Apache-2.0
#include "app/model_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "app/drafting.h"
#include "app/model_folder.h"
#include "app/progress.h"
#include "app/terminal.h"
#include "app/text_width.h"
#include "base/file.h"
#include "base/mapped_file.h"
#include "base/sha256.h"

namespace facet {
namespace {

constexpr uint64_t kMaxTokenBytes = 4096;
constexpr uint64_t kMaxRecordBytes = 4096;

std::string FileNameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string ParentOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

Status MakeFolders(const std::string& path) {
  std::error_code error;
  if (!path.empty()) {
    std::filesystem::create_directories(path, error);
  }
  return error ? Refuse(path, "cannot make the folder: " + error.message()) : Status();
}

Result<std::string> CheckToken(std::string text, const std::string& where) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.erase(text.find_last_not_of(kBlanks) + 1);
  text.erase(0, std::min(text.find_first_not_of(kBlanks), text.size()));
  const bool is_plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  if (text.empty() || text.size() > kMaxTokenBytes || !is_plain) {
    return Refuse(where, "no access token", "one line of printable characters");
  }
  return text;
}

/// Where other programs keep the token; empty when there is no home.
std::string DefaultTokenPath(const Environment& environment) {
  if (const auto folder = environment("HF_HOME")) {
    return *folder + "/token";
  }
  const auto home = environment("HOME");
  return home ? *home + "/.cache/huggingface/token" : "";
}

Result<std::string> ReadToken(const Options& options, const Environment& environment) {
  std::string path = options.token_file;
  if (path.empty()) {
    if (const auto token = environment("HF_TOKEN")) {
      return CheckToken(*token, "HF_TOKEN");
    }
    path = DefaultTokenPath(environment);
    if (path.empty() || !FileExists(path)) {
      return std::string();
    }
  }
  FACET_ASSIGN(std::string text, ReadFile(path, kMaxTokenBytes));
  return CheckToken(std::move(text), path);
}

Result<std::string> CheckEndpoint(const std::string& text) {
  FACET_ASSIGN(const Url url, ParseUrl(text, "--hf-endpoint"));
  if (!url.query.empty()) {
    return Refuse("--hf-endpoint", "a query (?)", "none");
  }
  std::string endpoint = url.Origin() + url.path;
  endpoint.erase(endpoint.find_last_not_of('/') + 1);
  return endpoint;
}

/// Of a file that was there before.
Status CheckDigest(const std::string& path, const std::string& sha256) {
  FACET_ASSIGN(const MappedFile file, MappedFile::Open(path));
  Sha256 hash;
  hash.Add(file.bytes());
  return hash.Hex() == sha256 ? Status() : Refuse(path, "sha256 " + hash.Hex(), sha256);
}

/// The texts by which the command is told a model.
std::vector<std::string*> ModelTexts(Options* options) {
  constexpr std::array<std::string_view, 6> kModelOptions = {"--model", "--against", "--diff",
                                                             "--vocab", "--mmproj",  "--draft"};
  std::vector<std::string*> texts;
  for (const OptionSpec& spec : OptionTable()) {
    const bool names_model =
        std::find(kModelOptions.begin(), kModelOptions.end(), spec.name) != kModelOptions.end();
    const bool is_used = spec.name != "--draft" || WantsDrafter(*options);
    if (names_model && is_used && spec.IsFor(options->command)) {
      texts.push_back(&(options->*std::get<std::string Options::*>(spec.target)));
    }
  }
  const Command command = options->command;
  const bool has_model_word =
      command == Command::kInspect || command == Command::kConvert || command == Command::kQuantize;
  if (has_model_word && !options->words.empty()) {
    texts.push_back(options->words.data());
  }
  return texts;
}

/// Whether the command takes encoders and none are named.
bool WantsEncoders(const Options& options) {
  const OptionSpec* spec = FindOptionByKey("mmproj");
  return spec->IsFor(options.command) && options.mmproj.empty() && !options.no_mmproj;
}

/// Whether the command takes a drafter and none is named.
bool LacksDrafter(const Options& options) {
  const OptionSpec* spec = FindOptionByKey("draft");
  return spec->IsFor(options.command) && options.draft.empty() && WantsDrafter(options);
}

/// The drafter of the folder, or none. One that does not fit is left out, with a line about it,
/// unless the command is to tell why (--spec mtp, facet inspect).
Result<std::string> DrafterOfFolder(const ModelFolder& folder, const std::string& model,
                                    const Options& options) {
  FACET_ASSIGN(std::string drafter, folder.DrafterOrNone());
  if (!drafter.empty() && options.spec != SpecMode::kMtp && options.command != Command::kInspect) {
    if (const Status fits = CheckFoundDrafter(drafter, model); !fits.ok()) {
      Note("drafter left out: " + ShownLine(fits.error().Message()));
      drafter.clear();
    }
  }
  return drafter;
}

/// The encoders and the drafter of the folder of -m are the model's, where the command takes them
/// and none are named. Returns what the line about the model says of them.
Result<std::string> TakeCompanions(const ModelFolder& folder, const std::string& model,
                                   Options* options) {
  std::string text;
  bool lacks_one = false;
  if (WantsEncoders(*options)) {
    FACET_ASSIGN(options->mmproj, folder.ProjectorOrNone());
    lacks_one = options->mmproj.empty();
    text = lacks_one ? "" : fmt::format(" with the projector {}", FileNameOf(options->mmproj));
  }
  if (LacksDrafter(*options)) {
    lacks_one = lacks_one || folder.drafters.empty();
    FACET_ASSIGN(options->draft, DrafterOfFolder(folder, model, *options));
    text += options->draft.empty()
                ? ""
                : fmt::format(" {} the drafter {}", text.empty() ? "with" : "and",
                              FileNameOf(options->draft));
  }
  if (lacks_one) {
    for (const Error& error : folder.unreadable) {
      Note("left out: " + ShownLine(error.Message()));
    }
  }
  return text;
}

/// The model's path, with a line about it and what else is there.
Result<std::string> ModelOfFolder(const std::string& path, bool is_main, Options* options) {
  FACET_ASSIGN(const ModelFolder folder, LookInFolder(path));
  FACET_ASSIGN(std::string model, folder.Model());
  std::string with;
  if (is_main) {
    FACET_ASSIGN(with, TakeCompanions(folder, model, options));
  }
  Note(fmt::format("{}: using {}{}", path, FileNameOf(model), with));
  return model;
}

}  // namespace

Result<std::string> ReadCacheDir(const Options& options, const Environment& environment) {
  if (!options.cache_dir.empty()) {
    return options.cache_dir;
  }
  const auto cache = environment("XDG_CACHE_HOME");
  if (cache && cache->starts_with('/')) {
    return *cache + "/facet/models";
  }
  if (const auto home = environment("HOME")) {
    return *home + "/.cache/facet/models";
  }
  return Refuse("cache of models", "no HOME in the environment", "--cache-dir DIR");
}

Result<SourceSettings> ReadSourceSettings(const Options& options, const Environment& environment) {
  SourceSettings settings;
  FACET_ASSIGN(settings.endpoint, CheckEndpoint(options.hf_endpoint));
  FACET_ASSIGN(settings.token, ReadToken(options, environment));
  FACET_ASSIGN(settings.cache_dir, ReadCacheDir(options, environment));
  return settings;
}

SourceHooks DefaultSourceHooks() {
  return {.note = [](const std::string& line) { Note(line); },
          .wait = [](std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }};
}

std::string ModelSource::FolderOf(const ModelName& name) const {
  const Result<Url> endpoint = ParseUrl(settings_.endpoint, "endpoint");
  FACET_CHECK(endpoint.ok());
  return fmt::format("{}/{}", settings_.cache_dir, CachePathOfRepository(name, *endpoint));
}

std::string ModelSource::RecordOf(const ModelName& name) const {
  const Result<Url> endpoint = ParseUrl(settings_.endpoint, "endpoint");
  FACET_CHECK(endpoint.ok());
  return fmt::format("{}/{}", settings_.cache_dir, CachePathOfChoice(name, *endpoint));
}

Result<std::vector<ModelSource::Item>> ModelSource::ItemsOfUrl(const std::string& url) const {
  const size_t question = std::min(url.find('?'), url.size());
  FACET_ASSIGN(const std::vector<std::string> parts, PartsOf(url.substr(0, question)));
  std::vector<Item> items;
  std::string folder;  // of the first part: all of them must lie side by side
  for (const std::string& part : parts) {
    Item item{.url = part + url.substr(question), .path = ""};
    FACET_ASSIGN(const std::string path, CachePathOfUrl(item.url));
    folder = folder.empty() ? fmt::format("{}/{}", settings_.cache_dir, ParentOf(path)) : folder;
    item.path = fmt::format("{}/{}", folder, FileNameOf(path));
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<ModelSource::Item> ModelSource::ItemsOfFiles(const ModelName& name,
                                                         const std::vector<HubFile>& files) const {
  const std::string folder = FolderOf(name);
  std::vector<Item> items;
  items.reserve(files.size());
  for (const HubFile& file : files) {
    items.push_back({.url = FileUrl(name, file.path, settings_.endpoint),
                     .path = fmt::format("{}/{}", folder, file.path),
                     .sha256 = file.sha256,
                     .size = file.size});
  }
  return items;
}

Result<std::vector<ModelSource::Item>> ModelSource::ItemsOf(const ModelName& name) const {
  if (!name.url.empty()) {
    return ItemsOfUrl(name.url);
  }
  FACET_ASSIGN(const std::vector<std::string> parts, PartsOf(name.file));
  std::vector<HubFile> files;
  files.reserve(parts.size());
  for (const std::string& part : parts) {
    files.push_back({.path = part});
  }
  return ItemsOfFiles(name, files);
}

Result<std::optional<std::string>> ModelSource::Find(const ModelName& name) const {
  std::optional<std::string> none;
  if (!name.url.empty() || !name.file.empty()) {
    FACET_ASSIGN(const std::vector<Item> items, ItemsOf(name));
    const bool is_there = std::all_of(items.begin(), items.end(),
                                      [](const Item& item) { return FileExists(item.path); });
    return is_there ? std::optional(items[0].path) : none;
  }
  const std::string record = RecordOf(name);
  if (!FileExists(record)) {
    return none;
  }
  FACET_ASSIGN(std::string model, ReadFile(record, kMaxRecordBytes));
  model.erase(model.find_last_not_of('\n') + 1);
  if (model.empty()) {
    return FileExists(FolderOf(name) + "/config.json") ? std::optional(FolderOf(name)) : none;
  }
  if (!IsSafeRelativePath(model)) {
    return Refuse(record, "not the path of a file", "the record deleted");
  }
  ModelName file = name;
  file.tag.clear();
  file.file = model;
  return Find(file);
}

DownloadHooks ModelSource::QuietHooks() const {
  return {.on_progress = [](uint64_t, uint64_t) {}, .on_note = hooks_.note, .wait = hooks_.wait};
}

Status ModelSource::Fetch(const Item& item) const {
  if (FileExists(item.path)) {
    return {};
  }
  FACET_RETURN_IF_ERROR(MakeFolders(ParentOf(item.path)));
  hooks_.note(fmt::format("downloading {} to {}", item.url, item.path));
  const std::string title = FileNameOf(item.path);
  std::optional<ProgressLine> line;
  const DownloadHooks hooks{.on_progress =
                                [&](uint64_t done, uint64_t total) {
                                  if (!line) {
                                    line.emplace(title);
                                  }
                                  line->Update(done, total);
                                },
                            .on_note =
                                [&](const std::string& text) {
                                  line.reset();  // A note has a line of its own.
                                  hooks_.note(text);
                                },
                            .wait = hooks_.wait};
  const bool is_of_endpoint = item.url.starts_with(settings_.endpoint + "/");
  return Download({.url = item.url,
                   .path = item.path,
                   .token = is_of_endpoint ? settings_.token : std::string(),
                   .sha256 = item.sha256,
                   .size = item.size},
                  hooks);
}

Result<HubChoice> ModelSource::Choose(const ModelName& name) const {
  const std::string url = ListingUrl(name, settings_.endpoint);
  const std::string where = fmt::format("hf:{}/{}", name.owner, name.repository);
  FACET_ASSIGN(const std::string text,
               DownloadText(url, settings_.token, kMaxListingBytes, QuietHooks()));
  FACET_ASSIGN(const std::vector<HubFile> files, ParseListing(text, where));
  FACET_ASSIGN(HubChoice choice, ChooseModel(files, name.tag, where));
  if (choice.n_candidates > 1 && name.tag.empty()) {
    hooks_.note(fmt::format("{}: taking {} of {} models; :TAG or /FILE names another", where,
                            choice.model, choice.n_candidates));
  }
  return choice;
}

Result<std::string> ModelSource::PullChosen(const ModelName& name) const {
  FACET_ASSIGN(const HubChoice choice, Choose(name));
  for (const Item& item : ItemsOfFiles(name, choice.files)) {
    FACET_RETURN_IF_ERROR(Fetch(item));
  }
  // Last: while it is missing, not all files are there.
  const std::string record = RecordOf(name);
  FACET_RETURN_IF_ERROR(MakeFolders(ParentOf(record)));
  FACET_RETURN_IF_ERROR(WriteFile(record, choice.model + "\n"));
  return FolderOf(name) + (choice.model.empty() ? "" : "/" + choice.model);
}

Result<std::string> ModelSource::Pull(const PullRequest& request) const {
  const ModelName& name = request.name;
  const bool is_one_file = !name.url.empty() || !name.file.empty();
  const bool wants_one_file = !request.output.empty() || !request.sha256.empty();
  if (!is_one_file && wants_one_file) {
    return Refuse(request.output.empty() ? "--sha256" : "--output", "a name without a file",
                  "hf:OWNER/REPOSITORY/FILE or a URL");
  }
  if (!is_one_file) {
    FACET_ASSIGN(const std::optional<std::string> found, Find(name));
    return found ? Result<std::string>(*found) : PullChosen(name);
  }
  FACET_ASSIGN(std::vector<Item> items, ItemsOf(name));
  if (wants_one_file && items.size() > 1) {
    return Refuse(request.output.empty() ? "--sha256" : "--output",
                  fmt::format("a model of {} files", items.size()), "one file");
  }
  if (!request.output.empty()) {
    items[0].path = request.output;
    if (FileExists(request.output)) {
      return Refuse(request.output, "is there already", "another name");
    }
  }
  items[0].sha256 = request.sha256;
  if (!request.sha256.empty() && FileExists(items[0].path)) {
    FACET_RETURN_IF_ERROR(CheckDigest(items[0].path, request.sha256));
  }
  for (const Item& item : items) {
    FACET_RETURN_IF_ERROR(Fetch(item));
  }
  return items[0].path;
}

Status ResolveModelNames(const Environment& environment, Options* options) {
  for (std::string* text : ModelTexts(options)) {
    if (IsModelName(*text)) {
      FACET_ASSIGN(const SourceSettings settings, ReadSourceSettings(*options, environment));
      FACET_ASSIGN(const ModelName name, ParseModelName(*text));
      FACET_ASSIGN(*text, ModelSource(settings, DefaultSourceHooks()).Pull({.name = name}));
    }
  }
  return {};
}

Status ResolveModelFolders(Options* options) {
  for (std::string* text : ModelTexts(options)) {
    if (text == &options->mmproj || options->command == Command::kConvert ||
        !IsModelFolder(*text)) {
      continue;
    }
    if (text == &options->draft) {
      FACET_ASSIGN(const ModelFolder folder, LookInFolder(*text));
      FACET_ASSIGN(*text, folder.Drafter());
    } else {
      const bool is_main = text == &options->model || text == options->words.data();
      FACET_ASSIGN(*text, ModelOfFolder(*text, is_main, options));
    }
  }
  return {};
}

}  // namespace facet
