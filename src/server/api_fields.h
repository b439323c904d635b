// SPDX-License-Identifier: Apache-2.0
// The fields of request bodies: one table says for each name how its value is read, for chats and
// for completions. What several fields say together is api_request.cc's. docs/http_api.md has the
// same table for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace facet {

/// A value that may come under several names, with the first that it came under.
template <typename T>
struct NamedValue {
  std::string name;
  T value;
};

/// A request of which all fields have been read, one by one.
struct ApiFields {
  ApiRequest request;
  std::optional<NamedValue<int>> max_tokens;
  std::optional<NamedValue<float>> repetition_penalty;
  std::optional<NamedValue<bool>> thinks;
  std::optional<NamedValue<int>> thinking_budget;  ///< a number of tokens; -1: no limit
  int effort_budget = -1;                          ///< what reasoning_effort allows
  std::optional<bool> wants_logprobs;              ///< of a chat
  std::optional<int> n_top_logprobs;
  std::optional<int> best_of;
  std::optional<int> repeat_last_n;
  std::optional<uint64_t> seed;
  bool has_stream_options = false;
  bool offers_tools = true;  ///< tool_choice is not none
};

/// Reads every member of `body` into `fields`, whose request has the defaults and its kind. A null
/// is as no member. Refused: unknown names, values of a wrong kind, and values that ask for what
/// cannot be done. Most ranges are left to CheckRequest.
Status ReadApiFields(const Json& body, ApiFields* fields);

}  // namespace facet
