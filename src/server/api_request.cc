// SPDX-License-Identifier: Apache-2.0
#include "server/api_request.h"

#include <fmt/format.h>

#include <limits>
#include <random>
#include <string_view>
#include <utility>

#include "chat/messages.h"
#include "engine/request_check.h"
#include "server/api_fields.h"

namespace facet {
namespace {

using Kind = ApiRequest::Kind;

uint64_t DrawSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

/// All members of `body` on top of what the model is served with.
Result<ApiFields> ReadFields(const Json& body, Kind kind, const ServedModel& model) {
  if (!body.is_object()) {
    return Refuse("body", std::string(body.KindName()), "an object");
  }
  ApiFields fields;
  fields.request.kind = kind;
  fields.request.engine.sampling = model.sampling;
  FACET_RETURN_IF_ERROR(ReadApiFields(body, &fields));
  Request& engine = fields.request.engine;
  engine.max_tokens = fields.max_tokens ? fields.max_tokens->value : model.max_tokens;
  if (fields.repetition_penalty) {
    engine.sampling.repetition_penalty = fields.repetition_penalty->value;
  }
  engine.sampling.seed = fields.seed ? *fields.seed : DrawSeed();
  return fields;
}

/// The penalties look at all of prompt and reply. Another window matters only where there are some.
Status CheckPenaltyWindow(const ApiFields& fields) {
  const SamplingParams& sampling = fields.request.engine.sampling;
  const bool has_penalties = sampling.repetition_penalty != 1 || sampling.presence_penalty != 0 ||
                             sampling.frequency_penalty != 0;
  if (!has_penalties || fields.repeat_last_n.value_or(-1) == -1) {
    return {};
  }
  return Refuse("repeat_last_n", fmt::format("{}", *fields.repeat_last_n),
                "-1 (penalties look at the whole text)");
}

/// The ranges of the engine, told under the names that the client used.
Status CheckRanges(const ApiFields& fields, const ServedModel& model) {
  Request request = fields.request.engine;
  request.prompt = {0};
  request.thought = {};
  const Status status = CheckRequest(
      request, {.n_vocab = model.vocab->size(), .n_context = std::numeric_limits<int>::max()});
  if (status.ok()) {
    return {};
  }
  Error error = status.error();
  if (error.where == "max_tokens" && fields.max_tokens) {
    error.where = fields.max_tokens->name;
  } else if (error.where == "repetition_penalty" && fields.repetition_penalty) {
    error.where = fields.repetition_penalty->name;
  } else if (error.where == "top_logprobs" && fields.request.kind == Kind::kCompletion) {
    error.where = "logprobs";
  }
  return error;
}

/// What both kinds of request have in common.
Status CheckCommon(const ApiFields& fields, const ServedModel& model) {
  if (fields.has_stream_options && !fields.request.stream) {
    return Refuse("stream_options", "given without stream", "stream true with it");
  }
  FACET_RETURN_IF_ERROR(CheckPenaltyWindow(fields));
  return CheckRanges(fields, model);
}

/// Whether the client wants thoughts by anything that it says; nothing where it says nothing.
std::optional<NamedValue<bool>> ThinkingAsked(const ApiFields& fields) {
  const auto& budget = fields.thinking_budget;
  if (fields.thinks || !budget || budget->value < 0) {
    return fields.thinks;
  }
  return NamedValue<bool>{budget->name, budget->value > 0};
}

Status SetThinking(const ApiFields& fields, const ServedModel& model, ApiRequest* request) {
  const bool can_think = model.chat_template->traits().knows_thinking;
  const std::optional<NamedValue<bool>> asked = ThinkingAsked(fields);
  const auto& budget = fields.thinking_budget;
  if (asked && asked->value && !can_think) {
    return Refuse(asked->name, "thinking", "none (the model's chat template knows no thinking)");
  }
  if (asked && asked->value && budget && budget->value == 0) {
    return Refuse(budget->name, "0", fmt::format("more, as {} says", asked->name));
  }
  request->chat.thinking = can_think && (asked ? asked->value : model.thinks);
  int& max_tokens = request->engine.thought.max_tokens;
  if (request->chat.thinking) {
    max_tokens = budget ? budget->value : fields.effort_budget;
  } else if (asked && model.vocab->Find("<|channel>") && model.vocab->Find("<channel|>")) {
    max_tokens = 0;  // a model that begins a thought all the same is not let
  }
  return {};
}

Status SetTools(const ApiFields& fields, const ServedModel& model, ApiRequest* request) {
  Json& tools = request->chat.tools;
  FACET_RETURN_IF_ERROR(CheckTools(tools));
  if (!fields.offers_tools) {
    tools = Json();
  }
  return tools.is_null() || model.chat_template->traits().knows_tools
             ? Status()
             : Refuse("tools", "an array", "none (the model's chat template knows no tools)");
}

Status SetChatLogprobs(const ApiFields& fields, ApiRequest* request) {
  const int n_top = fields.n_top_logprobs.value_or(0);
  if (fields.wants_logprobs.value_or(false)) {
    request->engine.n_top_logprobs = n_top;
  } else if (n_top > 0) {
    return Refuse("top_logprobs", "given without logprobs", "logprobs true with it");
  }
  return {};
}

Status CheckPromptTokens(const ApiRequest& request, int n_vocab) {
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    const auto* tokens = std::get_if<std::vector<int32_t>>(&request.prompts[i]);
    for (size_t n = 0; tokens != nullptr && n < tokens->size(); ++n) {
      const int32_t token = (*tokens)[n];
      if (token < 0 || token >= n_vocab) {
        return Refuse("prompt", fmt::format("token {} at {} of prompt {}", token, n, i),
                      fmt::format("0 to {}", n_vocab - 1));
      }
    }
    if (tokens != nullptr && tokens->empty()) {
      return Refuse("prompt", fmt::format("no tokens in prompt {}", i), "at least 1");
    }
  }
  return {};
}

Status CheckChoices(const ApiFields& fields) {
  const ApiRequest& request = fields.request;
  const size_t n_prompts = request.prompts.size();
  if (n_prompts * static_cast<size_t>(request.n) > kMaxChoices) {
    return Refuse("n", fmt::format("{} for each of {} prompts", request.n, n_prompts),
                  fmt::format("at most {} replies together", kMaxChoices));
  }
  if (fields.best_of && *fields.best_of != request.n) {
    return Refuse("best_of", fmt::format("{}", *fields.best_of),
                  fmt::format("{}, as n is (all replies are returned)", request.n));
  }
  return {};
}

}  // namespace

Result<ApiRequest> ReadChatRequest(const Json& body, const ServedModel& model) {
  FACET_ASSIGN(ApiFields fields, ReadFields(body, Kind::kChat, model));
  ApiRequest& request = fields.request;
  if (request.chat.messages.is_null()) {
    return Refuse("messages", "nothing", "an array of messages");
  }
  FACET_RETURN_IF_ERROR(SetChatLogprobs(fields, &request));
  FACET_RETURN_IF_ERROR(CheckCommon(fields, model));
  FACET_RETURN_IF_ERROR(CheckMessages(request.chat.messages));
  FACET_RETURN_IF_ERROR(SetTools(fields, model, &request));
  FACET_RETURN_IF_ERROR(SetThinking(fields, model, &request));
  return std::move(request);
}

Result<ApiRequest> ReadCompletionRequest(const Json& body, const ServedModel& model) {
  FACET_ASSIGN(ApiFields fields, ReadFields(body, Kind::kCompletion, model));
  ApiRequest& request = fields.request;
  if (request.prompts.empty()) {
    return Refuse("prompt", "nothing", "a string, an array of strings, or of tokens");
  }
  request.engine.n_top_logprobs = fields.n_top_logprobs.value_or(-1);
  FACET_RETURN_IF_ERROR(CheckCommon(fields, model));
  FACET_RETURN_IF_ERROR(CheckChoices(fields));
  FACET_RETURN_IF_ERROR(CheckPromptTokens(request, model.vocab->size()));
  if (request.echo && fields.n_top_logprobs) {
    return Refuse("echo", "true with logprobs",
                  "one of them (log probabilities of a prompt are not computed)");
  }
  return std::move(request);
}

}  // namespace facet
