// SPDX-License-Identifier: Apache-2.0
#include "server/text_routes.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/utf8.h"
#include "chat/prompt.h"
#include "text/detokenizer.h"

namespace facet {
namespace {

/// Deeper than any request needs, and shallow enough for everything that walks the value.
constexpr int kMaxDepth = 100;
/// An answer is many times as large as what it tells of.
constexpr size_t kMaxTextBytes = size_t{4} << 20;
constexpr size_t kMaxTokens = size_t{1} << 20;

Status CheckTokenCount(std::string where, size_t n) {
  return n <= kMaxTokens ? Status()
                         : Refuse(std::move(where), fmt::format("{} tokens", n),
                                  fmt::format("at most {}", kMaxTokens));
}

Result<bool> Flag(const Json& body, std::string_view name, bool otherwise) {
  const Json& value = body[name];
  if (value.is_null()) {
    return otherwise;
  }
  if (!value.is_bool()) {
    return Refuse(std::string(name), std::string(value.KindName()), "true or false");
  }
  return value.as_bool();
}

/// A text, or its bytes where it is a part of a character.
Json PieceJson(std::string_view bytes) {
  if (IsValidUtf8(bytes)) {
    return bytes;
  }
  Json::Array numbers;
  numbers.reserve(bytes.size());
  for (const char byte : bytes) {
    numbers.emplace_back(static_cast<int>(static_cast<unsigned char>(byte)));
  }
  return numbers;
}

Json TokensJson(const std::vector<int>& ids, bool has_pieces, const Vocab& vocab) {
  Json::Array tokens;
  tokens.reserve(ids.size());
  for (const int id : ids) {
    tokens.push_back(has_pieces
                         ? Json::MakeObject({{"id", id}, {"piece", PieceJson(vocab.bytes(id))}})
                         : Json(id));
  }
  return Json::MakeObject({{"tokens", std::move(tokens)}});
}

/// What of text, pictures, sound and video files a chat may have.
Json Modalities(const ServedModel& model) {
  Json::Array names = {"text"};
  if (model.media == nullptr || !model.chat_template->traits().knows_media) {
    return names;
  }
  const MediaSettings& settings = model.media->settings();
  if (settings.traits.sees) {
    names.emplace_back("image");
  }
  if (settings.traits.hears) {
    names.emplace_back("audio");
  }
  if (settings.traits.sees && !settings.helper.empty()) {
    names.emplace_back("video");
  }
  return names;
}

}  // namespace

Result<Json> ParseBody(const std::string& body) {
  FACET_ASSIGN(Json json,
               ParseJson(body, "body", {.max_bytes = body.size(), .max_depth = kMaxDepth}));
  if (!json.is_object()) {
    return Refuse("body", std::string(json.KindName()), "an object");
  }
  return json;
}

Json ModelJson(const ServedModel& model, int n_context) {
  return Json::MakeObject({{"id", model.name},
                           {"object", "model"},
                           {"created", model.created},
                           {"owned_by", "facet"},
                           {"max_model_len", n_context},
                           {"modalities", Modalities(model)}});
}

Json ModelListJson(const ServedModel& model, int n_context) {
  return Json::MakeObject(
      {{"object", "list"}, {"data", Json::MakeArray({ModelJson(model, n_context)})}});
}

Json PropsJson(const ServedModel& model, const ServerLimits& limits, const std::string& version) {
  const TemplateTraits& traits = model.chat_template->traits();
  return Json::MakeObject(
      {{"model", model.name},
       {"n_ctx", limits.n_context},
       {"n_vocab", model.vocab->size()},
       {"modalities", Modalities(model)},
       {"build", version},
       {"system_fingerprint", model.system_fingerprint},
       {"chat_template", model.chat_template->source()},
       {"chat_template_traits", Json::MakeObject({{"thinking", traits.knows_thinking},
                                                  {"tools", traits.knows_tools},
                                                  {"media", traits.knows_media}})},
       {"defaults", Json::MakeObject({{"temperature", double{model.sampling.temperature}},
                                      {"top_k", model.sampling.top_k},
                                      {"top_p", double{model.sampling.top_p}},
                                      {"min_p", double{model.sampling.min_p}},
                                      {"max_tokens", model.max_tokens},
                                      {"thinking", model.thinks}})},
       {"drafting",
        Json::MakeObject({{"spec", NameOf(model.spec)}, {"drafter", limits.has_drafter}})},
       {"limits", Json::MakeObject({{"max_body_bytes", static_cast<int64_t>(limits.max_body_bytes)},
                                    {"request_timeout_s", limits.request_timeout_s}})}});
}

Result<Json> Tokenize(const Json& body, const ServedModel& model) {
  const Json& content = body["content"];
  if (!content.is_string()) {
    return Refuse("content", std::string(content.is_null() ? "nothing" : content.KindName()),
                  "a string");
  }
  if (content.as_string().size() > kMaxTextBytes) {
    return Refuse("content", fmt::format("{} bytes", content.as_string().size()),
                  fmt::format("at most {}", kMaxTextBytes));
  }
  FACET_ASSIGN(const bool adds_special, Flag(body, "add_special", false));
  FACET_ASSIGN(const bool parses_special, Flag(body, "parse_special", true));
  FACET_ASSIGN(const bool has_pieces, Flag(body, "with_pieces", false));
  const std::vector<int> ids = adds_special
                                   ? TokenizePrompt(*model.tokenizer, *model.vocab,
                                                    Prompt{{{content.as_string(), parses_special}}})
                                   : model.tokenizer->Encode(content.as_string(), parses_special);
  FACET_RETURN_IF_ERROR(CheckTokenCount("content", ids.size()));
  return TokensJson(ids, has_pieces, *model.vocab);
}

Json WithoutTokenizeFields(const Json& body) {
  Json::Object chat;
  for (const auto& [name, value] : body.members()) {
    if (name != "with_pieces") {
      chat.emplace_back(name, value);
    }
  }
  return chat;
}

Result<Json> TokenizeChat(const Json& body, const Prompt& prompt, const ServedModel& model) {
  FACET_ASSIGN(const bool has_pieces, Flag(body, "with_pieces", false));
  const std::vector<int> ids = TokenizePrompt(*model.tokenizer, *model.vocab, prompt);
  FACET_RETURN_IF_ERROR(CheckTokenCount("messages", ids.size()));
  return TokensJson(ids, has_pieces, *model.vocab);
}

Result<Json> Detokenize(const Json& body, const ServedModel& model) {
  const Json& tokens = body["tokens"];
  if (!tokens.is_array()) {
    return Refuse("tokens", std::string(tokens.is_null() ? "nothing" : tokens.KindName()),
                  "an array of token ids");
  }
  FACET_RETURN_IF_ERROR(CheckTokenCount("tokens", tokens.items().size()));
  std::vector<int> ids;
  ids.reserve(tokens.items().size());
  for (size_t n = 0; n < tokens.items().size(); ++n) {
    const Json& token = tokens.items()[n];
    const int64_t id = token.is_integer() ? token.as_int() : -1;
    if (id < 0 || id >= model.vocab->size()) {
      return Refuse(
          fmt::format("tokens[{}]", n),
          token.is_integer() ? fmt::format("{}", token.as_int()) : std::string(token.KindName()),
          fmt::format("a whole number from 0 to {}", model.vocab->size() - 1));
    }
    ids.push_back(static_cast<int>(id));
  }
  return Json::MakeObject({{"content", Decode(*model.vocab, ids, /*skip_special=*/false)}});
}

}  // namespace facet
