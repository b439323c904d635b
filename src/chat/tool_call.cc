// SPDX-License-Identifier: Apache-2.0
#include "chat/tool_call.h"

#include <algorithm>

#include "chat/call_text.h"

namespace facet {
namespace {

constexpr std::string_view kCallWord = "call:";
constexpr size_t kMaxNameBytes = 256;

bool IsCloser(char c) { return c == '}' || c == ']' || c == ')'; }

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

/// Reads the calls in one text.
class CallsReader {
 public:
  CallsReader(std::string_view text, const OfferedTools& tools, bool is_closed)
      : text_(text), tools_(tools), is_closed_(is_closed) {}

  std::optional<ParsedCalls> Read();

 private:
  /// Each takes the call at `pos_` and moves on, or leaves all as it is.
  bool TakeCall();
  bool TakeCallWithoutArguments();
  void SkipClosers();

  std::string_view text_;
  const OfferedTools& tools_;
  bool is_closed_;
  size_t pos_ = 0;
  FailedSearches failed_;
  ParsedCalls parsed_;
};

std::optional<ParsedCalls> CallsReader::Read() {
  if (!TakeCall()) {
    return std::nullopt;
  }
  while (true) {
    SkipClosers();
    const size_t next = text_.find_first_not_of(" \t\n\v\f\r,;", pos_);
    if (next == std::string_view::npos || !text_.substr(next).starts_with(kCallWord)) {
      break;
    }
    pos_ = next;
    if (!TakeCall()) {
      parsed_.has_unread_call = true;
      break;
    }
    ++parsed_.n_repairs;  // the marks between two calls
  }
  parsed_.rest = text_.substr(pos_);
  if (is_closed_ && !parsed_.rest.empty() && !parsed_.has_unread_call) {
    return std::nullopt;
  }
  parsed_.is_certain = failed_ == FailedSearches();
  return std::move(parsed_);
}

bool CallsReader::TakeCall() {
  const size_t bracket = text_.find_first_of("{(", pos_);
  if (bracket == std::string_view::npos) {
    return is_closed_ && TakeCallWithoutArguments();
  }
  const std::optional<Head> head = ReadHead(text_.substr(pos_, bracket - pos_), tools_);
  if (!head) {
    return false;
  }
  std::optional<CallArguments> arguments =
      ReadCallArguments(text_, bracket, tools_.Parameters(head->name), &failed_);
  if (!arguments || (!arguments->is_complete && !is_closed_)) {
    return false;
  }
  parsed_.calls.push_back({std::string(head->name), std::move(arguments->json)});
  parsed_.n_repairs += head->n_repairs + arguments->n_repairs;
  pos_ = arguments->end;
  return true;
}

/// `call:NAME`, to the end of the text.
bool CallsReader::TakeCallWithoutArguments() {
  const std::string_view text = text_.substr(pos_);
  const std::optional<Head> head = ReadHead(text.substr(0, text.find_first_of("})]")), tools_);
  if (!head || !tools_.Contains(head->name)) {
    return false;
  }
  parsed_.calls.push_back({std::string(head->name), "{}"});
  parsed_.n_repairs += head->n_repairs + 1;
  pos_ = text_.size();
  return true;
}

/// Goes to what follows a call, over brackets too many.
void CallsReader::SkipClosers() {
  for (; pos_ < text_.size(); ++pos_) {
    if (IsCloser(text_[pos_])) {
      ++parsed_.n_repairs;
    } else if (kWhiteSpace.find(text_[pos_]) == std::string_view::npos) {
      return;
    }
  }
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
  return CallsReader(text, tools, is_closed).Read();
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

bool UnmarkedCalls::Add(char c, const OfferedTools& tools) {
  const bool is_end = is_whole_ && BeginsOther(c, tools) && ++n_ends_ <= kMaxEnds;
  if (c == kStringMark) {
    in_string_ = !in_string_;
  } else if (!in_string_ && (c == '{' || c == '[' || c == '(')) {
    ++depth_;
  } else if (!in_string_ && IsCloser(c)) {
    depth_ = std::max(depth_ - 1, 0);
    is_whole_ = depth_ == 0;
  }
  return is_end;
}

/// Whether what follows the last bracket is known to be no call.
bool UnmarkedCalls::BeginsOther(char c, const OfferedTools& tools) {
  constexpr std::string_view kBetween = " \t\n\v\f\r,;})]";
  if (next_.empty() && kBetween.find(c) != std::string_view::npos) {
    return false;
  }
  next_ += c;
  const CallStart start = FindCallStart(next_, tools);
  if (start == CallStart::kMaybe) {
    return false;
  }
  is_whole_ = false;
  next_.clear();
  return start == CallStart::kNo;
}

}  // namespace facet
