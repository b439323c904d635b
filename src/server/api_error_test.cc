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
  EXPECT_EQ(response.body, R"({"error":{"message":"busy","type":"overloaded_error","param":null,)"
                           R"("code":"queue_full"}})");
}

TEST(ApiError, TellsBothNumbersOfAPromptThatIsTooLong) {
  EXPECT_EQ(ErrorBody(ContextLengthError(5000, 4096)),
            R"({"error":{"message":"This model's maximum context length is 4096 tokens. However, )"
            R"(the prompt has 5000 tokens, and one is kept for the reply.",)"
            R"("type":"invalid_request_error","param":null,"code":"context_length_exceeded"}})");
  EXPECT_EQ(ContextLengthError(5000, 4096).status, 400);
}

}  // namespace
}  // namespace facet
