// SPDX-License-Identifier: Apache-2.0
// What clients send, checked and rewritten before a template sees it. Templates trust their input:
// a wrong role becomes a turn of its own, a tool message out of place vanishes, a list is printed
// as Python prints it. So everything is checked here once, with errors that say which message, and
// templates that know less than the OpenAI shape get messages in the form they know.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace facet {

inline constexpr size_t kMaxMessages = 16384;
inline constexpr size_t kMaxParts = 1024;  ///< content parts of one message
inline constexpr size_t kMaxCalls = 1024;  ///< tool calls of one message
inline constexpr size_t kMaxTools = 1024;
/// Texts, keys and 16 bytes for each value, of messages, tools and variables together.
inline constexpr size_t kMaxRequestBytes = size_t{32} << 20;
inline constexpr int kMaxRequestDepth = 200;

/// Messages in the OpenAI chat shape, with these additions: `reasoning` or `reasoning_content` and
/// `tool_responses` on assistant messages; any JSON value as the content of a tool message. Content
/// parts are of type text, or, in messages of role user and tool, media (media_part.h).
Status CheckMessages(const Json& messages);

/// An array of functions, each wrapped as OpenAI does or bare; or null.
Status CheckTools(const Json& tools);

/// What a template needs changed.
struct Rewriting {
  /// Tool messages go into tool_responses of the message with the calls.
  bool folds_results = false;
  /// The content parts of system and developer messages become one string.
  bool joins_system_parts = false;
  /// Role developer becomes system.
  bool renames_developer = false;
  /// The only name of the reasoning that the template reads; empty: as sent.
  std::string_view reasoning_name = {};
};

/// The messages, which must have passed CheckMessages, in the form that templates read: null
/// members dropped, call arguments that are JSON text of an object parsed, calls wrapped in
/// `function`, media parts reduced to {"type": "image"}, "audio" or "video", and changed as
/// `rewriting` says.
Json RewriteMessages(const Json& messages, const Rewriting& rewriting);

/// The tools, which must have passed CheckTools: each wrapped in `function`, null members dropped.
Json RewriteTools(const Json& tools);

/// Counts `value` against `bytes_left` and the depth limit. `name` is what errors call it.
Status CheckSize(const Json& value, std::string_view name, size_t& bytes_left);

}  // namespace facet
