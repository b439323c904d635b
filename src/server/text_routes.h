// SPDX-License-Identifier: Apache-2.0
// What the routes say that need no reply of the model: its description, and texts as tokens and
// back. Bodies in, bodies out.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "chat/prompt.h"
#include "server/served_model.h"

namespace facet {

/// The body of a request. The error's `where` is "body" and the place.
Result<Json> ParseBody(const std::string& body);

/// `n_context`: of one sequence, prompt and reply together.
Json ModelJson(const ServedModel& model, int n_context);
Json ModelListJson(const ServedModel& model, int n_context);

struct ServerLimits {
  int n_context = 0;
  bool has_drafter = false;
  size_t max_body_bytes = 0;
  int request_timeout_s = 0;
};
Json PropsJson(const ServedModel& model, const ServerLimits& limits, const std::string& version);

/// {"content", "add_special", "parse_special", "with_pieces"} -> {"tokens"}
Result<Json> Tokenize(const Json& body, const ServedModel& model);
/// The same of a chat's prompt: {"messages", "with_pieces"} -> {"tokens"}. The chat is what
/// WithoutTokenizeFields leaves of the body.
Json WithoutTokenizeFields(const Json& body);
Result<Json> TokenizeChat(const Json& body, const Prompt& prompt, const ServedModel& model);
/// {"tokens"} -> {"content"}
Result<Json> Detokenize(const Json& body, const ServedModel& model);

}  // namespace facet
