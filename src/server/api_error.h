// SPDX-License-Identifier: Apache-2.0
// OpenAI's error object, the only form in which the server refuses anything.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "server/http.h"

namespace facet {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param = {};  ///< empty: null
  std::string code = {};   ///< empty: null
};

/// 400; `error.where` is the parameter.
ApiError InvalidRequest(const Error& error);

/// 400 context_length_exceeded: a prompt of `n_prompt` tokens for a context of `n_context`.
ApiError ContextLengthError(int n_prompt, int n_context);

/// {"error": {"message", "type", "param", "code"}}
std::string ErrorBody(const ApiError& error);
HttpResponse ErrorResponse(const ApiError& error);

}  // namespace facet
