// SPDX-License-Identifier: Apache-2.0
// From what a client asked for to what the engine is given: prompts as tokens, and the marks of
// thoughts and calls by which a reply is bounded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "chat/turn_memory.h"
#include "engine/request.h"
#include "server/api_error.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace facet {

/// Ids of the marks that bound a reply; -1 where the vocabulary has none.
struct ReplyMarks {
  int32_t thought_open = -1;
  int32_t thought_close = -1;
  int32_t call_close = -1;
};
ReplyMarks FindReplyMarks(const Vocab& vocab);

/// Reads the media of a chat's messages into `request->media`: fetched, decoded and sized, which
/// takes its time. An error names the part.
Status ReadMedia(const ServedModel& model, ApiRequest* request);

/// A chat's prompt with its media written out (ReadMedia comes before).
Result<Prompt> RenderPrompt(const ApiRequest& request, const ServedModel& model);

/// The text of a chat's prompt, control tokens written out.
Result<std::string> RenderText(const ApiRequest& request, const ServedModel& model);

/// The tokens of each prompt; earlier turns of a chat have those that were drawn (`memory`),
/// unless nothing is to be reused. Where media lie in them is noted in `request->engine`. An error
/// names the parameter.
Result<std::vector<std::vector<int32_t>>> MakePrompts(const ServedModel& model,
                                                      const TurnMemory& memory,
                                                      ApiRequest* request);

/// One choice without an id. Choices are numbered prompt by prompt.
Request MakeEngineRequest(const ApiRequest& request, const ServedModel& model,
                          std::vector<int32_t> prompt, int choice);

/// What to answer to a request that the engine refused.
ApiError RefusedByEngine(const Error& error);

}  // namespace facet
