// SPDX-License-Identifier: Apache-2.0
#include "app/chat_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/dropped_files.h"
#include "app/media_input.h"
#include "app/report.h"
#include "base/file.h"
#include "base/nearest.h"

namespace facet {
namespace {

constexpr uint64_t kMaxConversationBytes = uint64_t{64} << 20;
constexpr int kConversationVersion = 1;
constexpr std::string_view kFormat = "facet-chat";

struct CommandHelpLine {
  std::string_view name;
  std::string_view argument;
  std::string_view help;
};
constexpr std::array<CommandHelpLine, 15> kCommands = {{
    {"/help", "", "this list"},
    {"/reset", "", "forget the conversation, keep the settings"},
    {"/undo", "", "take back the last question and its answer"},
    {"/system", "[TEXT|off]", "show, set or remove the instructions before the conversation"},
    {"/think", "[on|off]", "let the model reason before it answers"},
    {"/params", "[KEY VALUE]", "show the settings, or change one; VALUE default takes it back"},
    {"/image", "[FILE...]", "send pictures with the next message, or show what is attached"},
    {"/audio", "[FILE...]", "the same for sound"},
    {"/video", "[PATH...]", "the same for videos, and for folders of frames"},
    {"/drop", "", "detach what is attached"},
    {"/save", "FILE", "write the conversation to a file"},
    {"/load", "FILE", "go on with a saved conversation"},
    {"/stats", "", "tokens, times and speed of the last answer"},
    {"/exit", "", "leave (so does Ctrl-D)"},
    {"/quit", "", "the same"},
}};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r";
  const size_t begin = text.find_first_not_of(kBlank);
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

ChatSession::Answer Failure(const Error& error) { return {error.Message(), true, false}; }

void ResetToDefault(const OptionSpec& spec, Options* options) {
  const Options defaults;
  std::visit([&](auto field) { options->*field = defaults.*field; }, spec.target);
}

MediaPartKind KindOfCommand(std::string_view name) {
  return name == "/image"   ? MediaPartKind::kImage
         : name == "/audio" ? MediaPartKind::kAudio
                            : MediaPartKind::kVideo;
}

/// A conversation that is loaded elsewhere finds its files again.
std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

/// The text of a message, its media as placeholders.
std::string TextOfContent(const Json& content) {
  if (content.is_string()) {
    return content.as_string();
  }
  std::string text;
  for (const Json& part : content.items()) {
    const std::string& type = part["type"].as_string();
    text += type == "text" ? part["text"].as_string() : fmt::format("<|{}|>", type);
  }
  return text;
}

/// Parts as MessageContent makes them.
Status CheckSavedParts(const Json& content, const std::string& where) {
  if (!content.is_array()) {
    return Refuse(where, std::string(content.KindName()), "a string or an array of parts");
  }
  for (size_t i = 0; i < content.items().size(); ++i) {
    const Json& part = content.items()[i];
    const std::string& type = part["type"].as_string();
    const bool is_text = type == "text" && part["text"].is_string();
    const bool is_media = (type == "image" || type == "audio" || type == "video") &&
                          (part["path"].is_string() || part["frames"].is_array());
    if (!is_text && !is_media) {
      return Refuse(fmt::format("{}[{}]", where, i), "no part that /save writes",
                    "type text, image, audio or video");
    }
  }
  return {};
}

std::string Shorten(const std::string& text) {
  constexpr size_t kMaxCharacters = 60;
  std::string line = text.substr(0, text.find('\n'));
  size_t n_characters = 0;
  size_t end = 0;
  for (; end < line.size() && n_characters < kMaxCharacters; ++n_characters) {
    ++end;
    while (end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80) {
      ++end;
    }
  }
  return end < text.size() ? line.substr(0, end) + "..." : line;
}

}  // namespace

ChatSession::ChatSession(Options options, ChatSettings settings)
    : options_(std::move(options)), settings_(std::move(settings)) {
  for (MediaFile& file : options_.media) {
    file.path = AbsolutePath(file.path);
  }
}

bool ChatSession::IsCommand(std::string_view line) {
  const std::string_view word = Trim(line).substr(0, Trim(line).find_first_of(" \t\n"));
  return word.size() > 1 && word[0] == '/' &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string ChatSession::TextOf(std::string_view line) {
  return std::string(line.starts_with("//") ? line.substr(1) : line);
}

std::vector<std::string> ChatSession::CommandNames() {
  std::vector<std::string> names;
  names.reserve(std::size(kCommands));
  for (const CommandHelpLine& command : kCommands) {
    names.emplace_back(command.name);
  }
  return names;
}

ChatSession::Answer ChatSession::Run(std::string_view line) {
  line = Trim(line);
  const std::string_view name = line.substr(0, line.find_first_of(" \t\n"));
  const std::string_view argument = Trim(line.substr(name.size()));
  if (name == "/system") {
    return System(argument);
  }
  if (name == "/think") {
    return Think(argument);
  }
  if (name == "/params") {
    return Params(argument);
  }
  if (name == "/image" || name == "/audio" || name == "/video") {
    return Media(name, argument);
  }
  if (name == "/save") {
    return Save(argument);
  }
  if (name == "/load") {
    return Load(argument);
  }
  const auto names = CommandNames();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view nearest = Nearest(name, views);
    return {nearest.empty() ? fmt::format("unknown command {} (/help lists them)", name)
                            : fmt::format("unknown command {}, did you mean {}", name, nearest),
            true, false};
  }
  if (!argument.empty()) {
    return Failure(Refuse(std::string(name), fmt::format("\"{}\"", argument), "nothing after it"));
  }
  if (name == "/help") {
    return {ChatHelp()};
  }
  if (name == "/reset") {
    return Reset();
  }
  if (name == "/undo") {
    return Undo();
  }
  if (name == "/drop") {
    return Drop();
  }
  return name == "/stats" ? Stats() : Answer{"", false, true};
}

std::string ChatHelp() {
  std::string text;
  for (const CommandHelpLine& command : kCommands) {
    text += fmt::format("{:<20}  {}\n", fmt::format("{} {}", command.name, command.argument),
                        command.help);
  }
  return text +
         "\nEnter sends. A line that ends in \\ goes on; Alt-Enter or Ctrl-J breaks the line; "
         "\"\"\" opens\n"
         "and closes a block of lines; pasted lines stay together. Ctrl-C stops an answer. A text "
         "that\n"
         "begins with / is typed as //. Files that are dropped onto the terminal are attached;\n"
         "<|image|>, <|audio|> and <|video|> in a message say where they stand in it.";
}

ChatSession::Answer ChatSession::Media(std::string_view name, std::string_view argument) {
  if (argument.empty()) {
    return {ListAttached()};
  }
  std::vector<MediaFile> files;
  const MediaPartKind kind = KindOfCommand(name);
  if (const std::string whole(argument); FileExists(whole)) {  // also with blanks in it
    files.push_back({kind, whole});
    return Attach(std::move(files));
  }
  const Result<std::vector<std::string>> paths = SplitPaths(argument, settings_.home);
  if (!paths.ok()) {
    return Failure(paths.error());
  }
  files.reserve(paths->size());
  for (const std::string& path : *paths) {
    files.push_back({kind, path});
  }
  return Attach(std::move(files));
}

Status ChatSession::CheckFile(const MediaFile& file) const {
  const bool is_sound = file.kind == MediaPartKind::kAudio;
  if (!(is_sound ? settings_.media.hears : settings_.media.sees)) {
    return Refuse(file.path, is_sound ? "sound" : "pictures",
                  "what the model takes (--mmproj names encoders)");
  }
  if (!FileExists(file.path) && !IsDirectory(file.path)) {
    return Refuse(file.path, "no such file");
  }
  if (IsDirectory(file.path) && file.kind != MediaPartKind::kVideo) {
    return Refuse(file.path, "a folder", "a file (a folder of frames goes with /video)");
  }
  return {};
}

ChatSession::Answer ChatSession::Attach(std::vector<MediaFile> files) {
  for (MediaFile& file : files) {
    const Status usable = CheckFile(file);
    if (!usable.ok()) {
      return Failure(usable.error());
    }
    file.path = AbsolutePath(file.path);
  }
  options_.media.insert(options_.media.end(), files.begin(), files.end());
  return {ListAttached()};
}

std::string ChatSession::ListAttached() const {
  std::string text;
  for (const MediaFile& file : options_.media) {
    text += fmt::format("\n  {} {}", NameOf(file.kind), file.path);
  }
  return text.empty() ? "nothing is attached" : "with the next message:" + text;
}

ChatSession::Answer ChatSession::Drop() {
  options_.media.clear();
  return {ListAttached()};
}

ChatSession::Answer ChatSession::Reset() {
  messages_.clear();
  options_.media.clear();
  return {"conversation forgotten"};
}

ChatSession::Answer ChatSession::Undo() {
  if (messages_.empty()) {
    return {"/undo: nothing to take back", true, false};
  }
  if (messages_.back()["role"].as_string() == "assistant") {
    messages_.pop_back();
  }
  const std::string text = TextOfContent(messages_.back()["content"]);
  messages_.pop_back();
  return {fmt::format("taken back: {}", Shorten(text))};
}

ChatSession::Answer ChatSession::System(std::string_view argument) {
  if (argument == "off") {
    options_.system.clear();
    return {"no instructions"};
  }
  if (!argument.empty()) {
    options_.system = argument;
    return {"instructions set"};
  }
  return {options_.system.empty() ? "no instructions" : options_.system};
}

ChatSession::Answer ChatSession::Think(std::string_view argument) {
  if (argument == "on" || argument == "off") {
    options_.think = argument == "on";
    if (options_.think && !settings_.knows_thinking) {
      return {"/think: the model's chat template knows no thinking", true, false};
    }
  } else if (!argument.empty()) {
    return Failure(Refuse("/think", fmt::format("\"{}\"", argument), "on or off"));
  }
  return {fmt::format("thinking is {}", options_.think ? "on" : "off")};
}

std::string ChatSession::ListParams() const {
  std::string text;
  for (const OptionSpec& spec : OptionTable()) {
    if (spec.is_tunable) {
      text += fmt::format("{}{:<18}  {}", text.empty() ? "" : "\n", spec.key,
                          ShowOption(spec, options_));
    }
  }
  return text;
}

ChatSession::Answer ChatSession::Params(std::string_view argument) {
  if (argument.empty()) {
    return {ListParams()};
  }
  const std::string key(argument.substr(0, argument.find_first_of(" \t=")));
  std::string_view value = Trim(argument.substr(key.size()));
  value = value.starts_with('=') ? Trim(value.substr(1)) : value;
  const OptionSpec* spec = FindOptionByKey(key);
  if (spec == nullptr || !spec->is_tunable) {
    return {fmt::format("/params: unknown key \"{}\" (/params lists them)", key), true, false};
  }
  if (value == "default") {
    ResetToDefault(*spec, &options_);
  } else if (!value.empty()) {
    const std::string text(value);
    const Status status = ApplyOption(*spec, std::span(&text, 1), key, &options_);
    if (!status.ok()) {
      return Failure(status.error());
    }
  }
  return {fmt::format("{} is {}", key, ShowOption(*spec, options_))};
}

ChatSession::Answer ChatSession::Stats() const {
  if (n_replies_ == 0) {
    return {"no answer yet"};
  }
  return {fmt::format("{}\nin all    {} answers, {} tokens; {} messages in the conversation",
                      SpeedText(last_stats_, settings_.bytes_per_token), n_replies_, n_tokens_,
                      messages_.size())};
}

ChatSession::Answer ChatSession::Save(std::string_view argument) const {
  if (argument.empty()) {
    return {"/save: no file, wanted /save FILE", true, false};
  }
  const Json json = ToJson({options_.system, options_.think, messages_});
  const Status status = WriteFile(std::string(argument), json.Dump(2) + "\n");
  if (!status.ok()) {
    return Failure(status.error());
  }
  return {fmt::format("{} messages saved to {}", messages_.size(), argument)};
}

ChatSession::Answer ChatSession::Load(std::string_view argument) {
  const std::string path(argument);
  if (path.empty()) {
    return {"/load: no file, wanted /load FILE", true, false};
  }
  const Result<std::string> text = ReadFile(path, kMaxConversationBytes);
  if (!text.ok()) {
    return Failure(text.error());
  }
  const Result<Json> json = ParseJson(*text, path);
  if (!json.ok()) {
    return Failure(json.error());
  }
  Result<Conversation> conversation = ConversationFromJson(*json, path);
  if (!conversation.ok()) {
    return Failure(conversation.error());
  }
  options_.system = std::move(conversation->system);
  options_.think = conversation->think;
  messages_ = std::move(conversation->messages);
  return {fmt::format("{} messages loaded from {}", messages_.size(), path)};
}

Status ChatSession::AddUser(const std::string& text) {
  FACET_ASSIGN(Json content, MessageContent(text, options_.media, options_));
  options_.media.clear();
  messages_.push_back(Json::MakeObject({{"role", "user"}, {"content", std::move(content)}}));
  return {};
}

void ChatSession::AddReply(std::string text, const RequestStats& stats) {
  last_stats_ = stats;
  n_tokens_ += stats.n_generated;
  ++n_replies_;
  if (text.empty()) {
    DropUser();
    return;
  }
  messages_.push_back(Json::MakeObject({{"role", "assistant"}, {"content", std::move(text)}}));
}

void ChatSession::DropUser() {
  FACET_CHECK(!messages_.empty() && messages_.back()["role"].as_string() == "user");
  messages_.pop_back();
}

ChatRequest ChatSession::MakeChatRequest() const {
  ChatRequest request;
  Json::Array all;
  if (!options_.system.empty()) {
    all.push_back(Json::MakeObject({{"role", "system"}, {"content", options_.system}}));
  }
  all.insert(all.end(), messages_.begin(), messages_.end());
  request.messages = Json(std::move(all));
  request.thinking = options_.think;
  return request;
}

Json ToJson(const Conversation& conversation) {
  return Json::MakeObject({{"format", kFormat},
                           {"version", kConversationVersion},
                           {"system", conversation.system},
                           {"think", conversation.think},
                           {"messages", Json(conversation.messages)}});
}

Result<Conversation> ConversationFromJson(const Json& json, const std::string& name) {
  if (json["format"].as_string() != kFormat) {
    return Refuse(name, "no member \"format\" of value \"facet-chat\"",
                  "a conversation that /save wrote");
  }
  if (!json["version"].is_integer() || json["version"].as_int() != kConversationVersion) {
    return Refuse(name + ": version", json["version"].Dump(),
                  fmt::format("{}", kConversationVersion));
  }
  Conversation conversation{json["system"].as_string(), json["think"].as_bool(), {}};
  const Json& messages = json["messages"];
  if (!messages.is_array() || messages.items().size() % 2 != 0) {
    return Refuse(name + ": messages",
                  messages.is_array() ? "an odd number of them" : std::string(messages.KindName()),
                  "an array of questions and answers in turn");
  }
  for (size_t i = 0; i < messages.items().size(); ++i) {
    const Json& message = messages.items()[i];
    const std::string_view role = i % 2 == 0 ? "user" : "assistant";
    const std::string where = fmt::format("{}: messages[{}]", name, i);
    if (message["role"].as_string() != role) {
      return Refuse(where + ".role", message["role"].Dump(), fmt::format("\"{}\"", role));
    }
    if (role == "user" && !message["content"].is_string()) {
      FACET_RETURN_IF_ERROR(CheckSavedParts(message["content"], where + ".content"));
    } else if (!message["content"].is_string()) {
      return Refuse(where + ".content", std::string(message["content"].KindName()), "a string");
    }
    conversation.messages.push_back(
        Json::MakeObject({{"role", role}, {"content", message["content"]}}));
  }
  return conversation;
}

}  // namespace facet
