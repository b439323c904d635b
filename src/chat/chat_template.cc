// SPDX-License-Identifier: Apache-2.0
#include "chat/chat_template.h"

#include <fmt/format.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <utility>

#include "chat/media_part.h"

// builtin_template.S
extern "C" const char facet_builtin_template[];
extern "C" const uint64_t facet_builtin_template_size;

namespace facet {
namespace {

constexpr std::string_view kOwnVariables[] = {
    "messages", "tools", "enable_thinking", "add_generation_prompt", "bos_token", "eos_token"};

Status CheckVariables(const Json& variables) {
  if (!variables.is_null() && !variables.is_object()) {
    return Refuse("variables", std::string(variables.KindName()), "an object");
  }
  for (const std::string_view name : kOwnVariables) {
    if (variables.contains(name)) {
      return Refuse(fmt::format("variables.{}", name), "a name with a meaning of its own",
                    "another name");
    }
  }
  return {};
}

// Probes use words that no template writes by itself.
constexpr std::string_view kQuestion = "Qq1";
constexpr std::string_view kFunction = "Qf2";
constexpr std::string_view kResult = "Qr3";
constexpr std::string_view kSystem = "Qs4";
constexpr std::string_view kNoRole = "Qz5";
constexpr std::string_view kImagePlaceholder = "<|image|>";

Json Message(std::string_view role, Json content) {
  return Json::MakeObject({{"role", role}, {"content", std::move(content)}});
}

Json Question() { return Message("user", kQuestion); }

Json Call() {
  Json message = Message("assistant", "");
  message.Set("tool_calls",
              Json::MakeArray({Json::MakeObject(
                  {{"id", "c1"},
                   {"type", "function"},
                   {"function",
                    Json::MakeObject({{"name", kFunction}, {"arguments", Json::Object()}})}})}));
  return message;
}

Json ResultMessage(std::string_view role) {
  Json message = Message(role, kResult);
  message.Set("tool_call_id", "c1");
  message.Set("name", kFunction);
  return message;
}

Json Tool() {
  return Json::MakeObject(
      {{"type", "function"},
       {"function",
        Json::MakeObject(
            {{"name", kFunction},
             {"description", "d"},
             {"parameters",
              Json::MakeObject(
                  {{"type", "object"},
                   {"properties",
                    Json::MakeObject(
                        {{"a", Json::MakeObject({{"type", "string"}, {"description", "d"}})}})},
                   {"required", Json::MakeArray({"a"})}})}})}});
}

std::string WithoutSpaces(std::string_view text) {
  std::string rest;
  for (const char c : text) {
    if (c != ' ' && c != '\n') {
      rest.push_back(c);
    }
  }
  return rest;
}

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::Load(std::string_view source, const std::string& name,
                                        std::string bos_text, std::string eos_text) {
  if (source.empty()) {
    source = BuiltIn();
  }
  FACET_ASSIGN(jinja::Template compiled, jinja::Template::Compile(source, name));
  ChatTemplate loaded(std::move(compiled), source, std::move(bos_text), std::move(eos_text));
  loaded.FindTraits();
  loaded.ChooseRewriting();
  return loaded;
}

std::string_view ChatTemplate::BuiltIn() {
  return {facet_builtin_template, static_cast<size_t>(facet_builtin_template_size)};
}

ChatTemplate::ChatTemplate(jinja::Template compiled, std::string_view source, std::string bos_text,
                           std::string eos_text)
    : template_(std::move(compiled)),
      source_(source),
      bos_text_(std::move(bos_text)),
      eos_text_(std::move(eos_text)) {}

Result<Prompt> ChatTemplate::Render(const ChatRequest& request) const {
  size_t bytes_left = kMaxRequestBytes + MediaBytes(request.messages);
  FACET_RETURN_IF_ERROR(CheckSize(request.messages, "messages", bytes_left));
  FACET_RETURN_IF_ERROR(CheckSize(request.tools, "tools", bytes_left));
  FACET_RETURN_IF_ERROR(CheckSize(request.variables, "variables", bytes_left));
  FACET_RETURN_IF_ERROR(CheckMessages(request.messages));
  FACET_RETURN_IF_ERROR(CheckTools(request.tools));
  FACET_RETURN_IF_ERROR(CheckVariables(request.variables));

  ChatRequest rewritten = {.messages = RewriteMessages(request.messages, rewriting_),
                           .tools = RewriteTools(request.tools),
                           .thinking = request.thinking,
                           .add_generation_prompt = request.add_generation_prompt,
                           .variables = request.variables};
  FACET_ASSIGN(std::vector<jinja::Run> runs, RenderRuns(rewritten));
  Prompt prompt;
  for (jinja::Run& run : runs) {
    prompt.runs.push_back({std::move(run.text), run.origin == jinja::Origin::kTemplate});
  }
  return prompt;
}

Result<std::vector<jinja::Run>> ChatTemplate::RenderRuns(const ChatRequest& request) const {
  Json::Object context = {{"messages", request.messages},
                          {"enable_thinking", request.thinking},
                          {"add_generation_prompt", request.add_generation_prompt},
                          {"bos_token", bos_text_},
                          {"eos_token", eos_text_}};
  if (!request.tools.items().empty()) {
    context.emplace_back("tools", request.tools);
  }
  const Json::Object& variables = request.variables.members();
  context.insert(context.end(), variables.begin(), variables.end());
  return template_.Render(context, {"bos_token", "eos_token"}, std::time(nullptr));
}

void ChatTemplate::FindTraits() {
  // Nothing where the template fails: it does not know what it cannot write.
  const auto probe = [this](Json::Array messages, Json tools,
                            bool thinking) -> std::optional<std::string> {
    const auto runs = RenderRuns(
        {.messages = std::move(messages), .tools = std::move(tools), .thinking = thinking});
    return runs.ok() ? std::optional(jinja::JoinRuns(*runs)) : std::nullopt;
  };
  const auto writes = [](const std::optional<std::string>& text, std::string_view word) {
    return text.has_value() && text->find(word) != std::string::npos;
  };

  // Role tool is known when it is not written as just any role is.
  const auto as_tool = probe({Question(), Call(), ResultMessage("tool")}, {}, false);
  const auto as_any = probe({Question(), Call(), ResultMessage(kNoRole)}, {}, false);
  traits_.knows_tool_role = writes(as_tool, kResult) &&
                            (!as_any.has_value() || Replaced(*as_any, kNoRole, "tool") != *as_tool);

  Json answered = Call();
  answered.Set("tool_responses",
               Json::MakeArray({Json::MakeObject({{"name", kFunction}, {"response", kResult}})}));
  traits_.knows_tool_responses = writes(probe({Question(), answered}, {}, false), kResult);

  const Json parts = Json::MakeArray({Json::MakeObject({{"type", "text"}, {"text", kSystem}})});
  const auto in_parts = probe({Message("system", parts), Question()}, {}, false);
  const auto as_text = probe({Message("system", kSystem), Question()}, {}, false);
  traits_.knows_system_parts = in_parts.has_value() && as_text.has_value() &&
                               WithoutSpaces(*in_parts) == WithoutSpaces(*as_text);

  const auto plain = probe({Question()}, {}, false);
  const auto thinking = probe({Question()}, {}, true);
  traits_.knows_thinking = plain.has_value() && thinking.has_value() && *plain != *thinking;

  const Json picture = Json::MakeArray({Json::MakeObject({{"type", "image"}})});
  traits_.knows_media = writes(probe({Message("user", picture)}, {}, false), kImagePlaceholder);
  traits_.knows_tools = writes(probe({Question()}, Json::MakeArray({Tool()}), false), kFunction);
}

void ChatTemplate::ChooseRewriting() {
  rewriting_.folds_results = !traits_.knows_tool_role && traits_.knows_tool_responses;
  rewriting_.joins_system_parts = !traits_.knows_system_parts;
  rewriting_.renames_developer = !template_.Mentions("developer");
  const bool reads_short = template_.Mentions("reasoning");
  const bool reads_long = template_.Mentions("reasoning_content");
  if (reads_short != reads_long) {
    rewriting_.reasoning_name = reads_short ? "reasoning" : "reasoning_content";
  }
}

}  // namespace facet
