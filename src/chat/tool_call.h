// SPDX-License-Identifier: Apache-2.0
// A call as models write it, `call:NAME{key:value,...}`, read into a name and arguments in JSON.
// Models slip, the small ones often: what is meant beyond doubt is repaired and counted, anything
// else is refused, so that the caller can show the text. docs/chat-format.md lists the repairs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "chat/call_arguments.h"
#include "chat/tool_schema.h"

namespace facet {

/// The functions that a request offers.
class OfferedTools {
 public:
  /// An array of functions, each wrapped as OpenAI does or bare (CheckTools); or null. Copies names
  /// and parameters.
  explicit OfferedTools(const Json& tools);

  [[nodiscard]] bool empty() const { return parameters_.empty(); }
  [[nodiscard]] bool Contains(std::string_view name) const;
  [[nodiscard]] bool HasNameThatBegins(std::string_view beginning) const;
  /// The schema of the arguments; one that allows anything where it is not known.
  [[nodiscard]] ValueSchema Parameters(std::string_view name) const;

 private:
  Json::Object parameters_;  // by name
};

struct ToolCall {
  std::string name;
  std::string arguments;  ///< the text of a JSON object, at most kMaxCallDepth deep
};

/// What stood in one pair of marks.
struct ParsedCalls {
  std::vector<ToolCall> calls;  ///< at least one
  int n_repairs = 0;
  std::string_view rest;         ///< what follows the last of them
  bool has_unread_call = false;  ///< `rest` begins as a call does, and could not be read
  bool is_certain = false;       ///< the calls would be the same if more text followed
};

/// Reads the text of a call in UTF-8, in which kStringMark stands for each mark of a string.
/// Several calls in a row are taken, up to one that cannot be read. `is_closed`: the closing mark
/// ended the text, which closes whatever is open, and nothing but a call may follow a call; else
/// only whole calls are taken. Nothing when it is no call. Time is linear in the text.
std::optional<ParsedCalls> ParseCalls(std::string_view text, const OfferedTools& tools,
                                      bool is_closed);

/// Whether the text may become, or is, the beginning of a call of an offered function that lacks
/// its mark.
enum class CallStart { kNo, kMaybe, kYes };
CallStart FindCallStart(std::string_view text, const OfferedTools& tools);

/// Tells where calls that lack their mark end, from their brackets alone. A few places may be
/// wrong, where quotes or bare text hold brackets: ParsedCalls::is_certain decides.
class UnmarkedCalls {
 public:
  /// Adds the next byte. True when a last bracket has come before it and it begins something else
  /// than a call; no more than kMaxEnds times, so that reading the calls each time stays linear.
  bool Add(char c, const OfferedTools& tools);

 private:
  static constexpr int kMaxEnds = 16;

  bool BeginsOther(char c, const OfferedTools& tools);

  int depth_ = 0;  // of brackets outside strings
  bool in_string_ = false;
  bool is_whole_ = false;  // the last bracket has come
  std::string next_;       // what may become the next call
  int n_ends_ = 0;
};

}  // namespace facet
