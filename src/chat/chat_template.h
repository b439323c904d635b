// SPDX-License-Identifier: Apache-2.0
// A chat template and what it can do: turns messages and tools into a prompt. The template of the
// model's file is followed to the letter; what clients send is checked and brought into the form
// that the template knows. Every byte keeps its origin, so that control tokens typed by a user, a
// tool or a tool's description stay text. docs/chat-format.md has the rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "chat/messages.h"
#include "chat/prompt.h"
#include "jinja/template.h"

namespace facet {

struct ChatRequest {
  Json messages;    ///< array in the OpenAI chat shape (CheckMessages)
  Json tools = {};  ///< array, or null
  bool thinking = false;
  bool add_generation_prompt = true;
  Json variables = {};  ///< object of more variables for the template, or null
};

/// What a template can do, found out when it is loaded.
struct TemplateTraits {
  bool knows_tool_role;       ///< writes messages of role tool as results, not as turns
  bool knows_tool_responses;  ///< writes the member tool_responses of assistant messages
  bool knows_system_parts;    ///< writes a first system message in parts as its text
  bool knows_thinking;        ///< enable_thinking changes what it writes
  bool knows_tools;           ///< writes the tools offered
  bool knows_media;           ///< writes the placeholder of a picture
};

/// Immutable, so any number of threads may render.
class ChatTemplate {
 public:
  /// Compiles `source`, or the built-in template where it is empty, and probes what it can do. An
  /// error names the template as `name`, with line and column. The texts of bos and eos are what
  /// the template finds in bos_token and eos_token; only they and the template's own text can
  /// become control tokens.
  static Result<ChatTemplate> Load(std::string_view source, const std::string& name,
                                   std::string bos_text, std::string eos_text);

  /// The source of the built-in template (models/tiny/chat_template.jinja).
  static std::string_view BuiltIn();

  /// Refuses requests that are not in the shape stated, exceed the limits of messages.h, or that
  /// the template itself refuses. Media parts become the template's placeholders (media_prompt.h
  /// has the rest). Tools, thinking and media that the template does not know leave no trace:
  /// callers look at traits().
  [[nodiscard]] Result<Prompt> Render(const ChatRequest& request) const;

  [[nodiscard]] const TemplateTraits& traits() const { return traits_; }
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] bool is_built_in() const { return source_ == BuiltIn(); }
  /// Places that may fail when rendering; see jinja::Finding.
  [[nodiscard]] const std::vector<jinja::Finding>& findings() const { return template_.findings(); }

 private:
  ChatTemplate(jinja::Template compiled, std::string_view source, std::string bos_text,
               std::string eos_text);

  /// Renders messages and tools as they are.
  [[nodiscard]] Result<std::vector<jinja::Run>> RenderRuns(const ChatRequest& request) const;
  void FindTraits();
  void ChooseRewriting();

  jinja::Template template_;
  std::string source_;
  std::string bos_text_;
  std::string eos_text_;
  TemplateTraits traits_ = {};
  Rewriting rewriting_;
};

}  // namespace facet
