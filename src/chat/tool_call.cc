// SPDX-License-Identifier: Apache-2.0
#include "chat/tool_call.h"

#include <algorithm>

namespace facet {
namespace {

constexpr std::string_view kSpace = " \t\n\v\f\r";
constexpr std::string_view kCallWord = "call:";
constexpr size_t kMaxNameBytes = 256;

std::string_view TrimLeft(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::string_view Trim(std::string_view text) {
  return TrimLeft(text.substr(0, text.find_last_not_of(kSpace) + 1));
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && text.front() != ':' &&
         std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) <= ' ' || c == kStringMark ||
                  std::string_view("\"'`,=<>[]{}()").find(c) != std::string_view::npos;
         });
}

/// The head of a call: what stands before its arguments.
struct Head {
  std::string_view name;
  int n_repairs;
};

/// `text` with "call" and colons taken off its ends; a name may begin with the word too, so the
/// whole is tried first.
std::string_view WithoutCallWords(std::string_view text, const OfferedTools& tools) {
  while (text.ends_with(':')) {
    text.remove_suffix(1);
  }
  while (!tools.Contains(text)) {
    if (text.starts_with("call")) {
      text.remove_prefix(4);
    } else if (text.starts_with(':')) {
      text.remove_prefix(1);
    } else {
      break;
    }
    text = TrimLeft(text);
  }
  return text;
}

std::optional<Head> ReadHead(std::string_view text, const OfferedTools& tools) {
  if (text.size() > 2 * kMaxNameBytes) {
    return std::nullopt;
  }
  text = Trim(text);
  const bool has_word = text.starts_with(kCallWord);
  std::string_view name = has_word ? text.substr(kCallWord.size()) : text;
  if (has_word && tools.Contains(name)) {
    return Head{name, 0};
  }
  constexpr std::string_view kQuotes = "\xFF\"'`";
  name = Trim(name);
  if (name.size() > 2 && kQuotes.find(name.front()) != std::string_view::npos &&
      name.back() == name.front()) {
    name = name.substr(1, name.size() - 2);
  }
  const std::string_view bare = WithoutCallWords(name, tools);
  if (tools.Contains(bare)) {
    return Head{bare, 1};
  }
  if (has_word && IsName(name)) {
    return Head{name, name.size() + kCallWord.size() == text.size() ? 0 : 1};
  }
  return std::nullopt;
}

/// A call whose arguments were left out altogether, `call:NAME`.
bool AddCallWithoutArguments(std::string_view text, const OfferedTools& tools,
                             ParsedCalls& parsed) {
  const std::optional<Head> head = ReadHead(text.substr(0, text.find_first_of("})]")), tools);
  if (!head || !tools.Contains(head->name)) {
    return false;
  }
  parsed.calls.push_back({std::string(head->name), "{}"});
  parsed.n_repairs += head->n_repairs + 1;
  return true;
}

/// What follows a call, without brackets too many.
std::string_view AfterCall(std::string_view text, ParsedCalls& parsed) {
  text = TrimLeft(text);
  while (!text.empty() && std::string_view("})]").find(text.front()) != std::string_view::npos) {
    text = TrimLeft(text.substr(1));
    ++parsed.n_repairs;
  }
  return text;
}

}  // namespace

OfferedTools::OfferedTools(const Json& tools) {
  parameters_.reserve(tools.items().size());
  for (const Json& tool : tools.items()) {
    const Json& function = tool["function"].is_object() ? tool["function"] : tool;
    if (!function["name"].as_string().empty()) {
      parameters_.emplace_back(function["name"].as_string(), function["parameters"]);
    }
  }
}

bool OfferedTools::Contains(std::string_view name) const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [name](const Json::Member& tool) { return tool.first == name; });
}

bool OfferedTools::HasNameThatBegins(std::string_view beginning) const {
  return std::any_of(parameters_.begin(), parameters_.end(), [beginning](const Json::Member& tool) {
    return tool.first.starts_with(beginning);
  });
}

ValueSchema OfferedTools::Parameters(std::string_view name) const {
  const auto tool = std::find_if(parameters_.begin(), parameters_.end(),
                                 [name](const Json::Member& one) { return one.first == name; });
  return tool == parameters_.end() ? ValueSchema() : ValueSchema(tool->second);
}

std::optional<ParsedCalls> ParseCalls(std::string_view text, const OfferedTools& tools,
                                      bool is_closed) {
  ParsedCalls parsed;
  while (true) {
    const size_t bracket = text.find_first_of("{(");
    if (bracket == std::string_view::npos) {
      if (!is_closed || !AddCallWithoutArguments(text, tools, parsed)) {
        return std::nullopt;
      }
      return parsed;
    }
    const std::optional<Head> head = ReadHead(text.substr(0, bracket), tools);
    if (!head) {
      return std::nullopt;
    }
    std::optional<CallArguments> arguments =
        ReadCallArguments(text.substr(bracket), tools.Parameters(head->name));
    if (!arguments || (!arguments->is_complete && !is_closed)) {
      return std::nullopt;
    }
    parsed.calls.push_back({std::string(head->name), std::move(arguments->json)});
    parsed.n_repairs += head->n_repairs + arguments->n_repairs;
    text = AfterCall(text.substr(bracket + arguments->end), parsed);
    const std::string_view next =
        text.substr(std::min(text.find_first_not_of(" \t\n\v\f\r,;"), text.size()));
    if (!next.starts_with(kCallWord)) {
      break;
    }
    text = next;
    ++parsed.n_repairs;  // the marks between two calls
  }
  parsed.rest = text;
  return is_closed && !text.empty() ? std::nullopt : std::optional(std::move(parsed));
}

CallStart FindCallStart(std::string_view text, const OfferedTools& tools) {
  if (tools.empty()) {
    return CallStart::kNo;
  }
  if (text.size() < kCallWord.size()) {
    return kCallWord.starts_with(text) ? CallStart::kMaybe : CallStart::kNo;
  }
  if (!text.starts_with(kCallWord)) {
    return CallStart::kNo;
  }
  const std::string_view name = text.substr(kCallWord.size());
  const size_t bracket = name.find_first_of("{(");
  if (bracket == std::string_view::npos) {
    return tools.HasNameThatBegins(name) ? CallStart::kMaybe : CallStart::kNo;
  }
  return tools.Contains(name.substr(0, bracket)) ? CallStart::kYes : CallStart::kNo;
}

}  // namespace facet
