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

namespace facet {

/// What /help prints.
std::string ChatHelp();

class ChatSession {
 public:
  struct Answer {
    std::string text;  ///< for the user, without a line break at the end; may be empty
    bool is_error = false;
    bool ends = false;  ///< leave the chat
  };

  /// `bytes_per_token`: weights read for one token, for /stats.
  ChatSession(Options options, bool knows_thinking, double bytes_per_token);

  /// Whether the line is a command: "/" and letters. "/usr/bin" is not, and a line that begins with
  /// "//" is text that begins with "/" (TextOf).
  static bool IsCommand(std::string_view line);
  static std::string TextOf(std::string_view line);
  /// "/help", "/reset", ...
  static std::vector<std::string> CommandNames();

  Answer Run(std::string_view line);

  void AddUser(std::string text);
  /// What the model answered, also in part. An empty answer takes the user's message back.
  void AddReply(std::string text, const RequestStats& stats);
  void DropUser();

  [[nodiscard]] ChatRequest MakeChatRequest() const;
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const Json::Array& messages() const { return messages_; }

 private:
  Answer Reset();
  Answer Undo();
  Answer System(std::string_view argument);
  Answer Think(std::string_view argument);
  Answer Params(std::string_view argument);
  Answer Stats() const;
  Answer Save(std::string_view argument) const;
  Answer Load(std::string_view argument);
  [[nodiscard]] std::string ListParams() const;

  Options options_;
  bool knows_thinking_;
  double bytes_per_token_;
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
