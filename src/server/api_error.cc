// SPDX-License-Identifier: Apache-2.0
#include "server/api_error.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"

namespace facet {

ApiError InvalidRequest(const Error& error) {
  return {.status = 400, .message = error.Message(), .param = error.where};
}

/// Clients look for OpenAI's words, so they begin it.
ApiError ContextLengthError(int n_prompt, int n_context) {
  return {.status = 400,
          .message = fmt::format("This model's maximum context length is {} tokens. However, the "
                                 "prompt has {} tokens, and one is kept for the reply.",
                                 n_context, n_prompt),
          .param = {},
          .code = "context_length_exceeded"};
}

std::string ErrorBody(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return Json::MakeObject({{"error", Json::MakeObject({{"message", error.message},
                                                       {"type", error.type},
                                                       {"param", or_null(error.param)},
                                                       {"code", or_null(error.code)}})}})
      .Dump();
}

HttpResponse ErrorResponse(const ApiError& error) {
  return {.status = error.status, .body = ErrorBody(error)};
}

}  // namespace facet
