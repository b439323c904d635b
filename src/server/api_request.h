// SPDX-License-Identifier: Apache-2.0
// Bodies of /v1/chat/completions and /v1/completions, read and checked: everything that needs
// neither tokens nor the engine. docs/http_api.md tells the fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"
#include "chat/media_reader.h"
#include "engine/request.h"
#include "server/served_model.h"

namespace facet {

inline constexpr int kMaxChoices = 128;  ///< prompts times n

using PromptText = std::variant<std::string, std::vector<int32_t>>;

/// What a client asked for.
struct ApiRequest {
  enum class Kind { kChat, kCompletion };
  Kind kind = Kind::kChat;
  ChatRequest chat;                 ///< kChat; tools are null with tool_choice none
  MediaContent media;               ///< kChat; what ReadMedia read of the messages
  std::vector<PromptText> prompts;  ///< kCompletion, not empty
  bool echo = false;                ///< kCompletion
  /// Sampling, limits, stop texts, logprobs, salt, drafting; without prompt, id, end tokens,
  /// thought tokens. `engine.thought.max_tokens` is the thinking budget. The seed is drawn where
  /// the client gave none; of several choices, choice i has seed + i.
  Request engine;
  int n = 1;
  bool stream = false;
  bool include_usage = false;       ///< of a stream
  bool parallel_tool_calls = true;  ///< false: the reply ends after its first call
  std::optional<int> timeout_s;
};

/// An error names the parameter in `where` ("messages[2].content", "top_p").
Result<ApiRequest> ReadChatRequest(const Json& body, const ServedModel& model);
Result<ApiRequest> ReadCompletionRequest(const Json& body, const ServedModel& model);

}  // namespace facet
