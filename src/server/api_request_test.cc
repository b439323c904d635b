// SPDX-License-Identifier: Apache-2.0
#include "server/api_request.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "server/served_model_testing.h"

namespace facet {
namespace {

using testing::MakeServedModel;
using testing::PlainTemplate;

constexpr const char* kHi = R"("messages":[{"role":"user","content":"Hi"}])";

Json Parse(const std::string& text) {
  const Result<Json> json = ParseJson(text, "body");
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

/// A chat with one message and `members`.
Result<ApiRequest> Chat(const std::string& members, const ServedModel& model = MakeServedModel()) {
  return ReadChatRequest(
      Parse("{" + std::string(kHi) + (members.empty() ? "" : ",") + members + "}"), model);
}

Result<ApiRequest> Completion(const std::string& members) {
  return ReadCompletionRequest(Parse("{" + members + "}"), MakeServedModel());
}

std::string ErrorOf(const Result<ApiRequest>& request) {
  return request.ok() ? "none" : request.error().Message();
}
std::string ChatError(const std::string& members) { return ErrorOf(Chat(members)); }
std::string CompletionError(const std::string& members) { return ErrorOf(Completion(members)); }

TEST(ChatRequest, HasTheModelsValuesWhereItSaysNothing) {
  ServedModel model = MakeServedModel();
  model.sampling.temperature = 0.5F;
  model.sampling.repetition_penalty = 1.25F;
  model.max_tokens = 77;
  const auto request = Chat(R"("temperature":null,"tools":[],"stop":null)", model);
  ASSERT_TRUE(request.ok()) << request.error().Message();
  EXPECT_EQ(request->kind, ApiRequest::Kind::kChat);
  EXPECT_EQ(request->engine.sampling.temperature, 0.5F);
  EXPECT_EQ(request->engine.sampling.repetition_penalty, 1.25F);
  EXPECT_EQ(request->engine.max_tokens, 77);
  EXPECT_EQ(request->engine.n_top_logprobs, -1);
  EXPECT_TRUE(request->engine.reuses_prefix);
  EXPECT_EQ(request->engine.thought.max_tokens, -1);
  EXPECT_TRUE(request->chat.tools.is_null());
  EXPECT_TRUE(request->chat.variables.is_null());
  EXPECT_FALSE(request->chat.thinking);
  EXPECT_EQ(request->n, 1);
  EXPECT_FALSE(request->stream);
  EXPECT_FALSE(request->timeout_s.has_value());
  EXPECT_NE(Chat("")->engine.sampling.seed, Chat("")->engine.sampling.seed);
}

TEST(BothRequests, SayWhoGuessesTokens) {
  EXPECT_EQ(Chat("")->engine.spec, SpecMode::kAuto);
  EXPECT_EQ(Chat(R"("spec":null)")->engine.spec, SpecMode::kAuto);
  EXPECT_EQ(Chat(R"("spec":"mtp")")->engine.spec, SpecMode::kMtp);
  EXPECT_EQ(Chat(R"("spec":"off")")->engine.spec, SpecMode::kOff);
  EXPECT_EQ(Completion(R"("prompt":"a","spec":"ngram")")->engine.spec, SpecMode::kNgram);
  EXPECT_EQ(ChatError(R"("spec":"on")"), "spec: \"on\", wanted auto, mtp, ngram or off");
  EXPECT_EQ(CompletionError(R"("prompt":"a","spec":true)"),
            "spec: true, wanted auto, mtp, ngram or off");
}

TEST(ChatRequest, ReadsEverySetting) {
  const auto request =
      Chat(R"("model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"n":3,)"
           R"("max_completion_tokens":5,"temperature":0.25,"top_p":0.5,"top_k":3,"min_p":0.125,)"
           R"("repeat_penalty":1.5,"presence_penalty":-1,"frequency_penalty":2,"seed":9,)"
           R"("stop":["a","b"],"logit_bias":{"5":-100,"6":0.5},"logprobs":true,"top_logprobs":4,)"
           R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto",)"
           R"("parallel_tool_calls":false,"cache_salt":"s","cache_prompt":false,"timeout":60,)"
           R"("user":"u","metadata":{"a":"b"},"response_format":{"type":"text"},)"
           R"("modalities":["text"],"verbosity":"medium")");
  ASSERT_TRUE(request.ok()) << request.error().Message();
  EXPECT_TRUE(request->stream);
  EXPECT_TRUE(request->include_usage);
  EXPECT_EQ(request->n, 3);
  const Request& engine = request->engine;
  EXPECT_EQ(engine.max_tokens, 5);
  EXPECT_EQ(engine.sampling.temperature, 0.25F);
  EXPECT_EQ(engine.sampling.top_p, 0.5F);
  EXPECT_EQ(engine.sampling.top_k, 3);
  EXPECT_EQ(engine.sampling.min_p, 0.125F);
  EXPECT_EQ(engine.sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(engine.sampling.presence_penalty, -1.0F);
  EXPECT_EQ(engine.sampling.frequency_penalty, 2.0F);
  EXPECT_EQ(engine.sampling.seed, 9U);
  EXPECT_EQ(engine.stop, (std::vector<std::string>{"a", "b"}));
  const std::vector<std::pair<int32_t, float>> biases = {{5, -100.0F}, {6, 0.5F}};
  EXPECT_EQ(engine.sampling.logit_bias, biases);
  EXPECT_EQ(engine.n_top_logprobs, 4);
  EXPECT_FALSE(engine.reuses_prefix);
  EXPECT_EQ(engine.cache_salt, "s");
  EXPECT_TRUE(engine.prompt.empty());
  EXPECT_EQ(request->chat.tools.items().size(), 1U);
  EXPECT_FALSE(request->parallel_tool_calls);
  EXPECT_EQ(request->timeout_s, 60);
}

TEST(ChatRequest, TakesOtherFormsOfAValue) {
  EXPECT_EQ(Chat(R"("max_tokens":6)")->engine.max_tokens, 6);
  EXPECT_EQ(Chat(R"("max_tokens":6,"max_completion_tokens":6)")->engine.max_tokens, 6);
  EXPECT_EQ(Chat(R"("n_predict":-1)")->engine.max_tokens, -1);
  EXPECT_EQ(Chat(R"("stop":"x")")->engine.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(Chat(R"("repetition_penalty":2)")->engine.sampling.repetition_penalty, 2.0F);
  const std::vector<std::pair<int32_t, float>> biases = {{7, 1.5F}};
  EXPECT_EQ(Chat(R"("logit_bias":[[7,1.5]])")->engine.sampling.logit_bias, biases);
  EXPECT_EQ(Chat(R"("logprobs":true)")->engine.n_top_logprobs, 0);
  EXPECT_EQ(Chat(R"("logprobs":false,"top_logprobs":0)")->engine.n_top_logprobs, -1);
}

TEST(ChatRequest, TakesOnlySoManyBiasesAndVariables) {
  std::string pairs;
  std::string members;
  for (int n = 0; n < 1025; ++n) {
    pairs += (n > 0 ? ",[" : "[") + std::to_string(n) + ",1]";
    members += (n > 0 ? ",\"" : "\"") + std::to_string(n) + "\":1";
  }
  EXPECT_EQ(ChatError(R"("logit_bias":[)" + pairs + "]"),
            "logit_bias: 1025 tokens, wanted at most 1024");
  EXPECT_EQ(ChatError(R"("logit_bias":{)" + members + "}"),
            "logit_bias: 1025 tokens, wanted at most 1024");
  EXPECT_EQ(ChatError(R"("chat_template_kwargs":{)" + members + "}"),
            "chat_template_kwargs: 1025 variables, wanted at most 64");
}

TEST(ChatRequest, TakesAnySeedOf64Bits) {
  EXPECT_EQ(Chat(R"("seed":0)")->engine.sampling.seed, 0U);
  EXPECT_EQ(Chat(R"("seed":-2)")->engine.sampling.seed, UINT64_MAX - 1);
  EXPECT_EQ(Chat(R"("seed":18446744073709551615)")->engine.sampling.seed, UINT64_MAX);
  EXPECT_NE(Chat(R"("seed":-1)")->engine.sampling.seed, Chat(R"("seed":-1)")->engine.sampling.seed);
  EXPECT_EQ(ChatError(R"("seed":18446744073709551616)"),
            "seed: 18446744073709551616, wanted an integer of 64 bits");
  EXPECT_EQ(ChatError(R"("seed":0.5)"), "seed: 0.5, wanted an integer of 64 bits");
}

TEST(ChatRequest, TakesEveryRoleAndParts) {
  const auto request = ReadChatRequest(
      Parse(R"({"messages":[{"role":"developer","content":"d"},)"
            R"({"role":"user","content":[{"type":"text","text":"a"}]},)"
            R"({"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",)"
            R"("function":{"name":"f","arguments":"{}"}}]},)"
            R"({"role":"tool","tool_call_id":"1","content":"r"}]})"),
      MakeServedModel());
  ASSERT_TRUE(request.ok()) << request.error().Message();
  EXPECT_EQ(request->chat.messages.items().size(), 4U);
}

TEST(ChatRequest, DropsToolsThatMayNotBeUsed) {
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}],)";
  EXPECT_TRUE(Chat(tools + R"("tool_choice":"none")")->chat.tools.is_null());
  EXPECT_EQ(ChatError(tools + R"("tool_choice":"required")"),
            "tool_choice: \"required\", wanted \"none\" or \"auto\" (a call cannot be forced)");
  EXPECT_EQ(ChatError(tools + R"("tool_choice":{"type":"function","function":{"name":"f"}})"),
            "tool_choice: an object, wanted \"none\" or \"auto\" (a call cannot be forced)");
  EXPECT_EQ(ChatError(R"("tools":[{"type":"function","function":{}}],"tool_choice":"none")"),
            "tools[0].function.name: nothing, wanted a name");
  EXPECT_EQ(ChatError(R"("functions":[])"),
            "functions: an array, wanted tools and tool_choice in place of it");
  EXPECT_EQ(ChatError(R"("function_call":"auto")"),
            "function_call: \"auto\", wanted tools and tool_choice in place of it");
}

/// Whether it thinks, and with which budget.
std::pair<bool, int> Thinking(const std::string& members,
                              const ServedModel& model = MakeServedModel()) {
  const auto request = Chat(members, model);
  EXPECT_TRUE(request.ok()) << members << ": " << ErrorOf(request);
  return request.ok() ? std::pair(request->chat.thinking, request->engine.thought.max_tokens)
                      : std::pair(false, -2);
}

TEST(Thinking, ComesUnderManyNames) {
  const std::pair off(false, 0);
  EXPECT_EQ(Thinking(R"("reasoning_effort":"none")"), off);
  EXPECT_EQ(Thinking(R"("reasoning_effort":"minimal")"), std::pair(true, 256));
  EXPECT_EQ(Thinking(R"("reasoning_effort":"low")"), std::pair(true, 1024));
  EXPECT_EQ(Thinking(R"("reasoning_effort":"medium")"), std::pair(true, 4096));
  EXPECT_EQ(Thinking(R"("reasoning_effort":"high")"), std::pair(true, -1));
  EXPECT_EQ(Thinking(R"("reasoning_effort":"xhigh")"), std::pair(true, -1));
  for (const char* name : {"think", "enable_thinking"}) {
    EXPECT_EQ(Thinking('"' + std::string(name) + "\":true"), std::pair(true, -1));
    EXPECT_EQ(Thinking('"' + std::string(name) + "\":false"), off);
  }
  for (const char* name : {"reasoning_budget", "thinking_budget", "thinking_budget_tokens"}) {
    EXPECT_EQ(Thinking('"' + std::string(name) + "\":10"), std::pair(true, 10));
    EXPECT_EQ(Thinking('"' + std::string(name) + "\":0"), off);
    EXPECT_EQ(Thinking('"' + std::string(name) + "\":-1"), std::pair(false, -1));
  }
  EXPECT_EQ(Thinking(R"("chat_template_kwargs":{"enable_thinking":true,"thinking_budget":9})"),
            std::pair(true, 9));
}

TEST(Thinking, AgreesWithItselfOrIsRefused) {
  EXPECT_EQ(Thinking(R"("reasoning_effort":"low","reasoning_budget":5)"), std::pair(true, 5));
  EXPECT_EQ(Thinking(R"("think":false,"reasoning_budget":5)"), std::pair(false, 0));
  EXPECT_EQ(Thinking(R"("think":true,"enable_thinking":true)"), std::pair(true, -1));
  EXPECT_EQ(ChatError(R"("think":true,"reasoning_effort":"none")"),
            "reasoning_effort: false, wanted true, as think says");
  EXPECT_EQ(ChatError(R"("think":true,"reasoning_budget":0)"),
            "reasoning_budget: 0, wanted more, as think says");
  EXPECT_EQ(ChatError(R"("thinking_budget":3,"chat_template_kwargs":{"thinking_budget":4})"),
            "chat_template_kwargs.thinking_budget: 4, wanted 3, as thinking_budget says");
  EXPECT_EQ(ChatError(R"("reasoning_effort":"max")"),
            "reasoning_effort: \"max\", wanted none, minimal, low, medium, high or xhigh");
  EXPECT_EQ(ChatError(R"("reasoning_budget":-2)"),
            "reasoning_budget: -2, wanted at least 0, or -1 for no limit");
}

TEST(Thinking, IsTheServersWhereNothingIsSaid) {
  ServedModel model = MakeServedModel();
  model.thinks = true;
  EXPECT_EQ(Thinking("", model), std::pair(true, -1));
  EXPECT_EQ(Thinking(R"("think":false)", model), std::pair(false, 0));
  model.chat_template = &PlainTemplate();
  EXPECT_EQ(Thinking("", model), std::pair(false, -1));
  EXPECT_EQ(
      ErrorOf(Chat(R"("reasoning_effort":"low")", model)),
      "reasoning_effort: thinking, wanted none (the model's chat template knows no thinking)");
  EXPECT_EQ(ErrorOf(Chat(R"("tools":[{"function":{"name":"f"}}])", model)),
            "tools: an array, wanted none (the model's chat template knows no tools)");
}

TEST(ChatRequest, HandsVariablesToTheTemplate) {
  EXPECT_EQ(
      Chat(R"("chat_template_kwargs":{"enable_thinking":true,"a":[1]})")->chat.variables.Dump(),
      R"({"a":[1]})");
  EXPECT_EQ(ChatError(R"("chat_template_kwargs":{"enable_thinking":1})"),
            "chat_template_kwargs.enable_thinking: 1, wanted true or false");
  EXPECT_EQ(ChatError(R"("chat_template_kwargs":{"messages":1})"),
            "chat_template_kwargs.messages: a name with a meaning of its own, wanted another name");
}

TEST(ChatRequest, NamesTheFieldThatIsWrong) {
  const ServedModel model = MakeServedModel();
  const auto error = [&](const std::string& text) {
    return ErrorOf(ReadChatRequest(Parse(text), model));
  };
  EXPECT_EQ(error("[]"), "body: an array, wanted an object");
  EXPECT_EQ(error("{}"), "messages: nothing, wanted an array of messages");
  EXPECT_EQ(error(R"({"messages":[]})"), "messages: an empty array, wanted at least one message");
  EXPECT_EQ(error(R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":5}]})"),
            "messages[1].content: an integer, wanted a string or an array of parts");
  EXPECT_EQ(ChatError(R"("temprature":1)"), "temprature: an unknown field, wanted temperature");
  EXPECT_EQ(ChatError(R"("zzz":1)"), "zzz: an unknown field, wanted none of this name");
  EXPECT_EQ(ChatError(R"("":1)"), "body: an unknown field, wanted none of this name");
  EXPECT_EQ(ChatError(R"("prompt":"a")"),
            "prompt: a field of completions, wanted none of this name");
  EXPECT_EQ(ChatError('"' + std::string(100, 'x') + "\":1"),
            "body: an unknown field, wanted none of this name");
  EXPECT_EQ(ChatError(R"("model":5)"), "model: 5, wanted a string");
  EXPECT_EQ(ChatError(R"("stream":"yes")"), "stream: \"yes\", wanted true or false");
  EXPECT_EQ(ChatError(R"("stream_options":{"include_usage":true})"),
            "stream_options: given without stream, wanted stream true with it");
  EXPECT_EQ(ChatError(R"("stream":true,"stream_options":{"x":1})"),
            "stream_options: an unknown member \"x\", wanted include_usage");
  EXPECT_EQ(ChatError(R"("n":0)"), "n: 0, wanted 1 to 128");
  EXPECT_EQ(ChatError(R"("n":129)"), "n: 129, wanted 1 to 128");
  EXPECT_EQ(ChatError(R"("top_k":1.5)"), "top_k: 1.5, wanted an integer");
  EXPECT_EQ(ChatError(R"("top_p":2)"), "top_p: 2, wanted a number above 0, at most 1");
  EXPECT_EQ(ChatError(R"("temperature":-1)"), "temperature: -1, wanted a number from 0 to 100");
  EXPECT_EQ(ChatError(R"("temperature":")" + std::string(100, 'x') + "\""),
            "temperature: a string, wanted a number");
  EXPECT_EQ(ChatError(R"("max_completion_tokens":0)"),
            "max_completion_tokens: 0, wanted at least 1, or -1 for no limit");
  EXPECT_EQ(ChatError(R"("max_tokens":5,"max_completion_tokens":6)"),
            "max_completion_tokens: 6, wanted 5, as max_tokens says");
  EXPECT_EQ(ChatError(R"("repeat_penalty":0)"),
            "repeat_penalty: 0, wanted a number above 0, at most 10");
  EXPECT_EQ(ChatError(R"("stop":["x",1])"), "stop[1]: 1, wanted a string");
  EXPECT_EQ(ChatError(R"("stop":"")"), "stop[0]: 0 bytes, wanted 1 to 4096");
  EXPECT_EQ(ChatError(R"("top_logprobs":2)"),
            "top_logprobs: given without logprobs, wanted logprobs true with it");
  EXPECT_EQ(ChatError(R"("logprobs":true,"top_logprobs":21)"), "top_logprobs: 21, wanted 0 to 20");
  EXPECT_EQ(ChatError(R"("logprobs":1)"), "logprobs: 1, wanted true or false");
  EXPECT_EQ(ChatError(R"("timeout":0)"), "timeout: 0, wanted 1 to 86400");
}

TEST(ChatRequest, ChecksBiases) {
  const std::string most = std::to_string(MakeServedModel().vocab->size() - 1);
  EXPECT_EQ(ChatError(R"("logit_bias":{"x":1})"), "logit_bias: \"x\", wanted token ids as keys");
  EXPECT_EQ(ChatError(R"("logit_bias":{"1":true})"), "logit_bias.1: true, wanted a number");
  EXPECT_EQ(ChatError(R"("logit_bias":{"1":101})"),
            "logit_bias[0]: 101, wanted a number from -100 to 100");
  EXPECT_EQ(ChatError(R"("logit_bias":[[99999999,1]])"),
            "logit_bias[0]: token 99999999, wanted 0 to " + most);
  EXPECT_EQ(ChatError(R"("logit_bias":[[1]])"),
            "logit_bias[0]: an array, wanted a token id and a number");
  EXPECT_EQ(ChatError(R"("logit_bias":[1])"), "logit_bias[0]: 1, wanted a token id and a number");
}

TEST(ChatRequest, DoesNotWeakenWhatItCannotDo) {
  EXPECT_EQ(
      ChatError(R"("response_format":{"type":"json_object"})"),
      "response_format.type: \"json_object\", wanted \"text\" (replies cannot be bound to JSON "
      "or a schema)");
  EXPECT_EQ(ChatError(R"("grammar":"root ::= x")"), "grammar: \"root ::= x\", wanted none of it");
  EXPECT_EQ(ChatError(R"("mirostat":2)"), "mirostat: 2, wanted 0");
  EXPECT_EQ(ChatError(R"("typ_p":0.5)"), "typ_p: 0.5, wanted 1");
  EXPECT_EQ(ChatError(R"("samplers":["top_k"])"), "samplers: an array, wanted none of it");
  EXPECT_EQ(ChatError(R"("ignore_eos":true)"), "ignore_eos: true, wanted false");
  EXPECT_EQ(ChatError(R"("modalities":["text","audio"])"),
            "modalities: an array, wanted [\"text\"]");
  EXPECT_EQ(ChatError(R"("reasoning_format":"none")"),
            "reasoning_format: \"none\", wanted \"auto\" (thoughts come as reasoning_content)");
  EXPECT_EQ(ChatError(R"("repeat_last_n":64,"repeat_penalty":1.1)"),
            "repeat_last_n: 64, wanted -1 (penalties look at the whole text)");
  EXPECT_EQ(ChatError(R"("repeat_last_n":64)"), "none");
  EXPECT_EQ(
      ChatError(R"("mirostat":0,"mirostat_tau":5,"dry_multiplier":0,"dry_base":1.75,)"
                R"("xtc_probability":0,"typ_p":1,"samplers":"","grammar":"","json_schema":{},)"
                R"("ignore_eos":false,"return_progress":true,"timings_per_token":true,)"
                R"("reasoning_format":"auto","id_slot":3)"),
      "none");
}

TEST(CompletionRequest, TakesEveryFormOfPrompts) {
  const auto prompts = [](const std::string& value) {
    const auto request = Completion("\"prompt\":" + value);
    EXPECT_TRUE(request.ok()) << ErrorOf(request);
    return request.ok() ? request->prompts : std::vector<PromptText>();
  };
  using Tokens = std::vector<int32_t>;
  EXPECT_EQ(prompts(R"("a")"), (std::vector<PromptText>{"a"}));
  EXPECT_EQ(prompts(R"(["a","b"])"), (std::vector<PromptText>{"a", "b"}));
  EXPECT_EQ(prompts("[5,6]"), (std::vector<PromptText>{Tokens{5, 6}}));
  EXPECT_EQ(prompts("[[5],[6,7]]"), (std::vector<PromptText>{Tokens{5}, Tokens{6, 7}}));
}

TEST(CompletionRequest, ReadsItsOwnFields) {
  const auto request = Completion(
      R"("prompt":"a","echo":true,"suffix":"","best_of":2,"n":2,"max_tokens":3,"stream":true)");
  ASSERT_TRUE(request.ok()) << request.error().Message();
  EXPECT_EQ(request->kind, ApiRequest::Kind::kCompletion);
  EXPECT_TRUE(request->echo);
  EXPECT_EQ(request->n, 2);
  EXPECT_EQ(request->engine.n_top_logprobs, -1);
  EXPECT_EQ(Completion(R"("prompt":"a","logprobs":0)")->engine.n_top_logprobs, 0);
  EXPECT_EQ(Completion(R"("prompt":"a","logprobs":20)")->engine.n_top_logprobs, 20);
}

TEST(CompletionRequest, NamesTheFieldThatIsWrong) {
  const std::string forms = "a string, an array of strings, or of tokens";
  const std::string most = std::to_string(MakeServedModel().vocab->size() - 1);
  EXPECT_EQ(CompletionError(""), "prompt: nothing, wanted " + forms);
  EXPECT_EQ(CompletionError(R"("prompt":[])"), "prompt: an array, wanted " + forms);
  EXPECT_EQ(CompletionError(R"("prompt":5)"), "prompt: 5, wanted " + forms);
  EXPECT_EQ(CompletionError(R"("prompt":[5,"a"])"), "prompt[1]: \"a\", wanted an integer");
  EXPECT_EQ(CompletionError(R"("prompt":["a",{}])"),
            "prompt[1]: an object, wanted a string or an array of tokens");
  EXPECT_EQ(CompletionError(R"("prompt":[[1],[]])"),
            "prompt: no tokens in prompt 1, wanted at least 1");
  EXPECT_EQ(CompletionError(R"("prompt":[1,-1])"),
            "prompt: token -1 at 1 of prompt 0, wanted 0 to " + most);
  EXPECT_EQ(CompletionError(R"("prompt":["a","b"],"n":65)"),
            "n: 65 for each of 2 prompts, wanted at most 128 replies together");
  EXPECT_EQ(CompletionError(R"("prompt":"a","best_of":3)"),
            "best_of: 3, wanted 1, as n is (all replies are returned)");
  EXPECT_EQ(CompletionError(R"("prompt":"a","suffix":"b")"),
            "suffix: \"b\", wanted none (gaps in a text are not filled)");
  EXPECT_EQ(CompletionError(R"("prompt":"a","logprobs":21)"), "logprobs: 21, wanted 0 to 20");
  EXPECT_EQ(CompletionError(R"("prompt":"a","echo":true,"logprobs":1)"),
            "echo: true with logprobs, wanted one of them (log probabilities of a prompt are not "
            "computed)");
  EXPECT_EQ(CompletionError(R"("prompt":"a","messages":[])"),
            "messages: a field of chats, wanted none of this name");
}

}  // namespace
}  // namespace facet
