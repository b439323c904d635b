// SPDX-License-Identifier: Apache-2.0
#include "app/batch_result.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

BatchReply MakeReply() {
  BatchReply reply;
  reply.Add({ReplyDelta::Kind::kThought, "hm"});
  reply.Add({ReplyDelta::Kind::kContent, "Par"});
  reply.Add({ReplyDelta::Kind::kContent, "is"});
  reply.Add({ReplyDelta::Kind::kCall, R"({"a":1.50})", "f"});
  reply.reason = FinishReason::kRepetition;
  reply.stats.n_prompt = 4;
  reply.stats.n_generated = 3;
  reply.seed = UINT64_MAX;
  reply.model = "m";
  return reply;
}

const BatchKey kOwn{BatchKey::Form::kOwn, 5, "a"};
const BatchKey kOpenAi{BatchKey::Form::kOpenAi, 5, "a"};

TEST(ResultLine, HasOurForm) {
  EXPECT_EQ(
      ResultLine(kOwn, MakeReply(), 99).Dump(),
      R"({"id":"a","line":5,"content":"Paris","thinking":"hm","calls":[{"name":"f","arguments":"{\"a\":1.50}"}],)"
      R"("finish_reason":"repetition","seed":18446744073709551615,)"
      R"("usage":{"prompt_tokens":4,"completion_tokens":3,"total_tokens":7}})");
}

TEST(ResultLine, HasOpenAisForm) {
  EXPECT_EQ(
      ResultLine(kOpenAi, MakeReply(), 99).Dump(),
      R"({"id":"batch_req_5","custom_id":"a","response":{"status_code":200,"request_id":"req_5",)"
      R"("body":{"id":"chatcmpl-5","object":"chat.completion","created":99,"model":"m",)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":"Paris",)"
      R"("reasoning_content":"hm","tool_calls":[{"id":"call_5_0","type":"function",)"
      R"("function":{"name":"f","arguments":"{\"a\":1.50}"}}]},"logprobs":null,"finish_reason":"length"}],)"
      R"("usage":{"prompt_tokens":4,"completion_tokens":3,"total_tokens":7}}},"error":null})");
}

TEST(ResultLine, OpenAisFormSaysThatTheReplyEndedWithCalls) {
  BatchReply reply;
  reply.Add({ReplyDelta::Kind::kCall, "{}", "f"});
  const auto choice_of = [&reply](FinishReason reason) {
    reply.reason = reason;
    return ResultLine(kOpenAi, reply, 0)["response"]["body"]["choices"].items()[0];
  };
  EXPECT_EQ(choice_of(FinishReason::kEndToken)["finish_reason"].as_string(), "tool_calls");
  EXPECT_TRUE(choice_of(FinishReason::kEndToken)["message"]["content"].is_null());
  EXPECT_EQ(choice_of(FinishReason::kMaxTokens)["finish_reason"].as_string(), "length");
}

TEST(ErrorLine, HasTheFormOfTheRequest) {
  EXPECT_EQ(ErrorLine(kOwn, BatchFault::kRequest, "bad").Dump(),
            R"({"id":"a","line":5,"error":{"message":"bad"}})");
  EXPECT_EQ(
      ErrorLine(kOpenAi, BatchFault::kRequest, "bad").Dump(),
      R"({"id":"batch_req_5","custom_id":"a","response":{"status_code":400,"request_id":"req_5",)"
      R"("body":{"error":{"message":"bad","type":"invalid_request_error","param":null,)"
      R"("code":null}}},"error":null})");
  const Json ours = ErrorLine(kOpenAi, BatchFault::kEngine, "bad");
  EXPECT_EQ(ours["response"]["status_code"].as_int(), 500);
  EXPECT_EQ(ours["response"]["body"]["error"]["type"].as_string(), "server_error");
}

TEST(AnsweredId, IsThatOfRepliesOnly) {
  for (const BatchKey& key : {kOwn, kOpenAi}) {
    EXPECT_EQ(*AnsweredId(ResultLine(key, MakeReply(), 0)), key.IdText());
    EXPECT_EQ(*AnsweredId(ErrorLine(key, BatchFault::kRequest, "bad")), "");
    EXPECT_EQ(*AnsweredId(ErrorLine(key, BatchFault::kEngine, "bad")), "");
  }
  EXPECT_EQ(AnsweredId(Json::MakeObject({{"id", 1}})).error().Message(),
            "line: an object, wanted a result of facet run --batch");
  EXPECT_EQ(AnsweredId(Json(5)).error().Message(),
            "line: an integer, wanted a result of facet run --batch");
}

}  // namespace
}  // namespace facet
