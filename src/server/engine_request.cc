// SPDX-License-Identifier: Apache-2.0
#include "server/engine_request.h"

#include <utility>

#include "chat/media_prompt.h"
#include "chat/prompt.h"
#include "chat/reply.h"

namespace facet {
namespace {

/// Thoughts are bounded, or kept from beginning: without suppression a model that was not asked to
/// think may still do so, and the reply could be nothing else.
void BoundThoughts(const ApiRequest& api, const ServedModel& model, Request* request) {
  const ReplyMarks marks = FindReplyMarks(*model.vocab);
  if (marks.thought_open < 0 || marks.thought_close < 0) {
    request->thought = {};
    return;
  }
  const bool starts_open = EndsInOpenThought(*model.vocab, request->prompt);
  if (starts_open || (api.chat.thinking && request->thought.max_tokens != 0)) {
    request->thought.open = marks.thought_open;
    request->thought.close = marks.thought_close;
    request->thought.starts_open = starts_open;
    return;
  }
  request->thought = {};
  request->suppressed_tokens.insert(request->suppressed_tokens.end(),
                                    {marks.thought_open, marks.thought_close});
}

}  // namespace

ReplyMarks FindReplyMarks(const Vocab& vocab) {
  return {.thought_open = vocab.Find("<|channel>").value_or(-1),
          .thought_close = vocab.Find("<channel|>").value_or(-1),
          .call_close = vocab.Find("<tool_call|>").value_or(-1)};
}

Status ReadMedia(const ServedModel& model, ApiRequest* request) {
  if (!HasMedia(request->chat.messages)) {
    return {};
  }
  static const MediaReader kTextOnly{MediaSettings()};  // refuses each part and says why
  const MediaReader& reader = model.media == nullptr ? kTextOnly : *model.media;
  FACET_ASSIGN(request->media, reader.Read(request->chat.messages));
  return {};
}

Result<Prompt> RenderPrompt(const ApiRequest& request, const ServedModel& model) {
  FACET_ASSIGN(Prompt prompt, model.chat_template->Render(request.chat));
  if (request.media.parts.empty()) {
    return prompt;
  }
  return ExpandMedia(prompt, request.media.parts, *model.vocab);
}

Result<std::string> RenderText(const ApiRequest& request, const ServedModel& model) {
  FACET_ASSIGN(const Prompt prompt, RenderPrompt(request, model));
  std::string text;
  for (const TextRun& run : prompt.runs) {
    text += run.text;
  }
  return text;
}

Result<std::vector<std::vector<int32_t>>> MakePrompts(const ServedModel& model,
                                                      const TurnMemory& memory,
                                                      ApiRequest* request) {
  std::vector<std::vector<int32_t>> prompts;
  Request& engine = request->engine;
  if (request->kind == ApiRequest::Kind::kChat) {
    FACET_ASSIGN(const Prompt prompt, RenderPrompt(*request, model));
    std::vector<int32_t> tokens = TokenizePrompt(*model.tokenizer, *model.vocab, prompt);
    prompts.push_back(engine.reuses_prefix ? memory.Restore(std::move(tokens), engine.cache_salt)
                                           : std::move(tokens));
    FACET_ASSIGN(engine.media, PlaceMedia(prompts.back(), request->media.parts, *model.vocab));
    return prompts;
  }
  prompts.reserve(request->prompts.size());
  for (const PromptText& prompt : request->prompts) {
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      prompts.push_back(TokenizePrompt(*model.tokenizer, *model.vocab, Prompt{{{*text, true}}}));
    } else {
      prompts.push_back(std::get<std::vector<int32_t>>(prompt));
    }
  }
  return prompts;
}

Request MakeEngineRequest(const ApiRequest& api, const ServedModel& model,
                          std::vector<int32_t> prompt, int choice) {
  Request request = api.engine;
  request.prompt = std::move(prompt);
  request.sampling.seed += static_cast<uint64_t>(choice);
  request.end_tokens = model.end_tokens;
  request.suppressed_tokens.insert(request.suppressed_tokens.end(), model.suppressed_tokens.begin(),
                                   model.suppressed_tokens.end());
  if (api.kind == ApiRequest::Kind::kCompletion) {
    request.thought = {};
    return request;
  }
  BoundThoughts(api, model, &request);
  const int32_t call_close = FindReplyMarks(*model.vocab).call_close;
  if (!api.parallel_tool_calls && !api.chat.tools.is_null() && call_close >= 0) {
    request.end_tokens.push_back(call_close);
  }
  return request;
}

ApiError RefusedByEngine(const Error& error) {
  if (error.where == "queue") {
    return {.status = 503,
            .message = "the server has too many requests waiting: " + error.Message(),
            .type = "server_error",
            .code = "queue_full"};
  }
  return InvalidRequest(error);
}

}  // namespace facet
