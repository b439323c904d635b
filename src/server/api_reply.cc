// SPDX-License-Identifier: Apache-2.0
#include "server/api_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/random.h"
#include "base/utf8.h"
#include "server/api_choice.h"

namespace facet {
namespace {

using DeltaKind = ReplyDelta::Kind;

std::string EventOf(const Json& json) { return "data: " + json.Dump() + "\n\n"; }

/// "call_" and 24 letters and digits: the same for the same call of the same reply, so that a reply
/// can be told again.
std::string CallId(const std::string& reply_id, int choice, int index) {
  constexpr std::string_view kSigns =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kSignsPerDraw = 8;  // 62^8 < 2^48
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : reply_id) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;  // FNV-1a
  }
  std::string id = "call_";
  for (uint64_t draw = 0; draw < 3; ++draw) {
    const uint64_t call = static_cast<uint64_t>(choice) << 32 | static_cast<uint64_t>(index);
    uint64_t bits = RandomBits(hash, call << 2 | draw);
    for (int n = 0; n < kSignsPerDraw; ++n) {
      id += kSigns[bits % kSigns.size()];
      bits /= kSigns.size();
    }
  }
  return id;
}

// --- log probabilities ---------------------------------------------------------------------------

/// JSON has no infinities; OpenAI writes this for what cannot happen.
double Written(float logprob) {
  constexpr float kLeast = -9999.0F;
  return std::isfinite(logprob) ? std::max(logprob, kLeast) : kLeast;
}

Json ByteArray(std::string_view bytes) {
  Json::Array items;
  items.reserve(bytes.size());
  for (const char byte : bytes) {
    items.emplace_back(int{static_cast<unsigned char>(byte)});
  }
  return items;
}

Json TokenOfChat(const Vocab& vocab, const TokenLogprob& token) {
  const std::string_view bytes = vocab.bytes(token.token);
  return Json::MakeObject({{"token", RepairUtf8(bytes)},
                           {"logprob", Written(token.logprob)},
                           {"bytes", ByteArray(bytes)}});
}

Json LogprobsOfChat(const Vocab& vocab, std::span<const ListedToken> tokens) {
  Json::Array content;
  content.reserve(tokens.size());
  for (const ListedToken& token : tokens) {
    Json::Array top;
    top.reserve(token.top_logprobs.size());
    for (const TokenLogprob& other : token.top_logprobs) {
      top.push_back(TokenOfChat(vocab, other));
    }
    Json& item = content.emplace_back(TokenOfChat(vocab, token.logprob));
    item.Set("top_logprobs", std::move(top));
  }
  return Json::MakeObject({{"content", std::move(content)}, {"refusal", nullptr}});
}

/// The token's text; where that is part of a character, its bytes, so that no two are alike.
std::string TextOfToken(const Vocab& vocab, int32_t token) {
  const std::string_view bytes = vocab.bytes(token);
  if (IsValidUtf8(bytes)) {
    return std::string(bytes);
  }
  std::string text = "bytes:";
  for (const char byte : bytes) {
    text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

Json LogprobsOfCompletion(const Vocab& vocab, std::span<const ListedToken> tokens, bool has_top) {
  Json::Array texts;
  Json::Array logprobs;
  Json::Array tops;
  Json::Array offsets;
  for (Json::Array* list : {&texts, &logprobs, &tops, &offsets}) {
    list->reserve(tokens.size());
  }
  for (const ListedToken& token : tokens) {
    texts.emplace_back(TextOfToken(vocab, token.logprob.token));
    logprobs.emplace_back(Written(token.logprob.logprob));
    offsets.emplace_back(static_cast<int64_t>(token.offset));
    Json::Object top;
    top.reserve(token.top_logprobs.size());
    for (const TokenLogprob& other : token.top_logprobs) {
      top.emplace_back(TextOfToken(vocab, other.token), Written(other.logprob));
    }
    tops.emplace_back(std::move(top));
  }
  return Json::MakeObject({{"tokens", std::move(texts)},
                           {"token_logprobs", std::move(logprobs)},
                           {"top_logprobs", has_top ? Json(std::move(tops)) : Json()},
                           {"text_offset", std::move(offsets)}});
}

// --- ends ----------------------------------------------------------------------------------------

/// What OpenAI's object has no words for; null where there is nothing to tell.
Json OwnNotes(const ApiChoice& choice) {
  Json notes;
  const std::optional<FinishReason> reason = choice.engine_reason();
  if (reason == FinishReason::kContext) {
    notes.Set("finish", "context");
  } else if (reason == FinishReason::kRepetition || reason == FinishReason::kCancelled) {
    notes.Set("finish", NameOf(*reason));
  }
  if (choice.stats().thought_was_cut) {
    notes.Set("thought_cut", true);
  }
  if (choice.n_parse_errors() > 0) {
    notes.Set("call_parse_errors", choice.n_parse_errors());
  }
  if (choice.n_repairs() > 0) {
    notes.Set("call_repairs", choice.n_repairs());
  }
  return notes;
}

std::optional<ApiError> FailureOf(const Event& event) {
  if (event.reason == FinishReason::kQueueTimeout) {
    return ApiError{.status = 503,
                    .message = "the request waited too long for its turn",
                    .type = "overloaded_error",
                    .code = "queue_timeout"};
  }
  if (event.reason == FinishReason::kError) {
    return ApiError{
        .status = 500, .message = event.error, .type = "server_error", .code = "engine_error"};
  }
  return std::nullopt;
}

/// A choice, and what a reply that is sent as a whole has of it so far.
struct Choice {
  ApiChoice events;
  std::string content = {};
  std::string thought = {};
  Json::Array calls = {};
  std::vector<ListedToken> tokens = {};
};

}  // namespace

struct ApiReply::State {
  const ApiRequest* request;
  const ServedModel* model;
  std::string id;
  int64_t created;
  std::vector<int> n_prompt;  ///< tokens of each prompt
  std::vector<Choice> choices;
  std::optional<ApiError> error = {};

  [[nodiscard]] bool is_chat() const { return request->kind == ApiRequest::Kind::kChat; }
  [[nodiscard]] bool has_logprobs() const { return request->engine.n_top_logprobs >= 0; }

  [[nodiscard]] std::string EchoOf(size_t prompt, std::span<const int32_t> tokens) const;
  [[nodiscard]] Json Envelope(std::string_view object) const;
  [[nodiscard]] Json Logprobs(std::span<const ListedToken> tokens) const;
  [[nodiscard]] Json CallOf(int choice, const ReplyDelta& delta) const;
  [[nodiscard]] Json Usage() const;
  /// Adds what a user should know of the media of the request, where there is something.
  void AddNotices(Json* body) const;
  [[nodiscard]] Totals Count() const;

  /// An event of a stream: `delta` is a chat's delta, or a completion's text.
  [[nodiscard]] Json Chunk(int choice, Json delta, Json logprobs, Json finish_reason) const;
  /// The chunk that a chat's choice begins with; the first one has the notices.
  [[nodiscard]] std::string RoleChunk(int choice) const;
  [[nodiscard]] std::string PartChunk(int choice, const ChoicePart& part) const;
  [[nodiscard]] std::string EndChunk(int choice) const;

  void Keep(int choice, ChoicePart part);
  [[nodiscard]] Json WholeChoice(int choice) const;
};

std::string ApiReply::State::EchoOf(size_t prompt, std::span<const int32_t> tokens) const {
  if (!request->echo) {
    return {};
  }
  if (const auto* text = std::get_if<std::string>(&request->prompts[prompt])) {
    return *text;
  }
  std::string bytes;
  for (const int32_t token : tokens) {
    bytes += model->vocab->bytes(token);
  }
  return RepairUtf8(bytes);
}

Json ApiReply::State::Envelope(std::string_view object) const {
  return Json::MakeObject({{"id", id},
                           {"object", object},
                           {"created", created},
                           {"model", model->name},
                           {"system_fingerprint", model->system_fingerprint}});
}

Json ApiReply::State::Logprobs(std::span<const ListedToken> tokens) const {
  return is_chat()
             ? LogprobsOfChat(*model->vocab, tokens)
             : LogprobsOfCompletion(*model->vocab, tokens, request->engine.n_top_logprobs > 0);
}

Json ApiReply::State::CallOf(int choice, const ReplyDelta& delta) const {
  return Json::MakeObject(
      {{"id", CallId(id, choice, delta.index)},
       {"type", "function"},
       {"function", Json::MakeObject({{"name", delta.name}, {"arguments", delta.text}})}});
}

/// A prompt counts once, however many choices it has; of its tokens those count as cached that its
/// first choice found.
ApiReply::Totals ApiReply::State::Count() const {
  Totals totals;
  for (const PlacedMedia& media : request->engine.media) {
    const MediaKind kind = media.item->kind;
    int& n = kind == MediaKind::kImage   ? totals.n_image
             : kind == MediaKind::kAudio ? totals.n_audio
                                         : totals.n_video;
    n += media.item->n_tokens;
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    const ApiChoice& choice = choices[i].events;
    const RequestStats stats = choice.stats();
    if (i % static_cast<size_t>(request->n) == 0) {
      totals.n_prompt += n_prompt[i / static_cast<size_t>(request->n)];
      totals.n_cached += stats.n_cached;
    }
    totals.n_generated += stats.n_generated;
    totals.n_thought += stats.n_thought;
    totals.n_drafted += stats.n_drafted;
    totals.n_accepted += stats.n_accepted;
    totals.n_calls += choice.n_calls();
    totals.n_parse_errors += choice.n_parse_errors();
    totals.n_repairs += choice.n_repairs();
  }
  return totals;
}

Json ApiReply::State::Usage() const {
  const Totals totals = Count();
  Json prompt_details = Json::MakeObject({{"cached_tokens", totals.n_cached}});
  if (!request->engine.media.empty()) {
    prompt_details.Set("audio_tokens", totals.n_audio);
    prompt_details.Set("image_tokens", totals.n_image);
    prompt_details.Set("video_tokens", totals.n_video);
  }
  Json completion_details =
      Json::MakeObject({{"reasoning_tokens", totals.n_thought},
                        {"accepted_prediction_tokens", totals.n_accepted},
                        {"rejected_prediction_tokens", totals.n_drafted - totals.n_accepted}});
  return Json::MakeObject({{"prompt_tokens", totals.n_prompt},
                           {"completion_tokens", totals.n_generated},
                           {"total_tokens", totals.n_prompt + totals.n_generated},
                           {"prompt_tokens_details", std::move(prompt_details)},
                           {"completion_tokens_details", std::move(completion_details)}});
}

void ApiReply::State::AddNotices(Json* body) const {
  Json::Array notices(request->media.notices.begin(), request->media.notices.end());
  if (!notices.empty()) {
    body->Set("notices", std::move(notices));
  }
}

// --- streams -------------------------------------------------------------------------------------

Json ApiReply::State::Chunk(int choice, Json delta, Json logprobs, Json finish_reason) const {
  Json item = Json::MakeObject({{"index", choice},
                                {is_chat() ? "delta" : "text", std::move(delta)},
                                {"logprobs", std::move(logprobs)},
                                {"finish_reason", std::move(finish_reason)}});
  if (!item["finish_reason"].is_null()) {
    Json notes = OwnNotes(choices[static_cast<size_t>(choice)].events);
    if (!notes.is_null()) {
      item.Set("facet", std::move(notes));
    }
  }
  Json chunk = Envelope(is_chat() ? "chat.completion.chunk" : "text_completion");
  chunk.Set("choices", Json::MakeArray({std::move(item)}));
  if (request->include_usage) {
    chunk.Set("usage", nullptr);
  }
  return chunk;
}

std::string ApiReply::State::RoleChunk(int choice) const {
  Json role = Json::MakeObject({{"role", "assistant"}, {"content", ""}});
  Json chunk = Chunk(choice, std::move(role), nullptr, nullptr);
  if (choice == 0) {
    AddNotices(&chunk);
  }
  return EventOf(chunk);
}

std::string ApiReply::State::PartChunk(int choice, const ChoicePart& part) const {
  const ReplyDelta& delta = part.delta;
  Json logprobs =
      has_logprobs() && delta.kind == DeltaKind::kContent ? Logprobs(part.tokens) : Json();
  if (!is_chat()) {
    return EventOf(Chunk(choice, delta.text, std::move(logprobs), nullptr));
  }
  Json body = Json(Json::Object());
  switch (delta.kind) {
    case DeltaKind::kContent:
      body.Set("content", delta.text);
      break;
    case DeltaKind::kThought:
      body.Set("reasoning_content", delta.text);
      break;
    case DeltaKind::kCall: {
      Json call = CallOf(choice, delta);
      Json::Object& members = call.mutable_members();
      members.insert(members.begin(), {"index", delta.index});
      body.Set("tool_calls", Json::MakeArray({std::move(call)}));
      break;
    }
  }
  return EventOf(Chunk(choice, std::move(body), std::move(logprobs), nullptr));
}

std::string ApiReply::State::EndChunk(int choice) const {
  return EventOf(Chunk(choice, is_chat() ? Json(Json::Object()) : Json(""), nullptr,
                       choices[static_cast<size_t>(choice)].events.finish_reason()));
}

// --- whole replies -------------------------------------------------------------------------------

void ApiReply::State::Keep(int choice, ChoicePart part) {
  Choice& kept = choices[static_cast<size_t>(choice)];
  switch (part.delta.kind) {
    case DeltaKind::kContent:
      kept.content += part.delta.text;
      std::move(part.tokens.begin(), part.tokens.end(), std::back_inserter(kept.tokens));
      return;
    case DeltaKind::kThought:
      kept.thought += part.delta.text;
      return;
    case DeltaKind::kCall:
      kept.calls.push_back(CallOf(choice, part.delta));
      return;
  }
}

Json ApiReply::State::WholeChoice(int choice) const {
  const Choice& kept = choices[static_cast<size_t>(choice)];
  Json item = Json::MakeObject({{"index", choice}});
  if (is_chat()) {
    const bool has_content = !kept.content.empty() || kept.calls.empty();
    Json message = Json::MakeObject({{"role", "assistant"},
                                     {"content", has_content ? Json(kept.content) : Json()},
                                     {"refusal", nullptr}});
    if (!kept.thought.empty()) {
      message.Set("reasoning_content", kept.thought);
    }
    if (!kept.calls.empty()) {
      message.Set("tool_calls", kept.calls);
    }
    item.Set("message", std::move(message));
  } else {
    item.Set("text", kept.content);
  }
  item.Set("logprobs", has_logprobs() ? Logprobs(kept.tokens) : Json());
  item.Set("finish_reason", kept.events.finish_reason());
  Json notes = OwnNotes(kept.events);
  if (!notes.is_null()) {
    item.Set("facet", std::move(notes));
  }
  return item;
}

// --- ApiReply ------------------------------------------------------------------------------------

ApiReply::ApiReply(const ApiRequest& request, const ServedModel& model, std::string id,
                   int64_t created, const std::vector<std::vector<int32_t>>& prompts)
    : state_(std::make_unique<State>(
          State{&request, &model, std::move(id), created, /*n_prompt=*/{}, /*choices=*/{}})) {
  const auto tools = std::make_shared<const OfferedTools>(request.chat.tools);
  state_->n_prompt.reserve(prompts.size());
  state_->choices.reserve(prompts.size() * static_cast<size_t>(request.n));
  for (size_t i = 0; i < prompts.size(); ++i) {
    state_->n_prompt.push_back(static_cast<int>(prompts[i].size()));
    const std::string echo = state_->EchoOf(i, prompts[i]);
    for (int n = 0; n < request.n; ++n) {
      state_->choices.push_back(
          {ApiChoice(request, *model.vocab, tools, prompts[i], CountCodePoints(echo)), echo});
    }
  }
}

ApiReply::~ApiReply() = default;

std::string ApiReply::Start() {
  std::string chunks;
  if (!state_->request->stream) {
    return chunks;
  }
  for (size_t i = 0; i < state_->choices.size(); ++i) {
    const auto choice = static_cast<int>(i);
    if (state_->is_chat()) {
      chunks += state_->RoleChunk(choice);
    } else if (state_->request->echo) {
      std::string echo = std::exchange(state_->choices[i].content, {});
      chunks += EventOf(state_->Chunk(choice, std::move(echo), nullptr, nullptr));
    }
  }
  return chunks;
}

std::string ApiReply::Add(int choice, const Event& event) {
  ApiChoice& events = state_->choices[static_cast<size_t>(choice)].events;
  std::vector<ChoicePart> parts = events.Add(event);
  if (state_->error) {
    return {};
  }
  if (event.kind == Event::Kind::kFinished) {
    state_->error = FailureOf(event);
  }
  const bool is_stream = state_->request->stream;
  std::string chunks;
  for (ChoicePart& part : parts) {
    if (is_stream) {
      chunks += state_->PartChunk(choice, part);
    } else {
      state_->Keep(choice, std::move(part));
    }
  }
  if (!is_stream || event.kind != Event::Kind::kFinished) {
    return chunks;
  }
  return chunks +
         (state_->error ? "data: " + ErrorBody(*state_->error) + "\n\n" : state_->EndChunk(choice));
}

bool ApiReply::wants_no_more(int choice) const {
  const ApiChoice& events = state_->choices[static_cast<size_t>(choice)].events;
  return !events.is_finished() && (state_->error.has_value() || events.has_all_it_may());
}

bool ApiReply::is_complete() const {
  return std::all_of(state_->choices.begin(), state_->choices.end(),
                     [](const Choice& choice) { return choice.events.is_finished(); });
}

std::string ApiReply::Finish() {
  if (!state_->request->stream) {
    Json body = state_->Envelope(state_->is_chat() ? "chat.completion" : "text_completion");
    Json::Array items;
    items.reserve(state_->choices.size());
    for (size_t i = 0; i < state_->choices.size(); ++i) {
      items.push_back(state_->WholeChoice(static_cast<int>(i)));
    }
    body.Set("choices", std::move(items));
    body.Set("usage", state_->Usage());
    state_->AddNotices(&body);
    return body.Dump();
  }
  if (state_->error) {
    return {};
  }
  std::string rest;
  if (state_->request->include_usage) {
    Json chunk = state_->Envelope(state_->is_chat() ? "chat.completion.chunk" : "text_completion");
    chunk.Set("choices", Json::Array());
    chunk.Set("usage", state_->Usage());
    rest = EventOf(chunk);
  }
  return rest + "data: [DONE]\n\n";
}

const std::optional<ApiError>& ApiReply::error() const { return state_->error; }

ApiReply::Totals ApiReply::totals() const { return state_->Count(); }

std::string ApiReply::finish_reason() const {
  return std::string(state_->choices[0].events.finish_reason());
}

}  // namespace facet
