// SPDX-License-Identifier: Apache-2.0
#include "app/batch_result.h"

#include <fmt/format.h>

#include <utility>

#include "app/trace.h"

namespace facet {
namespace {

constexpr int kOk = 200;

Json OpenAiLine(const BatchKey& key, int status_code, Json body) {
  return Json::MakeObject(
      {{"id", fmt::format("batch_req_{}", key.line)},
       {"custom_id", key.id},
       {"response", Json::MakeObject({{"status_code", status_code},
                                      {"request_id", fmt::format("req_{}", key.line)},
                                      {"body", std::move(body)}})},
       {"error", nullptr}});
}

/// OpenAI's form knows no other end of a text that was cut.
std::string_view OpenAiReason(const BatchReply& reply) {
  if (reply.reason == FinishReason::kRepetition) {
    return "length";
  }
  const bool has_ended =
      reply.reason == FinishReason::kEndToken || reply.reason == FinishReason::kStopString;
  return has_ended && !reply.calls.empty() ? "tool_calls" : NameOf(reply.reason);
}

Json FunctionOf(const ToolCall& call) {
  return Json::MakeObject({{"name", call.name}, {"arguments", call.arguments}});
}

Json OpenAiCalls(const BatchKey& key, const BatchReply& reply) {
  Json calls;
  for (size_t n = 0; n < reply.calls.size(); ++n) {
    calls.Append(Json::MakeObject({{"id", fmt::format("call_{}_{}", key.line, n)},
                                   {"type", "function"},
                                   {"function", FunctionOf(reply.calls[n])}}));
  }
  return calls;
}

Json ChatCompletion(const BatchKey& key, const BatchReply& reply, int64_t now_s) {
  const bool is_only_calls = reply.content.empty() && !reply.calls.empty();
  Json message = Json::MakeObject(
      {{"role", "assistant"}, {"content", is_only_calls ? Json() : Json(reply.content)}});
  if (!reply.thought.empty()) {
    message.Set("reasoning_content", reply.thought);
  }
  if (!reply.calls.empty()) {
    message.Set("tool_calls", OpenAiCalls(key, reply));
  }
  Json choice = Json::MakeObject({{"index", 0},
                                  {"message", std::move(message)},
                                  {"logprobs", nullptr},
                                  {"finish_reason", OpenAiReason(reply)}});
  return Json::MakeObject({{"id", fmt::format("chatcmpl-{}", key.line)},
                           {"object", "chat.completion"},
                           {"created", now_s},
                           {"model", reply.model},
                           {"choices", Json::MakeArray({std::move(choice)})},
                           {"usage", UsageOf(reply.stats)}});
}

}  // namespace

void BatchReply::Add(const ReplyDelta& delta) {
  switch (delta.kind) {
    case ReplyDelta::Kind::kContent:
      content += delta.text;
      return;
    case ReplyDelta::Kind::kThought:
      thought += delta.text;
      return;
    case ReplyDelta::Kind::kCall:
      calls.push_back({delta.name, delta.text});
      return;
  }
}

Json ResultLine(const BatchKey& key, const BatchReply& reply, int64_t now_s) {
  if (key.form == BatchKey::Form::kOpenAi) {
    return OpenAiLine(key, kOk, ChatCompletion(key, reply, now_s));
  }
  Json line = Json::MakeObject({{"id", key.id}, {"line", key.line}, {"content", reply.content}});
  if (!reply.thought.empty()) {
    line.Set("thinking", reply.thought);
  }
  if (!reply.calls.empty()) {
    Json calls;
    for (const ToolCall& call : reply.calls) {
      calls.Append(FunctionOf(call));
    }
    line.Set("calls", std::move(calls));
  }
  line.Set("finish_reason", NameOf(reply.reason));
  line.Set("seed", reply.seed);
  line.Set("usage", UsageOf(reply.stats));
  return line;
}

Json ErrorLine(const BatchKey& key, BatchFault fault, const std::string& message) {
  if (key.form == BatchKey::Form::kOwn) {
    return Json::MakeObject(
        {{"id", key.id}, {"line", key.line}, {"error", Json::MakeObject({{"message", message}})}});
  }
  const bool is_ours = fault == BatchFault::kEngine;
  Json error = Json::MakeObject({{"message", message},
                                 {"type", is_ours ? "server_error" : "invalid_request_error"},
                                 {"param", nullptr},
                                 {"code", nullptr}});
  return OpenAiLine(key, is_ours ? 500 : 400, Json::MakeObject({{"error", std::move(error)}}));
}

Result<std::string> AnsweredId(const Json& result) {
  if (result.contains("custom_id") && result["response"].is_object()) {
    const bool is_answered = result["response"]["status_code"] == Json(kOk);
    return is_answered ? result["custom_id"].Dump() : std::string();
  }
  if (!result.contains("id") || !result.contains("line")) {
    return Refuse("line", std::string(result.KindName()), "a result of facet run --batch");
  }
  return result.contains("error") ? std::string() : result["id"].Dump();
}

}  // namespace facet
