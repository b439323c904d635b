// SPDX-License-Identifier: Apache-2.0
#include "app/batch_line.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

using Form = BatchKey::Form;

Json Parse(const std::string& text) {
  const Result<Json> json = ParseJson(text, "line");
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

Result<BatchRequest> Read(const std::string& text, const Options& defaults = {}) {
  const Json json = Parse(text);
  BatchKey key;
  FACET_RETURN_IF_ERROR(ReadBatchKey(json, 7, &key));
  return ReadBatchRequest(json, key, defaults);
}

std::string ErrorOf(const std::string& text, const Options& defaults = {}) {
  const auto request = Read(text, defaults);
  return request.ok() ? "none" : request.error().Message();
}

std::string OpenAi(const std::string& body) {
  return R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":)" + body + "}";
}

TEST(BatchKey, HasTheIdOrTheLine) {
  BatchKey key;
  ASSERT_TRUE(ReadBatchKey(Parse(R"({"id":"x","prompt":"p"})"), 3, &key).ok());
  EXPECT_EQ(key.IdText(), "\"x\"");
  EXPECT_EQ(key.form, Form::kOwn);
  EXPECT_EQ(key.line, 3);
  ASSERT_TRUE(ReadBatchKey(Parse(R"({"id":12})"), 3, &key).ok());
  EXPECT_EQ(key.IdText(), "12");
  ASSERT_TRUE(ReadBatchKey(Parse(R"({"prompt":"p"})"), 3, &key).ok());
  EXPECT_EQ(key.IdText(), "3");
  ASSERT_TRUE(ReadBatchKey(Parse(OpenAi("{}")), 3, &key).ok());
  EXPECT_EQ(key.IdText(), "\"a\"");
  EXPECT_EQ(key.form, Form::kOpenAi);
}

TEST(BatchKey, RefusesWhatIsNoId) {
  const auto error_of = [](const std::string& text) {
    BatchKey key;
    const Status status = ReadBatchKey(Parse(text), 3, &key);
    EXPECT_TRUE(key.id.is_null());
    return status.ok() ? "none" : status.error().Message();
  };
  EXPECT_EQ(error_of("[1]"), "line: an array, wanted an object");
  EXPECT_EQ(error_of(R"({"id":1.5})"), "id: 1.5, wanted a string or an integer");
  EXPECT_EQ(error_of(R"({"id":""})"), "id: 0 bytes, wanted 1 to 512");
  EXPECT_EQ(error_of(R"({"id":")" + std::string(513, 'x') + "\"}"),
            "id: 513 bytes, wanted 1 to 512");
  EXPECT_EQ(error_of(R"({"custom_id":5,"body":{}})"), "custom_id: 5, wanted a string");
  EXPECT_EQ(error_of(R"({"body":{}})"), "custom_id: null, wanted a string");
}

TEST(BatchRequest, TakesTheCommandLinesValuesWhereTheLineSaysNothing) {
  Options defaults;
  defaults.temperature = 0.5F;
  defaults.system = "Be brief.";
  defaults.stop = {"END"};
  defaults.seed = 9;
  const auto request = Read(R"({"prompt":"Hi","temperature":null})", defaults);
  ASSERT_TRUE(request.ok()) << request.error().Message();
  EXPECT_EQ(request->options.temperature, 0.5F);
  EXPECT_EQ(request->options.stop, defaults.stop);
  EXPECT_EQ(request->options.seed, 9U);
  EXPECT_EQ(request->messages.Dump(),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])");
}

TEST(BatchRequest, SaysWhoGuessesTokens) {
  Options defaults;
  defaults.spec = SpecMode::kNgram;
  EXPECT_EQ(Read(R"({"prompt":"x"})", defaults)->options.spec, SpecMode::kNgram);
  EXPECT_EQ(Read(R"({"prompt":"x","spec":"off"})", defaults)->options.spec, SpecMode::kOff);
  EXPECT_EQ(Read(OpenAi(R"({"messages":[],"spec":"mtp"})"))->options.spec, SpecMode::kMtp);
  EXPECT_EQ(ErrorOf(R"({"prompt":"x","spec":"on"})"),
            "spec: \"on\", wanted auto, mtp, ngram or off");
  EXPECT_EQ(ErrorOf(OpenAi(R"({"messages":[],"spec":1})")),
            "body.spec: 1, wanted auto, mtp, ngram or off");
}

TEST(BatchRequest, ReadsEverySetting) {
  for (const bool is_open_ai : {false, true}) {
    const std::string body =
        R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":5,"temperature":0.25,"top_k":3,)"
        R"("top_p":0.5,"min_p":0.125,"repetition_penalty":1.5,"presence_penalty":-1,)"
        R"("frequency_penalty":2,"seed":18446744073709551615,"stop":["a","b"],)"
        R"("logit_bias":{"5":-100,"6":0.5},"think":true,"model":"m","n":1,"stream":false,"user":"u",)"
        R"("response_format":{"type":"text"},"metadata":{"a":1},"logprobs":false})";
    const auto request = Read(is_open_ai ? OpenAi(body) : body);
    ASSERT_TRUE(request.ok()) << request.error().Message();
    const Options& options = request->options;
    EXPECT_EQ(options.max_tokens, 5);
    EXPECT_EQ(options.temperature, 0.25F);
    EXPECT_EQ(options.top_k, 3);
    EXPECT_EQ(options.top_p, 0.5F);
    EXPECT_EQ(options.min_p, 0.125F);
    EXPECT_EQ(options.repeat_penalty, 1.5F);
    EXPECT_EQ(options.presence_penalty, -1.0F);
    EXPECT_EQ(options.frequency_penalty, 2.0F);
    EXPECT_EQ(options.seed, UINT64_MAX);
    EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(options.logit_bias, (LogitBias{{5, -100.0F}, {6, 0.5F}}));
    EXPECT_TRUE(options.think);
    EXPECT_EQ(request->model, "m");
    EXPECT_EQ(request->messages.Dump(), R"([{"role":"user","content":"Hi"}])");
  }
  EXPECT_EQ(Read(R"({"prompt":"x","max_completion_tokens":6})")->options.max_tokens, 6);
  EXPECT_EQ(Read(R"({"prompt":"x","repeat_penalty":2})")->options.repeat_penalty, 2.0F);
  EXPECT_EQ(Read(R"({"prompt":"x","stop":"y"})")->options.stop, std::vector<std::string>{"y"});
  EXPECT_EQ(Read(R"({"prompt":"x","max_tokens":9999999999})")->options.max_tokens, INT32_MAX);
}

TEST(BatchRequest, TakesARawPrompt) {
  const auto request = Read(R"({"prompt":"<|turn>user","raw":true})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->prompt, "<|turn>user");
  EXPECT_TRUE(request->messages.is_null());
  Options defaults;
  defaults.system = "s";
  EXPECT_EQ(ErrorOf(R"({"prompt":"x","raw":true})", defaults),
            "raw: given with system, wanted no chat template, or one");
  EXPECT_EQ(ErrorOf(R"({"messages":[],"raw":true})"),
            "raw: given with messages, wanted no chat template, or one");
  EXPECT_EQ(ErrorOf(R"({"prompt":"x","think":true,"raw":true})"),
            "raw: given with think, wanted no chat template, or one");
  EXPECT_EQ(ErrorOf(R"({"raw":true})"), "raw: no prompt, wanted one");
}

TEST(BatchRequest, KeepsASystemMessageOfItsOwn) {
  Options defaults;
  defaults.system = "theirs";
  const std::string messages = R"("messages":[{"role":"system","content":"mine"}])";
  EXPECT_EQ(Read("{" + messages + "}", defaults)->messages.Dump(),
            R"([{"role":"system","content":"mine"}])");
  EXPECT_EQ(ErrorOf("{" + messages + R"(,"system":"s"})"),
            "system: given with a message of role system, wanted one of them");
}

TEST(BatchRequest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(ErrorOf("{}"), "line: neither prompt nor messages, wanted one of them");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","messages":[]})"),
            "line: prompt and messages, wanted one of them");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","temprature":1})"),
            "temprature: an unknown field, wanted none of this name (docs/batch.md lists them)");
  EXPECT_EQ(ErrorOf(R"({"prompt":5})"), "prompt: 5, wanted a string");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","top_k":1.5})"), "top_k: 1.5, wanted an integer");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","top_p":"high"})"), "top_p: a string, wanted a number");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","seed":-1})"),
            "seed: -1, wanted an integer from 0 to 18446744073709551615");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","stop":["x",1]})"), "stop[1]: 1, wanted a string");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","logit_bias":{"x":1}})"),
            "logit_bias: \"x\", wanted token ids as keys");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","logit_bias":{"1":true}})"),
            "logit_bias.1: true, wanted a number");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","think":"yes"})"), "think: a string, wanted true or false");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","n":2})"), "n: 2, wanted 1");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","tool_choice":"none"})"),
            "tool_choice: \"none\", wanted \"auto\"");
  EXPECT_EQ(ErrorOf(OpenAi(R"({"messages":[],"stream":true})")), "body.stream: true, wanted false");
  EXPECT_EQ(ErrorOf(OpenAi(R"({"prompt":"a"})")),
            "body.prompt: an unknown field, wanted none of this name (docs/batch.md lists them)");
  EXPECT_EQ(ErrorOf(OpenAi(R"({"messages":[],"response_format":{"type":"json_object"}})")),
            "body.response_format: type \"json_object\", wanted type \"text\"");
  EXPECT_EQ(ErrorOf(OpenAi(R"({"messages":[],"tools":[{}]})")),
            "body.tools: an array, wanted none (a line with id and messages may have tools)");
}

TEST(BatchRequest, ChecksTheEnvelope) {
  EXPECT_EQ(ErrorOf(R"({"custom_id":"a","method":"GET","url":"/v1/chat/completions","body":{}})"),
            "method: \"GET\", wanted \"POST\"");
  EXPECT_EQ(ErrorOf(R"({"custom_id":"a","method":"POST","url":"/v1/embeddings","body":{}})"),
            "url: \"/v1/embeddings\", wanted \"/v1/chat/completions\"");
  EXPECT_EQ(ErrorOf(OpenAi("[]")), "body: an array, wanted an object");
  EXPECT_EQ(ErrorOf(R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","x":1})"),
            "x: an unknown field, wanted custom_id, method, url and body");
}

}  // namespace
}  // namespace facet
