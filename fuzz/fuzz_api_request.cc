// SPDX-License-Identifier: Apache-2.0
// Reads any JSON as a chat and as a completion. What is accepted must be in the ranges that the
// engine checks, its media be read or refused, and be rendered or refused by the template without a
// fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <variant>

#include "base/json.h"
#include "chat/chat_template.h"
#include "chat/media_reader.h"
#include "engine/request_check.h"
#include "server/api_request.h"
#include "server/engine_request.h"
#include "server/served_model.h"
#include "text/vocab.h"

namespace {

using facet::ApiRequest;

void Require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

const facet::Vocab& SmallVocab() {
  static const facet::Vocab vocab = [] {
    facet::VocabParts parts;
    parts.tokens_name = "tokens";
    parts.merges_name = "merges";
    parts.texts = {"<pad>", "<eos>", "<bos>", "<unk>", "<|channel>", "<channel|>", "a", "b"};
    using Kind = facet::TokenKind;
    parts.kinds = {Kind::kControl, Kind::kControl, Kind::kControl, Kind::kUnknown,
                   Kind::kControl, Kind::kControl, Kind::kNormal,  Kind::kNormal};
    auto made = facet::Vocab::FromParts(parts);
    Require(made.ok());
    return *std::move(made);
  }();
  return vocab;
}

const facet::ServedModel& Model() {
  static const facet::ChatTemplate chat_template = [] {
    auto loaded = facet::ChatTemplate::Load("", "built-in", "<bos>", "<eos>");
    Require(loaded.ok());
    return *std::move(loaded);
  }();
  static const facet::MediaReader reader = [] {
    facet::MediaSettings settings;
    settings.traits = {.sees = true, .hears = true};
    settings.image_limits.max_pixels = 10000;
    return facet::MediaReader(settings);
  }();
  static const facet::ServedModel model = [] {
    facet::ServedModel served;
    served.name = "fuzz";
    served.vocab = &SmallVocab();
    served.chat_template = &chat_template;
    served.media = &reader;
    return served;
  }();
  return model;
}

void CheckAccepted(const ApiRequest& request) {
  facet::Request engine = request.engine;
  Require(engine.prompt.empty());
  Require(engine.thought.open == -1 && engine.thought.max_tokens >= -1);
  engine.thought = {};
  engine.prompt = {0};
  Require(facet::CheckRequest(engine, {.n_vocab = SmallVocab().size(),
                                       .n_context = std::numeric_limits<int>::max()})
              .ok());
  Require(request.n >= 1 && request.n <= facet::kMaxChoices);
  Require(request.timeout_s.value_or(1) >= 1);
  Require(request.stream || !request.include_usage);
}

void ReadChat(const facet::Json& json) {
  auto request = facet::ReadChatRequest(json, Model());
  if (!request.ok()) {
    Require(!request.error().where.empty() && request.error().Message().size() < 10000);
    return;
  }
  CheckAccepted(*request);
  Require(request->kind == ApiRequest::Kind::kChat && request->prompts.empty());
  const facet::Status status = facet::ReadMedia(Model(), &*request);
  Require(status.ok() || !status.error().where.empty());
  (void)facet::RenderPrompt(*request, Model());
}

void ReadCompletion(const facet::Json& json) {
  const auto request = facet::ReadCompletionRequest(json, Model());
  if (!request.ok()) {
    Require(!request.error().where.empty() && request.error().Message().size() < 10000);
    return;
  }
  CheckAccepted(*request);
  Require(!request->prompts.empty());
  Require(request->prompts.size() * static_cast<size_t>(request->n) <= facet::kMaxChoices);
  for (const facet::PromptText& prompt : request->prompts) {
    const auto* tokens = std::get_if<std::vector<int32_t>>(&prompt);
    Require(tokens == nullptr || !tokens->empty());
    for (size_t n = 0; tokens != nullptr && n < tokens->size(); ++n) {
      Require((*tokens)[n] >= 0 && (*tokens)[n] < SmallVocab().size());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = facet::ParseJson(text, "body", {.max_bytes = size, .max_depth = 100});
  if (json.ok()) {
    ReadChat(*json);
    ReadCompletion(*json);
  }
  return 0;
}
