// SPDX-License-Identifier: Apache-2.0
#include "server/api_error.h"

#include <utility>

#include "base/json.h"

namespace facet {

ApiError InvalidRequest(const Error& error) {
  return {.status = 400, .message = error.Message(), .param = error.where};
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
