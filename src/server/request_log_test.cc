// SPDX-License-Identifier: Apache-2.0
#include "server/request_log.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace facet {
namespace {

RequestRecord Reply() {
  RequestRecord record;
  record.id = "req_1";
  record.peer = "127.0.0.1";
  record.method = "POST";
  record.path = "/v1/chat/completions";
  record.status = 200;
  record.has_reply = true;
  record.tokens = {.n_prompt = 12,
                   .n_cached = 8,
                   .n_generated = 21,
                   .n_thought = 3,
                   .n_drafted = 9,
                   .n_accepted = 6};
  record.finish = "stop";
  record.first_token_s = 0.25;
  record.decode_s = 2;
  record.total_s = 2.5;
  return record;
}

TEST(TextLine, TellsAReply) {
  EXPECT_EQ(TextLine(Reply()),
            "req_1 127.0.0.1 POST /v1/chat/completions 200 prompt=12 cached=8 generated=21 "
            "thought=3 drafted=9 accepted=6 finish=stop first_token=0.250s tokens_per_s=10.0 "
            "total=2.500s");
}

TEST(TextLine, CountsNotices) {
  RequestRecord record = Reply();
  record.n_notices = 2;
  EXPECT_TRUE(TextLine(record).ends_with(" tokens_per_s=10.0 notices=2 total=2.500s"));
  EXPECT_EQ((*ParseJson(JsonLine(record), "line"))["notices"].as_int(), 2);
}

TEST(TextLine, StaysOneLineWhateverIsSent) {
  RequestRecord record;
  record.id = "a";
  record.method = "GET";
  record.path = "/a b\n\x1b[31m\"";
  record.status = 404;
  record.error = "not_found";
  EXPECT_EQ(TextLine(record),
            "a \"\" GET \"/a b\\n\\u001b[31m\\\"\" 404 error=not_found total=0.000s");
}

TEST(TextLine, HasTextOnlyWhenItIsGiven) {
  RequestRecord record = Reply();
  record.prompt_text = "What\nis this?";
  record.reply_text = "A \"test\".";
  EXPECT_TRUE(TextLine(record).ends_with(
      " prompt_text=\"What\\nis this?\" reply_text=\"A \\\"test\\\".\""));
}

TEST(JsonLine, IsAnObject) {
  const auto line = ParseJson(JsonLine(Reply()), "line");
  ASSERT_TRUE(line.ok()) << line.error().Message();
  EXPECT_EQ((*line)["status"].as_int(), 200);
  EXPECT_EQ((*line)["cached_tokens"].as_int(), 8);
  EXPECT_EQ((*line)["drafted_tokens"].as_int(), 9);
  EXPECT_EQ((*line)["accepted_tokens"].as_int(), 6);
  EXPECT_EQ((*line)["first_token_ms"].as_double(), 250);
  EXPECT_EQ((*line)["tokens_per_s"].as_double(), 10);
  EXPECT_EQ((*line)["total_ms"].as_double(), 2500);
  EXPECT_FALSE(line->contains("error"));
  EXPECT_FALSE(line->contains("notices"));
  EXPECT_FALSE(line->contains("prompt_text"));
  RequestRecord bare;
  bare.error = "invalid_api_key";
  const auto refused = ParseJson(JsonLine(bare), "line");
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ((*refused)["error"].as_string(), "invalid_api_key");
  EXPECT_FALSE(refused->contains("prompt_tokens"));
}

}  // namespace
}  // namespace facet
