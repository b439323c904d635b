// SPDX-License-Identifier: Apache-2.0
#include "chat/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "chat/json_check.h"
#include "chat/media_part.h"

namespace facet {
namespace {

enum class Role { kSystem, kDeveloper, kUser, kAssistant, kTool };

std::optional<Role> RoleOf(const Json& message) {
  static constexpr std::array<std::pair<std::string_view, Role>, 5> kRoles = {{
      {"system", Role::kSystem},
      {"developer", Role::kDeveloper},
      {"user", Role::kUser},
      {"assistant", Role::kAssistant},
      {"tool", Role::kTool},
  }};
  for (const auto& [name, role] : kRoles) {
    if (message["role"].as_string() == name) {
      return role;
    }
  }
  return std::nullopt;
}

/// A member may be absent or null where that means the same.
bool HasValue(const Json& object, std::string_view key) { return !object[key].is_null(); }

Status CheckCount(const std::string& where, const Json& list, size_t limit) {
  if (list.items().size() > limit) {
    return Refuse(where, fmt::format("{} items", list.items().size()),
                  fmt::format("at most {}", limit));
  }
  return {};
}

Status CheckPart(const std::string& where, const Json& part, Role role) {
  if (!part.is_object()) {
    return Refuse(where, std::string(part.KindName()), "a content part");
  }
  const bool may_be_media = role == Role::kUser || role == Role::kTool;
  if (!IsMediaPart(part)) {
    FACET_RETURN_IF_ERROR(CheckMember(
        where, part, "type",
        may_be_media ? "text, image_url, input_audio, audio_url, video_url, image, audio or video"
                     : "text",
        part["type"].as_string() == "text"));
    return CheckMember(where, part, "text", "a string", part["text"].is_string());
  }
  if (!may_be_media) {
    return CheckMember(where, part, "type", "text (media are for messages of role user or tool)",
                       false);
  }
  const Result<GivenMedia> media = ReadMediaPart(part, where);
  return media.ok() ? Status() : media.error();
}

Status CheckParts(const std::string& where, const Json& parts, Role role) {
  FACET_RETURN_IF_ERROR(CheckCount(where, parts, kMaxParts));
  for (size_t i = 0; i < parts.items().size(); ++i) {
    FACET_RETURN_IF_ERROR(CheckPart(fmt::format("{}[{}]", where, i), parts.items()[i], role));
  }
  return {};
}

Status CheckContent(const std::string& where, const Json& message, Role role) {
  const Json& content = message["content"];
  if (content.is_array()) {
    return CheckParts(where + ".content", content, role);
  }
  const bool may_be_anything = role == Role::kTool && message.contains("content");
  const bool may_lack = role == Role::kAssistant && content.is_null();
  return CheckMember(where, message, "content", "a string or an array of parts",
                     content.is_string() || may_be_anything || may_lack);
}

Status CheckFunctionName(const std::string& where, const Json& item) {
  const bool is_wrapped = item.contains("function");
  const Json& function = is_wrapped ? item["function"] : item;
  const std::string function_where = is_wrapped ? where + ".function" : where;
  if (!function.is_object()) {
    return Refuse(function_where, std::string(function.KindName()), "an object");
  }
  return CheckMember(function_where, function, "name", "a name",
                     !function["name"].as_string().empty());
}

Status CheckCalls(const std::string& where, const Json& calls) {
  FACET_RETURN_IF_ERROR(CheckCount(where, calls, kMaxCalls));
  for (size_t i = 0; i < calls.items().size(); ++i) {
    const Json& call = calls.items()[i];
    const std::string call_where = fmt::format("{}[{}]", where, i);
    if (!call.is_object()) {
      return Refuse(call_where, std::string(call.KindName()), "a tool call");
    }
    FACET_RETURN_IF_ERROR(CheckMember(call_where, call, "id", "a string",
                                      !HasValue(call, "id") || call["id"].is_string()));
    FACET_RETURN_IF_ERROR(CheckFunctionName(call_where, call));
    const bool is_wrapped = call.contains("function");
    const Json& function = is_wrapped ? call["function"] : call;
    const Json& arguments = function["arguments"];
    FACET_RETURN_IF_ERROR(
        CheckMember(is_wrapped ? call_where + ".function" : call_where, function, "arguments",
                    "an object, or its text",
                    arguments.is_null() || arguments.is_string() || arguments.is_object()));
  }
  return {};
}

Status CheckResponses(const std::string& where, const Json& responses) {
  FACET_RETURN_IF_ERROR(CheckCount(where, responses, kMaxCalls));
  for (size_t i = 0; i < responses.items().size(); ++i) {
    const Json& response = responses.items()[i];
    const std::string response_where = fmt::format("{}[{}]", where, i);
    if (!response.is_object()) {
      return Refuse(response_where, std::string(response.KindName()), "a tool response");
    }
    FACET_RETURN_IF_ERROR(CheckMember(response_where, response, "name", "a string",
                                      !HasValue(response, "name") || response["name"].is_string()));
  }
  return {};
}

/// Members that only an assistant's message has. In any other role a template would still write
/// them, with control tokens.
Status CheckAssistantMembers(const std::string& where, const Json& message, Role role) {
  for (const std::string_view key : {"tool_calls", "tool_responses"}) {
    if (!HasValue(message, key)) {
      continue;
    }
    const Json& list = message[key];
    if (role != Role::kAssistant) {
      return Refuse(fmt::format("{}.{}", where, key),
                    fmt::format("a member of a message of role {}", message["role"].as_string()),
                    "it only in messages of role assistant");
    }
    FACET_RETURN_IF_ERROR(CheckMember(where, message, key, "an array", list.is_array()));
    const std::string list_where = fmt::format("{}.{}", where, key);
    FACET_RETURN_IF_ERROR(key == "tool_calls" ? CheckCalls(list_where, list)
                                              : CheckResponses(list_where, list));
  }
  return {};
}

Status CheckMessage(const std::string& where, const Json& message) {
  if (!message.is_object()) {
    return Refuse(where, std::string(message.KindName()), "an object");
  }
  const std::optional<Role> role = RoleOf(message);
  FACET_RETURN_IF_ERROR(CheckMember(
      where, message, "role", "system, developer, user, assistant or tool", role.has_value()));
  for (const std::string_view key : {"name", "tool_call_id", "reasoning", "reasoning_content"}) {
    FACET_RETURN_IF_ERROR(CheckMember(where, message, key, "a string",
                                      !HasValue(message, key) || message[key].is_string()));
  }
  FACET_RETURN_IF_ERROR(CheckContent(where, message, *role));
  return CheckAssistantMembers(where, message, *role);
}

Json WithoutNulls(const Json& object) {
  Json::Object members;
  for (const auto& member : object.members()) {
    if (!member.second.is_null()) {
      members.push_back(member);
    }
  }
  return members;
}

/// `item` with its function in a member `function`, as templates look for it. A bare function's
/// members move there, but for the id of a call.
Json Wrapped(const Json& item) {
  Json::Object wrapped;
  if (item.contains("function")) {
    for (const auto& [key, value] : item.members()) {
      if (!value.is_null()) {
        wrapped.emplace_back(key, key == "function" ? WithoutNulls(value) : value);
      }
    }
    return wrapped;
  }
  wrapped.emplace_back("type", "function");
  Json::Object function;
  for (const auto& [key, value] : item.members()) {
    if (!value.is_null() && key != "type") {
      (key == "id" ? wrapped : function).emplace_back(key, value);
    }
  }
  wrapped.emplace_back("function", std::move(function));
  return wrapped;
}

/// Text of a JSON object becomes the object; an object, and text that is none, stay.
Json RewriteArguments(const Json& arguments) {
  constexpr JsonLimits kLimits = {.max_bytes = kMaxRequestBytes, .max_depth = 100};
  if (!arguments.is_string()) {
    return arguments.is_null() ? Json(Json::Object()) : arguments;
  }
  const std::string& text = arguments.as_string();
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return Json::Object();
  }
  Result<Json> parsed = ParseJson(text, "arguments", kLimits);
  return parsed.ok() && parsed->is_object() ? *std::move(parsed) : arguments;
}

Json RewriteCalls(const Json& calls) {
  Json::Array rewritten;
  for (const Json& call : calls.items()) {
    Json wrapped = Wrapped(call);
    Json function = wrapped["function"];
    function.Set("arguments", RewriteArguments(function["arguments"]));
    wrapped.Set("function", std::move(function));
    rewritten.push_back(std::move(wrapped));
  }
  return rewritten;
}

Json JoinedText(const Json& content) {
  if (!content.is_array()) {
    return content;
  }
  std::string text;
  for (const Json& part : content.items()) {
    text += part["text"].as_string();
  }
  return text;
}

/// Content with its media parts as templates know them. What they hold stays behind.
Json RewriteContent(const Json& content) {
  if (std::none_of(content.items().begin(), content.items().end(), IsMediaPart)) {
    return content;
  }
  Json::Array parts;
  parts.reserve(content.items().size());
  for (const Json& part : content.items()) {
    parts.push_back(IsMediaPart(part) ? Json::MakeObject({{"type", TemplateType(part)}}) : part);
  }
  return parts;
}

/// The name under which the template reads a reasoning member, unless it stands there already.
std::string_view ReasoningKey(const Json& message, std::string_view key, std::string_view read) {
  return read.empty() || HasValue(message, read) ? key : read;
}

Json RewriteMessage(const Json& message, const Rewriting& rewriting) {
  const Role role = *RoleOf(message);
  const bool is_system = role == Role::kSystem || role == Role::kDeveloper;
  Json::Object members;
  for (const auto& [key, value] : message.members()) {
    if (value.is_null() && !(role == Role::kTool && key == "content")) {
      continue;
    }
    if (key == "role" && role == Role::kDeveloper && rewriting.renames_developer) {
      members.emplace_back(key, "system");
    } else if (key == "content" && is_system && rewriting.joins_system_parts) {
      members.emplace_back(key, JoinedText(value));
    } else if (key == "content") {
      members.emplace_back(key, RewriteContent(value));
    } else if (key == "tool_calls") {
      members.emplace_back(key, RewriteCalls(value));
    } else if (key == "reasoning" || key == "reasoning_content") {
      members.emplace_back(ReasoningKey(message, key, rewriting.reasoning_name), value);
    } else {
      members.emplace_back(key, value);
    }
  }
  return members;
}

/// The function that a tool message answers: of the call with its id, else what it says itself.
Json NameOfResult(const Json& result, const Json& calls) {
  if (HasValue(result, "tool_call_id")) {
    for (const Json& call : calls.items()) {
      if (call["id"] == result["tool_call_id"]) {
        return call["function"]["name"];
      }
    }
  }
  return HasValue(result, "name") ? result["name"] : Json("unknown");
}

/// Whether `message` has nothing but text: it can continue the turn of the message before.
bool IsPlainAnswer(const Json& message) {
  return RoleOf(message) == Role::kAssistant && message["tool_calls"].items().empty() &&
         message["tool_responses"].items().empty();
}

bool HasNoContent(const Json& message) {
  return message["content"].as_string().empty() && message["content"].items().empty();
}

/// Moves the tool messages after `items[begin]`, which has been rewritten into `message`, into its
/// tool_responses. An answer that follows them continues the same turn of the model, so it becomes
/// the message's content where that is free. Returns the index of the next message.
size_t FoldResults(const Json::Array& items, size_t begin, Json& message) {
  Json::Array responses = message["tool_responses"].items();
  size_t next = begin + 1;
  for (; next < items.size() && RoleOf(items[next]) == Role::kTool; ++next) {
    responses.push_back(
        Json::MakeObject({{"name", NameOfResult(items[next], message["tool_calls"])},
                          {"response", JoinedText(items[next]["content"])}}));
  }
  if (next == begin + 1) {
    return next;
  }
  message.Set("tool_responses", std::move(responses));
  if (next < items.size() && IsPlainAnswer(items[next]) && HasNoContent(message)) {
    message.Set("content", HasNoContent(items[next]) ? Json("") : items[next]["content"]);
    ++next;
  }
  return next;
}

}  // namespace

Status CheckMessages(const Json& messages) {
  if (!messages.is_array()) {
    return Refuse("messages", std::string(messages.KindName()), "an array");
  }
  if (messages.items().empty()) {
    return Refuse("messages", "an empty array", "at least one message");
  }
  FACET_RETURN_IF_ERROR(CheckCount("messages", messages, kMaxMessages));
  bool may_have_result = false;
  for (size_t i = 0; i < messages.items().size(); ++i) {
    const Json& message = messages.items()[i];
    const std::string where = fmt::format("messages[{}]", i);
    FACET_RETURN_IF_ERROR(CheckMessage(where, message));
    if (RoleOf(message) != Role::kTool) {
      may_have_result = !message["tool_calls"].items().empty();
    } else if (!may_have_result) {
      return Refuse(where + ".role", "\"tool\"",
                    "it only after an assistant message with tool_calls");
    }
  }
  return {};
}

Status CheckTools(const Json& tools) {
  if (tools.is_null()) {
    return {};
  }
  if (!tools.is_array()) {
    return Refuse("tools", std::string(tools.KindName()), "an array");
  }
  FACET_RETURN_IF_ERROR(CheckCount("tools", tools, kMaxTools));
  for (size_t i = 0; i < tools.items().size(); ++i) {
    const Json& tool = tools.items()[i];
    const std::string where = fmt::format("tools[{}]", i);
    if (!tool.is_object()) {
      return Refuse(where, std::string(tool.KindName()), "an object");
    }
    FACET_RETURN_IF_ERROR(
        CheckMember(where, tool, "type", "function",
                    !HasValue(tool, "type") || tool["type"].as_string() == "function"));
    FACET_RETURN_IF_ERROR(CheckFunctionName(where, tool));
    const bool is_wrapped = tool.contains("function");
    const Json& function = is_wrapped ? tool["function"] : tool;
    const std::string function_where = is_wrapped ? where + ".function" : where;
    FACET_RETURN_IF_ERROR(
        CheckMember(function_where, function, "description", "a string",
                    !HasValue(function, "description") || function["description"].is_string()));
    FACET_RETURN_IF_ERROR(
        CheckMember(function_where, function, "parameters", "an object",
                    !HasValue(function, "parameters") || function["parameters"].is_object()));
  }
  return {};
}

Json RewriteMessages(const Json& messages, const Rewriting& rewriting) {
  const Json::Array& items = messages.items();
  Json::Array rewritten;
  for (size_t i = 0; i < items.size();) {
    Json message = RewriteMessage(items[i], rewriting);
    const bool has_calls = !message["tool_calls"].items().empty();
    i = rewriting.folds_results && has_calls ? FoldResults(items, i, message) : i + 1;
    rewritten.push_back(std::move(message));
  }
  return rewritten;
}

Json RewriteTools(const Json& tools) {
  Json::Array rewritten;
  for (const Json& tool : tools.items()) {
    rewritten.push_back(Wrapped(tool));
  }
  return rewritten;
}

Status CheckSize(const Json& value, std::string_view name, size_t& bytes_left) {
  constexpr size_t kValueBytes = 16;
  struct Place {
    const Json* value;
    int depth;
  };
  std::vector<Place> open = {{&value, 1}};
  while (!open.empty()) {
    const Place place = open.back();
    open.pop_back();
    if (place.depth > kMaxRequestDepth) {
      return Refuse(std::string(name), fmt::format("more than {} levels", kMaxRequestDepth),
                    "less nesting");
    }
    size_t n_bytes = kValueBytes + place.value->as_string().size();
    if (place.value->is_big_integer()) {
      n_bytes += place.value->as_big_integer().digits.size();
    }
    for (const auto& [key, member] : place.value->members()) {
      n_bytes += key.size();
      open.push_back({&member, place.depth + 1});
    }
    for (const Json& item : place.value->items()) {
      open.push_back({&item, place.depth + 1});
    }
    if (n_bytes > bytes_left) {
      return Refuse(std::string(name), "too much text",
                    fmt::format("at most {} bytes in all", kMaxRequestBytes));
    }
    bytes_left -= n_bytes;
  }
  return {};
}

}  // namespace facet
