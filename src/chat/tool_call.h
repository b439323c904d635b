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
  std::string_view rest;  ///< what follows the last call; empty when the calls were closed
};

/// Reads the text of a call in UTF-8, in which kStringMark stands for each mark of a string.
/// Several calls in a row are taken. `is_closed`: the closing mark ended the text, which closes
/// whatever is open; else only whole calls are taken. Nothing when it is no call. Time is linear in
/// the text.
std::optional<ParsedCalls> ParseCalls(std::string_view text, const OfferedTools& tools,
                                      bool is_closed);

/// Whether the text may become, or is, the beginning of a call of an offered function that lacks
/// its mark.
enum class CallStart { kNo, kMaybe, kYes };
CallStart FindCallStart(std::string_view text, const OfferedTools& tools);

}  // namespace facet
