// SPDX-License-Identifier: Apache-2.0
#include "server/api_error.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

TEST(ApiError, IsOpenAisObject) {
  EXPECT_EQ(ErrorBody(InvalidRequest(Refuse("top_p", "2", "at most 1"))),
            R"({"error":{"message":"top_p: 2, wanted at most 1","type":"invalid_request_error",)"
            R"("param":"top_p","code":null}})");
  const HttpResponse response = ErrorResponse(
      {.status = 503, .message = "busy", .type = "overloaded_error", .code = "queue_full"});
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body,
            R"({"error":{"message":"busy","type":"overloaded_error","param":null,)"
            R"("code":"queue_full"}})");
}

}  // namespace
}  // namespace facet
