// SPDX-License-Identifier: Apache-2.0
#include "server/api_reply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "server/served_model_testing.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::JsonLinesOrDie;
using testing::MakeServedModel;
using testing::TestdataPath;
using testing::TinyVocab;
using Prompts = std::vector<std::vector<int32_t>>;

const ServedModel& Model() {
  static const ServedModel model = MakeServedModel();
  return model;
}

Json Parse(std::string_view text) {
  auto json = ParseJson(text, "answer");
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *std::move(json) : Json();
}

ApiRequest ReadOrDie(bool is_chat, const std::string& members) {
  const std::string body =
      is_chat ? R"({"messages":[{"role":"user","content":"Hi"}])" : R"({"prompt":"Hi")";
  const Json json = Parse(body + (members.empty() ? "" : ",") + members + "}");
  auto request = is_chat ? ReadChatRequest(json, Model()) : ReadCompletionRequest(json, Model());
  EXPECT_TRUE(request.ok()) << request.error().Message();
  return request.ok() ? *std::move(request) : ApiRequest();
}
ApiRequest Chat(const std::string& members) { return ReadOrDie(true, members); }
ApiRequest Completion(const std::string& members) { return ReadOrDie(false, members); }

constexpr const char* kWeather =
    R"("tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object",)"
    R"("properties":{"city":{"type":"string"}}}}}])";

/// A mark by its text; other text as one ordinary token with those bytes.
Event Token(std::string_view piece) {
  const std::optional<int> id = TinyVocab().Find(piece);
  Event event;
  event.token = id && TinyVocab().is_special(*id) ? *id : id.value_or(*TinyVocab().Find("a"));
  event.bytes = piece;
  event.logprob = {event.token, -0.5F};
  event.top_logprobs = {{event.token, -0.5F}, {*TinyVocab().Find("b"), -1.5F}};
  return event;
}

Event End(FinishReason reason = FinishReason::kEndToken, int n_generated = 5) {
  Event event;
  event.kind = Event::Kind::kFinished;
  event.reason = reason;
  event.stats.n_prompt = 3;
  event.stats.n_cached = 2;
  event.stats.n_generated = n_generated;
  return event;
}

std::vector<Event> Events(std::initializer_list<std::string_view> pieces) {
  std::vector<Event> events;
  for (const std::string_view piece : pieces) {
    events.push_back(Token(piece));
  }
  events.push_back(End());
  return events;
}

/// All that is sent for the events of choice 0.
std::string Answer(const ApiRequest& request, const std::vector<Event>& events) {
  ApiReply reply(request, Model(), "chatcmpl-1", 1700000000, Prompts{{2, 5, 6}});
  std::string bytes = reply.Start();
  for (const Event& event : events) {
    EXPECT_FALSE(reply.is_complete());
    bytes += reply.Add(0, event);
  }
  EXPECT_TRUE(reply.is_complete());
  return bytes + reply.Finish();
}

/// The values after "data: "; the last event must be [DONE] unless there is an error.
std::vector<Json> ChunksOf(std::string_view stream) {
  std::vector<Json> chunks;
  while (!stream.empty()) {
    const size_t end = stream.find("\n\n");
    EXPECT_NE(end, std::string_view::npos);
    std::string_view line = stream.substr(0, end);
    EXPECT_TRUE(line.starts_with("data: ")) << line;
    EXPECT_EQ(line.find('\n'), std::string_view::npos);
    line.remove_prefix(6);
    stream.remove_prefix(end + 2);
    if (line == "[DONE]") {
      EXPECT_TRUE(stream.empty());
      return chunks;
    }
    chunks.push_back(Parse(line));
  }
  EXPECT_TRUE(!chunks.empty() && chunks.back().contains("error"));
  return chunks;
}

/// The deltas of choice 0, one a line.
std::string Deltas(const std::vector<Json>& chunks) {
  std::string lines;
  for (const Json& chunk : chunks) {
    lines += chunk["choices"].items()[0]["delta"].Dump() + "\n";
  }
  return lines;
}

TEST(ChatReply, IsOneObject) {
  EXPECT_EQ(Answer(Chat(""), Events({"Hel", "lo"})),
            R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"tiny",)"
            R"("system_fingerprint":"fp_test","choices":[{"index":0,"message":{"role":"assistant",)"
            R"("content":"Hello","refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
            R"("usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8,)"
            R"("prompt_tokens_details":{"cached_tokens":2},)"
            R"("completion_tokens_details":{"reasoning_tokens":0,)"
            R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}})");
}

/// A chat about a picture of 3 tokens, sound of 2 and two frames of 4.
ApiRequest ChatWithMedia(const std::string& members) {
  ApiRequest request = Chat(members);
  const auto place = [&](MediaKind kind, int n_tokens) {
    auto item = std::make_shared<MediaItem>();
    item->kind = kind;
    item->n_tokens = n_tokens;
    request.engine.media.push_back({0, item});
  };
  place(MediaKind::kImage, 3);
  place(MediaKind::kAudio, 2);
  place(MediaKind::kVideoFrame, 4);
  place(MediaKind::kVideoFrame, 4);
  request.media.notices = {"a: shrunk", "b: cut"};
  return request;
}

TEST(ChatReply, CountsMediaAndTellsNotices) {
  const Json whole = Parse(Answer(ChatWithMedia(""), Events({"Hi"})));
  EXPECT_EQ(whole["usage"]["prompt_tokens_details"].Dump(),
            R"({"cached_tokens":2,"audio_tokens":2,"image_tokens":3,"video_tokens":8})");
  EXPECT_EQ(whole["notices"].Dump(), R"(["a: shrunk","b: cut"])");
  const auto chunks = ChunksOf(Answer(
      ChatWithMedia(R"("stream":true,"stream_options":{"include_usage":true})"), Events({"Hi"})));
  ASSERT_EQ(chunks.size(), 4U);
  EXPECT_EQ(chunks[0]["notices"], whole["notices"]);
  EXPECT_FALSE(chunks[1].contains("notices"));
  EXPECT_FALSE(chunks[3].contains("notices"));
  EXPECT_EQ(chunks[3]["usage"]["prompt_tokens_details"], whole["usage"]["prompt_tokens_details"]);
}

TEST(ChatReply, IsAStreamOfChunks) {
  const std::string head =
      R"(data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,)"
      R"("model":"tiny","system_fingerprint":"fp_test","choices":[)";
  const auto chunk = [&](const std::string& delta, const std::string& reason) {
    return head + R"({"index":0,"delta":)" + delta + R"(,"logprobs":null,"finish_reason":)" +
           reason + R"(}],"usage":null})" + "\n\n";
  };
  EXPECT_EQ(Answer(Chat(R"("stream":true,"stream_options":{"include_usage":true})"),
                   Events({"Hel", "\xc3", "\xa9"})),
            chunk(R"({"role":"assistant","content":""})", "null") +
                chunk(R"({"content":"Hel"})", "null") +
                chunk("{\"content\":\"\xc3\xa9\"}", "null") + chunk("{}", "\"stop\"") + head +
                R"(],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8,)"
                R"("prompt_tokens_details":{"cached_tokens":2},)"
                R"("completion_tokens_details":{"reasoning_tokens":0,)"
                R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}})"
                "\n\ndata: [DONE]\n\n");
}

TEST(ChatReply, HasThoughtsAndCallsInTheirOwnMembers) {
  const std::vector<Event> events =
      Events({"<|channel>", "thought\n", "Hmm", "<channel|>", "Ok", "<|tool_call>",
              "call:weather{city:", "<|\"|>", "Oslo", "<|\"|>", "}", "<tool_call|>", "<|tool_call>",
              "call:weather{city:", "<|\"|>", "Rome", "<|\"|>", "}", "<tool_call|>"});
  const Json whole = Parse(Answer(Chat(kWeather), events));
  const Json& choice = whole["choices"].items()[0];
  const Json& calls = choice["message"]["tool_calls"];
  ASSERT_EQ(calls.items().size(), 2U);
  const std::string first = calls.items()[0]["id"].as_string();
  const std::string second = calls.items()[1]["id"].as_string();
  EXPECT_EQ(first.size(), 29U);
  EXPECT_TRUE(first.starts_with("call_"));
  EXPECT_NE(first, second);
  EXPECT_EQ(choice["message"].Dump(),
            R"({"role":"assistant","content":"Ok","refusal":null,"reasoning_content":"Hmm",)"
            R"("tool_calls":[{"id":")" +
                first +
                R"(","type":"function","function":{"name":)"
                R"("weather","arguments":"{\"city\":\"Oslo\"}"}},{"id":")" +
                second +
                R"(","type":"function","function":{"name":"weather","arguments":)"
                R"("{\"city\":\"Rome\"}"}}]})");
  EXPECT_EQ(choice["finish_reason"], Json("tool_calls"));

  const auto chunks = ChunksOf(Answer(Chat(std::string(kWeather) + R"(,"stream":true)"), events));
  EXPECT_EQ(Deltas(chunks), R"({"role":"assistant","content":""})"
                            "\n"
                            R"({"reasoning_content":"Hmm"})"
                            "\n"
                            R"({"content":"Ok"})"
                            "\n"
                            R"({"tool_calls":[{"index":0,"id":")" +
                                first +
                                R"(","type":"function","function":)"
                                R"({"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]})"
                                "\n"
                                R"({"tool_calls":[{"index":1,"id":")" +
                                second +
                                R"(","type":"function","function":)"
                                R"({"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]})"
                                "\n{}\n");
  EXPECT_EQ(chunks.back()["choices"].items()[0]["finish_reason"], Json("tool_calls"));
}

TEST(ChatReply, ContentIsNullBesideCallsOnly) {
  const Json message = Parse(Answer(
      Chat(kWeather), Events({"<|tool_call>", "call:weather{}", "<tool_call|>"})))["choices"]
                           .items()[0]["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_TRUE(message.contains("content"));
  const Json empty = Parse(Answer(Chat(""), {End()}))["choices"].items()[0]["message"];
  EXPECT_EQ(empty["content"], Json(""));
}

TEST(ChatReply, EndsAfterTheFirstCallWhereOnlyOneIsAllowed) {
  const ApiRequest request = Chat(std::string(kWeather) + R"(,"parallel_tool_calls":false)");
  ApiReply reply(request, Model(), "chatcmpl-1", 0, Prompts{{2}});
  EXPECT_EQ(reply.Start(), "");
  for (const char* piece : {"<|tool_call>", "call:weather{}"}) {
    (void)reply.Add(0, Token(piece));
    EXPECT_FALSE(reply.wants_no_more(0));
  }
  for (const char* piece : {"<tool_call|>", "<|tool_call>", "call:weather{}", "<tool_call|>"}) {
    (void)reply.Add(0, Token(piece));
    EXPECT_TRUE(reply.wants_no_more(0));
  }
  EXPECT_FALSE(reply.is_complete());
  (void)reply.Add(0, End(FinishReason::kCancelled, 6));
  EXPECT_TRUE(reply.is_complete());
  EXPECT_FALSE(reply.wants_no_more(0));
  const Json answer = Parse(reply.Finish());
  const Json& choice = answer["choices"].items()[0];
  EXPECT_EQ(choice["message"]["tool_calls"].items().size(), 1U);
  EXPECT_EQ(choice["finish_reason"], Json("tool_calls"));
  EXPECT_FALSE(choice.contains("facet"));
  EXPECT_EQ(answer["usage"]["completion_tokens"], Json(3));
  EXPECT_EQ(reply.finish_reason(), "tool_calls");
}

TEST(ChatReply, CountsDraftsInItsUsage) {
  const auto details_of = [](const Json& answer) {
    return answer["usage"]["completion_tokens_details"].Dump();
  };
  const auto with_drafts = [](std::vector<Event> events) {
    events.back().stats.n_drafted = 7;
    events.back().stats.n_accepted = 4;
    return events;
  };
  const std::string wanted =
      R"({"reasoning_tokens":0,"accepted_prediction_tokens":4,"rejected_prediction_tokens":3})";
  EXPECT_EQ(details_of(Parse(Answer(Chat(""), with_drafts(Events({"Hel", "lo"}))))), wanted);
  const auto chunks =
      ChunksOf(Answer(Chat(R"("stream":true,"stream_options":{"include_usage":true})"),
                      with_drafts(Events({"Hel", "lo"}))));
  EXPECT_EQ(details_of(chunks.back()), wanted);
}

TEST(ChatReply, TakesAnEndTokenThatClosesACall) {
  const ApiRequest request = Chat(std::string(kWeather) + R"(,"parallel_tool_calls":false)");
  std::vector<Event> events = Events({"<|tool_call>", "call:weather{city:", "Oslo"});
  events.back().token = *TinyVocab().Find("<tool_call|>");
  const Json choice = Parse(Answer(request, events))["choices"].items()[0];
  EXPECT_EQ(choice["finish_reason"], Json("tool_calls"));
  EXPECT_EQ(choice["message"]["tool_calls"].items().size(), 1U);
}

std::pair<std::string, std::string> ReasonAndNotes(const ApiRequest& request,
                                                   const std::vector<Event>& events) {
  const Json choice = Parse(Answer(request, events))["choices"].items()[0];
  return {choice["finish_reason"].as_string(), choice["facet"].Dump()};
}

TEST(ChatReply, SaysWhyItEnded) {
  using Pair = std::pair<std::string, std::string>;
  const auto end = [](FinishReason reason) {
    return ReasonAndNotes(Chat(""), {Token("a"), End(reason)});
  };
  EXPECT_EQ(end(FinishReason::kEndToken), Pair("stop", "null"));
  EXPECT_EQ(end(FinishReason::kStopString), Pair("stop", "null"));
  EXPECT_EQ(end(FinishReason::kMaxTokens), Pair("length", "null"));
  EXPECT_EQ(end(FinishReason::kContext), Pair("length", R"({"finish":"context"})"));
  EXPECT_EQ(end(FinishReason::kRepetition), Pair("length", R"({"finish":"repetition"})"));
  EXPECT_EQ(end(FinishReason::kCancelled), Pair("length", R"({"finish":"cancelled"})"));
}

TEST(ChatReply, TellsWhatOpenAisObjectHasNoWordsFor) {
  using Pair = std::pair<std::string, std::string>;
  Event cut = End();
  cut.stats.thought_was_cut = true;
  EXPECT_EQ(ReasonAndNotes(Chat(""), {Token("a"), cut}), Pair("stop", R"({"thought_cut":true})"));
  const std::vector<Event> broken = Events({"<|tool_call>", "no call at all", "<tool_call|>"});
  EXPECT_EQ(ReasonAndNotes(Chat(kWeather), broken), Pair("stop", R"({"call_parse_errors":1})"));
  EXPECT_EQ(Parse(Answer(Chat(kWeather), broken))["choices"].items()[0]["message"]["content"],
            Json("no call at all"));
}

/// The bytes of the tokens that are listed for the content.
std::string Listed(const ApiRequest& request, const std::vector<Event>& events) {
  std::string bytes;
  const Json choice = Parse(Answer(request, events))["choices"].items()[0];
  for (const Json& token : choice["logprobs"]["content"].items()) {
    bytes += token["token"].as_string() + "|";
  }
  return bytes;
}

TEST(ChatReply, ListsNoTokensOfThoughtsAndCalls) {
  const ApiRequest request = Chat(std::string(kWeather) + R"(,"logprobs":true)");
  // White space that is held while a late thought comes is content; the thought is none.
  EXPECT_EQ(Listed(request, Events({" ", "<|channel>", "t", "<channel|>", "b"})), "a|b|");
  // Nor is the header of an empty thought, whatever ends it.
  EXPECT_EQ(
      Listed(request, Events({"<|channel>", "t", "h", "o", "u", "g", "h", "t", "<channel|>", "b"})),
      "b|");
  EXPECT_EQ(
      Listed(request, Events({"<|channel>", "t", "h", "o", "u", "g", "h", "t", "<turn|>", "b"})),
      "b|");
  // A call, with and without something after it.
  const auto with = [](std::string_view call, std::string_view after) {
    std::vector<Event> events = Events({"a", "<|tool_call>"});
    events.pop_back();
    for (const char letter : call) {
      events.push_back(Token(std::string(1, letter)));
      events.back().logprob.token = *TinyVocab().Find("c");
    }
    events.push_back(Token("<tool_call|>"));
    events.push_back(Token(after));
    events.push_back(End());
    return events;
  };
  EXPECT_EQ(Listed(request, with("call:weather{}", "b")), "a|b|");
  EXPECT_EQ(Listed(request, with("call:weather{}call:", "b")), "a|c|c|c|c|c|b|");
  // What cannot be read is content.
  EXPECT_EQ(Listed(request, with("xy", "b")), "a|c|c|b|");
}

TEST(ChatReply, ListsTheTokensOfItsContent) {
  const std::string wanted = R"("logprobs":true,"top_logprobs":2)";
  Event smile = Token("b");
  smile.logprob = {TinyVocab().byte_id(0xC3), -std::numeric_limits<float>::infinity()};
  smile.bytes = "\xc3";
  smile.top_logprobs.clear();
  std::vector<Event> events = Events({"<|channel>", "thought\n", "x", "<channel|>", "a"});
  events.insert(events.end() - 1, {smile, Token("b")});
  const Json choice = Parse(Answer(Chat(wanted), events))["choices"].items()[0];
  EXPECT_EQ(choice["message"]["content"], Json("a\xef\xbf\xbd"
                                               "b"));
  EXPECT_EQ(
      choice["logprobs"].Dump(),
      R"({"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[)"
      R"({"token":"a","logprob":-0.5,"bytes":[97]},{"token":"b","logprob":-1.5,"bytes":[98]}]},)"
      "{\"token\":\"\xef\xbf\xbd\",\"logprob\":-9999.0,\"bytes\":[195],\"top_logprobs\":[]},"
      R"({"token":"b","logprob":-0.5,"bytes":[98],"top_logprobs":[)"
      R"({"token":"b","logprob":-0.5,"bytes":[98]},{"token":"b","logprob":-1.5,"bytes":[98]}]}],)"
      R"("refusal":null})");
  std::vector<std::string> streamed;
  for (const Json& chunk : ChunksOf(Answer(Chat(wanted + R"(,"stream":true)"), events))) {
    for (const Json& token : chunk["choices"].items()[0]["logprobs"]["content"].items()) {
      streamed.push_back(token.Dump());
    }
  }
  std::vector<std::string> whole;
  for (const Json& token : choice["logprobs"]["content"].items()) {
    whole.push_back(token.Dump());
  }
  EXPECT_EQ(streamed, whole);
}

TEST(CompletionReply, IsTextAsItComes) {
  EXPECT_EQ(Answer(Completion(""), Events({"<|channel>", "x", " "})),
            R"({"id":"chatcmpl-1","object":"text_completion","created":1700000000,"model":"tiny",)"
            R"("system_fingerprint":"fp_test","choices":[{"index":0,"text":"<|channel>x ",)"
            R"("logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,)"
            R"("completion_tokens":5,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":2},)"
            R"("completion_tokens_details":{"reasoning_tokens":0,)"
            R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}})");
}

TEST(CompletionReply, ListsItsTokensWithOffsets) {
  Event half = Token("b");
  half.logprob.token = TinyVocab().byte_id(0xC3);
  half.bytes = "\xc3";
  Event rest = half;
  rest.logprob.token = TinyVocab().byte_id(0xA9);
  rest.bytes = "\xa9";
  std::vector<Event> events = Events({"a"});
  events.insert(events.end() - 1, {half, rest, Token("b")});
  const Json choice = Parse(Answer(Completion(R"("logprobs":1)"), events))["choices"].items()[0];
  EXPECT_EQ(choice["text"], Json("a\xc3\xa9"
                                 "b"));
  EXPECT_EQ(choice["logprobs"]["tokens"].Dump(), R"(["a","bytes:\\xc3","bytes:\\xa9","b"])");
  EXPECT_EQ(choice["logprobs"]["text_offset"].Dump(), "[0,1,1,2]");
  EXPECT_EQ(choice["logprobs"]["token_logprobs"].Dump(), "[-0.5,-0.5,-0.5,-0.5]");
  EXPECT_EQ(choice["logprobs"]["top_logprobs"].items()[0].Dump(), R"({"a":-0.5,"b":-1.5})");
  const Json none = Parse(Answer(Completion(R"("logprobs":0)"), events))["choices"].items()[0];
  EXPECT_TRUE(none["logprobs"]["top_logprobs"].is_null());
}

TEST(CompletionReply, RepeatsThePromptFirst) {
  EXPECT_EQ(
      Parse(Answer(Completion(R"("echo":true)"), Events({"x"})))["choices"].items()[0]["text"],
      Json("Hix"));
  std::string streamed;
  for (const Json& chunk :
       ChunksOf(Answer(Completion(R"("echo":true,"stream":true)"), Events({"x"})))) {
    streamed += chunk["choices"].items()[0]["text"].as_string() + "|";
  }
  EXPECT_EQ(streamed, "Hi|x||");
  ApiRequest tokens = Completion(R"("echo":true)");
  tokens.prompts = {std::vector<int32_t>{*TinyVocab().Find("a"), TinyVocab().byte_id(0xC3)}};
  ApiReply reply(tokens, Model(), "cmpl-1", 0, Prompts{std::get<1>(tokens.prompts[0])});
  (void)reply.Add(0, End());
  EXPECT_EQ(Parse(reply.Finish())["choices"].items()[0]["text"], Json("a\xef\xbf\xbd"));
}

TEST(ApiReply, FailsAsAWhole) {
  Event failed = End(FinishReason::kError);
  failed.error = "logits: NaN";
  const std::string error =
      R"({"error":{"message":"logits: NaN","type":"server_error","param":null,)"
      R"("code":"engine_error"}})";
  const ApiRequest request = Chat(R"("n":2,"stream":true)");
  ApiReply reply(request, Model(), "chatcmpl-1", 0, Prompts{{2}});
  EXPECT_EQ(ChunksOf(reply.Start() + "data: [DONE]\n\n").size(), 2U);
  EXPECT_FALSE(reply.wants_no_more(1));
  EXPECT_EQ(reply.Add(0, failed), "data: " + error + "\n\n");
  EXPECT_TRUE(reply.wants_no_more(1));
  EXPECT_FALSE(reply.wants_no_more(0));
  EXPECT_EQ(reply.Add(1, Token("a")), "");
  EXPECT_EQ(reply.Add(1, End(FinishReason::kCancelled)), "");
  EXPECT_TRUE(reply.is_complete());
  EXPECT_EQ(reply.Finish(), "");
  ASSERT_TRUE(reply.error().has_value());
  EXPECT_EQ(reply.error()->status, 500);

  const ApiRequest whole = Chat("");
  ApiReply late(whole, Model(), "chatcmpl-1", 0, Prompts{{2}});
  EXPECT_EQ(late.Add(0, End(FinishReason::kQueueTimeout)), "");
  ASSERT_TRUE(late.error().has_value());
  EXPECT_EQ(late.error()->status, 503);
  EXPECT_EQ(late.error()->code, "queue_timeout");
  EXPECT_EQ(late.finish_reason(), "error");
}

TEST(ApiReply, CountsAPromptOnce) {
  ApiRequest request = Completion(R"("n":2)");
  request.prompts = {"a", "b"};
  ApiReply reply(request, Model(), "cmpl-1", 0, Prompts{{2, 3}, {2, 3, 4}});
  for (int choice = 0; choice < 4; ++choice) {
    Event end = End(FinishReason::kMaxTokens, 10);
    end.stats.n_cached = choice;
    (void)reply.Add(choice, end);
  }
  const ApiReply::Totals totals = reply.totals();
  EXPECT_EQ(totals.n_prompt, 5);
  EXPECT_EQ(totals.n_cached, 2);
  EXPECT_EQ(totals.n_generated, 40);
}

/// A choice put together from what was streamed, in the form of a whole one.
class Joined {
 public:
  explicit Joined(bool is_chat) : is_chat_(is_chat) {}

  void Add(const Json& choice) {
    EXPECT_TRUE(reason_.is_null());
    const Json& delta = choice["delta"];
    text_ += is_chat_ ? delta["content"].as_string() : choice["text"].as_string();
    thought_ += delta["reasoning_content"].as_string();
    for (const Json& call : delta["tool_calls"].items()) {
      EXPECT_EQ(call["index"], Json(static_cast<int64_t>(calls_.size())));
      EXPECT_TRUE(ids_.insert(call["id"].as_string()).second);
      EXPECT_TRUE(ParseJson(call["function"]["arguments"].as_string(), "arguments").ok());
      Json whole = Json(Json::Object());
      for (const auto& [name, value] : call.members()) {
        if (name != "index") {
          whole.Set(name, value);
        }
      }
      calls_.push_back(std::move(whole));
    }
    for (const auto& [name, value] : choice["logprobs"].members()) {
      for (const Json& item : value.items()) {
        lists_[name].push_back(item);
      }
    }
    reason_ = choice["finish_reason"];
    notes_ = choice["facet"];
  }

  void ExpectIs(const Json& whole) {
    const Json& message = whole["message"];
    EXPECT_EQ(text_, is_chat_ ? message["content"].as_string() : whole["text"].as_string());
    EXPECT_EQ(thought_, message["reasoning_content"].as_string());
    EXPECT_EQ(Json(calls_), Json(message["tool_calls"].items()));
    EXPECT_EQ(reason_, whole["finish_reason"]);
    EXPECT_EQ(notes_, whole["facet"]);
    for (const auto& [name, value] : whole["logprobs"].members()) {
      EXPECT_EQ(Json(lists_[name]), Json(value.items())) << name;
    }
  }

 private:
  bool is_chat_;
  std::string text_;
  std::string thought_;
  Json::Array calls_;
  std::map<std::string, Json::Array> lists_;
  std::set<std::string> ids_;
  Json reason_;
  Json notes_;
};

/// Random tokens, of which many are marks, good calls and broken ones, and parts of characters.
std::vector<Event> RandomEvents(std::mt19937& random) {
  static const std::vector<std::vector<std::string>> kPieces = {
      {"a"},
      {" "},
      {"Hi"},
      {"\n"},
      {"\xf0\x9f"},
      {"\x99\x82"},
      {"\xc3"},
      {"<|channel>"},
      {"<|channel>", "thought\n", "x ", "<channel|>"},
      {"<channel|>"},
      {"<turn|>"},
      {"<|\"|>"},
      {"<|tool_call>", "call:weather{city:", "<|\"|>", "A", "<|\"|>", "}", "<tool_call|>"},
      {"<|tool_call>", "call:weather{city", "<tool_call|>"},
      {"<|tool_call>"},
      {"<tool_call|>"},
      {"call:wea"},
      {"ther{}"}};
  static constexpr FinishReason kReasons[] = {FinishReason::kEndToken, FinishReason::kMaxTokens,
                                              FinishReason::kStopString, FinishReason::kRepetition};
  std::vector<Event> events;
  for (size_t n = random() % 20; n > 0; --n) {
    for (const std::string& piece : kPieces[random() % kPieces.size()]) {
      events.push_back(Token(piece));
    }
  }
  events.push_back(End(kReasons[random() % std::size(kReasons)], static_cast<int>(events.size())));
  return events;
}

void ExpectStreamIsWhole(bool is_chat, std::mt19937& random) {
  const int n = 1 + static_cast<int>(random() % 3);
  std::string members = "\"n\":" + std::to_string(n);
  if (is_chat && random() % 4 != 0) {
    members += std::string(",") + kWeather;
  }
  if (random() % 2 == 0) {
    members += is_chat ? R"(,"logprobs":true,"top_logprobs":1)" : R"(,"logprobs":1)";
  } else if (!is_chat) {
    members += R"(,"echo":true)";
  }
  if (is_chat && random() % 4 == 0) {
    members += R"(,"parallel_tool_calls":false)";
  }
  const ApiRequest whole_request = ReadOrDie(is_chat, members);
  const ApiRequest stream_request = ReadOrDie(is_chat, members + ",\"stream\":true");
  ApiReply whole(whole_request, Model(), "id", 0, Prompts{{2}});
  ApiReply stream(stream_request, Model(), "id", 0, Prompts{{2}});
  std::vector<std::vector<Event>> left(static_cast<size_t>(n));
  std::generate(left.begin(), left.end(), [&] { return RandomEvents(random); });
  std::string bytes = stream.Start();
  for (size_t n_left = left.size(); n_left > 0;) {
    const size_t choice = random() % left.size();
    if (left[choice].empty()) {
      continue;
    }
    const Event event = left[choice].front();
    left[choice].erase(left[choice].begin());
    n_left -= left[choice].empty() ? 1 : 0;
    EXPECT_EQ(whole.Add(static_cast<int>(choice), event), "");
    bytes += stream.Add(static_cast<int>(choice), event);
  }
  std::vector<Joined> joined(left.size(), Joined(is_chat));
  bytes += stream.Finish();
  EXPECT_TRUE(IsValidUtf8(bytes));
  for (const Json& chunk : ChunksOf(bytes)) {
    const Json& choice = chunk["choices"].items()[0];
    joined[static_cast<size_t>(choice["index"].as_int())].Add(choice);
  }
  const Json answer = Parse(whole.Finish());
  ASSERT_EQ(answer["choices"].items().size(), left.size());
  for (size_t i = 0; i < left.size(); ++i) {
    joined[i].ExpectIs(answer["choices"].items()[i]);
  }
}

TEST(ApiReply, StreamedIsTheWhole) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    ExpectStreamIsWhole(round % 2 == 0, random);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

/// Every byte of plain content has its token, whatever is held back.
TEST(ApiReply, ListsEveryTokenOfPlainText) {
  const std::vector<std::string> pieces = {"a",        " ",    "\n",      "\xf0\x9f",
                                           "\x99\x82", "\xc3", "call:wea"};
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const bool is_chat = round % 2 == 0;
    const ApiRequest request = is_chat ? Chat(std::string(kWeather) + R"(,"logprobs":true)")
                                       : Completion(R"("logprobs":0)");
    std::vector<Event> events = {Token("x")};
    for (size_t n = random() % 10; n > 0; --n) {
      events.push_back(Token(pieces[random() % pieces.size()]));
    }
    events.push_back(Token("y"));
    const size_t n_tokens = events.size();
    events.push_back(End());
    const Json choice = Parse(Answer(request, events))["choices"].items()[0];
    EXPECT_EQ(choice["logprobs"][is_chat ? "content" : "tokens"].items().size(), n_tokens);
  }
}

/// The tokens of a row of reply_cases.jsonl in the tiny vocabulary.
std::vector<Event> CaseEvents(const Json& row) {
  std::vector<Event> events;
  for (const Json& token : row["tokens"].items()) {
    if (token.contains("b")) {
      const int byte = std::stoi(token["b"].as_string(), nullptr, 16);
      events.push_back(Token("a"));
      events.back().bytes = std::string(1, static_cast<char>(byte));
    } else if (token.contains("c")) {
      events.push_back(Token(token["c"].as_string()));
    } else {
      events.push_back(Token("a"));
      events.back().bytes = token.as_string();
    }
  }
  const bool is_cut = row["ended"] == Json("length");
  events.push_back(End(is_cut ? FinishReason::kMaxTokens : FinishReason::kStopString));
  return events;
}

TEST(ApiReply, AnswersTheReplyCases) {
  const int channel = *TinyVocab().Find("<|channel>");
  int n_rows = 0;
  for (const Json& row : JsonLinesOrDie(TestdataPath("reply/reply_cases.jsonl"))) {
    ApiRequest request = Chat("");
    request.chat.tools = row["tools"].items().empty() ? Json() : row["tools"];
    const Prompts prompts = {row["start"] == Json("thought") ? std::vector<int32_t>{2, channel}
                                                             : std::vector<int32_t>{2}};
    ApiReply reply(request, Model(), "chatcmpl-1", 0, prompts);
    for (const Event& event : CaseEvents(row)) {
      (void)reply.Add(0, event);
    }
    const Json choice = Parse(reply.Finish())["choices"].items()[0];
    const Json& expected = row["expect"];
    const std::string& id = row["id"].as_string();
    EXPECT_EQ(choice["message"]["content"].as_string(), expected["content"].as_string()) << id;
    EXPECT_EQ(choice["message"]["reasoning_content"].as_string(), expected["reasoning"].as_string())
        << id;
    EXPECT_EQ(choice["finish_reason"], expected["finish_reason"]) << id;
    const Json::Array& calls = choice["message"]["tool_calls"].items();
    ASSERT_EQ(calls.size(), expected["tool_calls"].items().size()) << id;
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(calls[i]["function"]["name"], expected["tool_calls"].items()[i]["name"]) << id;
    }
    ++n_rows;
  }
  EXPECT_EQ(n_rows, 51);
}

}  // namespace
}  // namespace facet
