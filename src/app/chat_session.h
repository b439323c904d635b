// SPDX-License-Identifier: Apache-2.0
// A conversation and the commands that act on it: plain state, no terminal and no model, so that
// every command is tested as a function from a line to an answer. chat.h runs it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/options.h"
#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"
#include "engine/request.h"
#include "media/media_item.h"

namespace facet {

/// What /help prints.
std::string ChatHelp();

/// What the chat needs of the model and the user.
struct ChatSettings {
  bool knows_thinking = false;
  double bytes_per_token = 0;  ///< weights read for one token, for /stats
  MediaTraits media;
  std::string home;  ///< folder that ~ stands for; empty: none
};

class ChatSession {
 public:
  struct Answer {
    std::string text;  ///< for the user, without a line break at the end; may be empty
    bool is_error = false;
    bool ends = false;  ///< leave the chat
  };

  /// Media of the options go with the first message.
  ChatSession(Options options, ChatSettings settings);

  /// Whether the line is a command: "/" and letters. "/usr/bin" is not, and a line that begins with
  /// "//" is text that begins with "/" (TextOf).
  static bool IsCommand(std::string_view line);
  static std::string TextOf(std::string_view line);
  /// "/help", "/reset", ...
  static std::vector<std::string> CommandNames();

  Answer Run(std::string_view line);
  /// Files that were dropped onto the terminal go with the next message, as after /image.
  Answer Attach(std::vector<MediaFile> files);

  /// Adds a message with all that is attached; refused where the placeholders of the text do not
  /// suit the files.
  Status AddUser(const std::string& text);
  /// What the model answered, also in part. An empty answer takes the user's message back.
  void AddReply(std::string text, const RequestStats& stats);
  void DropUser();

  [[nodiscard]] ChatRequest MakeChatRequest() const;
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const Json::Array& messages() const { return messages_; }
  [[nodiscard]] const std::vector<MediaFile>& attached() const { return options_.media; }
  [[nodiscard]] const std::string& home() const { return settings_.home; }

 private:
  Answer Reset();
  Answer Undo();
  Answer System(std::string_view argument);
  Answer Think(std::string_view argument);
  Answer Params(std::string_view argument);
  Answer Media(std::string_view name, std::string_view argument);
  Answer Drop();
  [[nodiscard]] Status CheckFile(const MediaFile& file) const;
  [[nodiscard]] std::string ListAttached() const;
  Answer Stats() const;
  Answer Save(std::string_view argument) const;
  Answer Load(std::string_view argument);
  [[nodiscard]] std::string ListParams() const;

  Options options_;  // `media`: what goes with the next message
  ChatSettings settings_;
  Json::Array messages_;  // user and assistant in turn
  RequestStats last_stats_;
  int n_replies_ = 0;
  int n_tokens_ = 0;  // of all replies
};

/// A conversation as /save writes it; docs/usage.md describes it.
struct Conversation {
  std::string system;
  bool think = false;
  Json::Array messages;
};
Json ToJson(const Conversation& conversation);
/// `name` is what errors call the file.
Result<Conversation> ConversationFromJson(const Json& json, const std::string& name);

}  // namespace facet
