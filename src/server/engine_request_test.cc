// SPDX-License-Identifier: Apache-2.0
#include "server/engine_request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "server/served_model_testing.h"

namespace facet {
namespace {

using testing::MakeServedModel;
using testing::TinyVocab;

int IdOf(std::string_view text) { return TinyVocab().Find(text).value(); }

bool Has(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

ApiRequest Chat(bool thinking) {
  ApiRequest request;
  request.chat.messages =
      Json::MakeArray({Json::MakeObject({{"role", "user"}, {"content", "Hi <|turn>"}})});
  request.chat.thinking = thinking;
  return request;
}

TEST(MakeEngineRequest, KeepsThoughtsFromBeginning) {
  const Request request = MakeEngineRequest(Chat(false), MakeServedModel(), {1, 2, 3}, 0);
  EXPECT_EQ(request.thought.open, -1);
  EXPECT_TRUE(Has(request.suppressed_tokens, IdOf("<|channel>")));
  EXPECT_TRUE(Has(request.suppressed_tokens, IdOf("<channel|>")));
  // A budget of nothing is no thought.
  ApiRequest none = Chat(true);
  none.engine.thought.max_tokens = 0;
  EXPECT_TRUE(Has(MakeEngineRequest(none, MakeServedModel(), {1}, 0).suppressed_tokens,
                  IdOf("<|channel>")));
}

TEST(MakeEngineRequest, BoundsThoughts) {
  ApiRequest api = Chat(true);
  api.engine.thought.max_tokens = 40;
  const Request request = MakeEngineRequest(api, MakeServedModel(), {1, 2, 3}, 0);
  EXPECT_EQ(request.thought.open, IdOf("<|channel>"));
  EXPECT_EQ(request.thought.close, IdOf("<channel|>"));
  EXPECT_EQ(request.thought.max_tokens, 40);
  EXPECT_FALSE(request.thought.starts_open);
  EXPECT_TRUE(request.suppressed_tokens.empty());
}

TEST(MakeEngineRequest, AnOpenThoughtMustBeClosable) {
  const std::vector<int32_t> prompt = {1, IdOf("<|turn>"), IdOf("<|channel>"), 300};
  const Request request = MakeEngineRequest(Chat(false), MakeServedModel(), prompt, 0);
  EXPECT_TRUE(request.thought.starts_open);
  EXPECT_EQ(request.thought.close, IdOf("<channel|>"));
  EXPECT_TRUE(request.suppressed_tokens.empty());
}

TEST(MakeEngineRequest, GivesEachChoiceItsSeed) {
  ApiRequest api = Chat(false);
  api.engine.sampling.seed = UINT64_MAX;
  EXPECT_EQ(MakeEngineRequest(api, MakeServedModel(), {1}, 0).sampling.seed, UINT64_MAX);
  EXPECT_EQ(MakeEngineRequest(api, MakeServedModel(), {1}, 2).sampling.seed, 1U);
}

TEST(MakeEngineRequest, EndsAfterTheFirstCallWhereOnlyOneIsWanted) {
  ApiRequest api = Chat(false);
  EXPECT_FALSE(
      Has(MakeEngineRequest(api, MakeServedModel(), {1}, 0).end_tokens, IdOf("<tool_call|>")));
  api.parallel_tool_calls = false;
  EXPECT_FALSE(
      Has(MakeEngineRequest(api, MakeServedModel(), {1}, 0).end_tokens, IdOf("<tool_call|>")));
  api.chat.tools = Json::MakeArray({Json::Object()});
  const Request request = MakeEngineRequest(api, MakeServedModel(), {1}, 0);
  EXPECT_TRUE(Has(request.end_tokens, IdOf("<tool_call|>")));
  EXPECT_TRUE(Has(request.end_tokens, IdOf("<turn|>")));
}

TEST(MakeEngineRequest, LeavesCompletionsAsTheyAre) {
  ApiRequest api;
  api.kind = ApiRequest::Kind::kCompletion;
  api.engine.thought.max_tokens = 5;
  const Request request = MakeEngineRequest(api, MakeServedModel(), {1, IdOf("<|channel>")}, 0);
  EXPECT_EQ(request.thought.open, -1);
  EXPECT_EQ(request.thought.max_tokens, -1);
  EXPECT_TRUE(request.suppressed_tokens.empty());
}

TEST(MakePrompts, KeepsTypedMarksText) {
  const TurnMemory memory(&TinyVocab(), 1 << 20);
  ApiRequest api = Chat(false);
  const auto prompts = MakePrompts(MakeServedModel(), memory, &api);
  ASSERT_TRUE(prompts.ok()) << prompts.error().Message();
  ASSERT_EQ(prompts->size(), 1U);
  EXPECT_EQ(std::count(prompts->at(0).begin(), prompts->at(0).end(), IdOf("<|turn>")), 2);
  const auto text = RenderText(Chat(false), MakeServedModel());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "<bos><|turn>user\nHi <|turn><turn|>\n<|turn>model\n");
}

TEST(MakePrompts, RestoresTurnsOnlyWhereSomethingMayBeReused) {
  TurnMemory memory(&TinyVocab(), 1 << 20);
  const ServedModel model = MakeServedModel();
  ApiRequest api = Chat(false);
  const std::vector<int32_t> prompt = MakePrompts(model, memory, &api)->at(0);
  std::vector<int32_t> reply;  // not as a tokenizer divides the text
  for (const char* letter : {"t", "h", "e"}) {
    reply.push_back(IdOf(letter));
  }
  reply.push_back(IdOf("<turn|>"));
  memory.Remember(prompt, reply);
  api.chat.messages.Append(Json::MakeObject({{"role", "assistant"}, {"content", "the"}}));
  const auto has_drawn_tokens = [&] {
    const std::vector<int32_t> again = MakePrompts(model, memory, &api)->at(0);
    return std::search(again.begin(), again.end(), reply.begin(), reply.end()) != again.end();
  };
  EXPECT_TRUE(has_drawn_tokens());
  api.engine.reuses_prefix = false;
  EXPECT_FALSE(has_drawn_tokens());
}

/// A chat about a picture of two tokens, which has been read.
ApiRequest ChatWithPicture() {
  ApiRequest request = Chat(false);
  const Json content =
      Json::MakeArray({Json::MakeObject({{"type", "image_url"}, {"image_url", "data:,"}}),
                       Json::MakeObject({{"type", "text"}, {"text", "What? <|image|>"}})});
  request.chat.messages =
      Json::MakeArray({Json::MakeObject({{"role", "user"}, {"content", content}})});
  auto item = std::make_shared<MediaItem>();
  item->n_tokens = 2;
  MediaPart part;
  part.items = {item};
  request.media.parts = {part};
  return request;
}

TEST(MakePrompts, PlacesMedia) {
  TurnMemory memory(&TinyVocab(), 1 << 20);
  const ServedModel model = MakeServedModel();
  ApiRequest api = ChatWithPicture();
  const std::vector<int32_t> prompt = MakePrompts(model, memory, &api)->at(0);
  ASSERT_EQ(api.engine.media.size(), 1U);
  EXPECT_EQ(api.engine.media[0].begin, 5);  // bos, turn, "user", line end, the mark
  EXPECT_EQ(prompt[4], IdOf("<|image>"));
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), IdOf("<|image|>")), 2);
  EXPECT_EQ(prompt[7], IdOf("<image|>"));
  EXPECT_EQ(MakeEngineRequest(api, model, prompt, 0).media.size(), 1U);
  EXPECT_EQ(*RenderText(api, model),
            "<bos><|turn>user\n<|image><|image|><|image|><image|>What? <|image|><turn|>\n"
            "<|turn>model\n");
}

TEST(MakePrompts, PlacesMediaBehindTurnsThatAreRemembered) {
  TurnMemory memory(&TinyVocab(), 1 << 20);
  const ServedModel model = MakeServedModel();
  ApiRequest first = Chat(false);
  const std::vector<int32_t> prompt = MakePrompts(model, memory, &first)->at(0);
  memory.Remember(prompt, std::vector<int32_t>{IdOf("t"), IdOf("h"), IdOf("e"), IdOf("<turn|>")});
  ApiRequest second = ChatWithPicture();
  Json messages = first.chat.messages;
  messages.Append(Json::MakeObject({{"role", "assistant"}, {"content", "the"}}));
  messages.Append(second.chat.messages.items()[0]);
  second.chat.messages = messages;
  const std::vector<int32_t> both = MakePrompts(model, memory, &second)->at(0);
  ASSERT_EQ(second.engine.media.size(), 1U);
  const auto begin = static_cast<size_t>(second.engine.media[0].begin);
  EXPECT_EQ(both[begin - 1], IdOf("<|image>"));
  EXPECT_EQ(both[begin], IdOf("<|image|>"));
}

TEST(MakePrompts, RefusesMediaThatTheTemplateDoesNotWrite) {
  const TurnMemory memory(&TinyVocab(), 1 << 20);
  ServedModel model = MakeServedModel();
  model.chat_template = &testing::PlainTemplate();
  ApiRequest api = ChatWithPicture();
  const auto prompts = MakePrompts(model, memory, &api);
  ASSERT_FALSE(prompts.ok());
  EXPECT_EQ(prompts.error().Message(),
            "messages: 1 part of media, wanted none (the model's chat template knows no media)");
}

TEST(ReadMedia, OfATextModelSaysWhatIsMissing) {
  ApiRequest api = ChatWithPicture();
  const Status status = ReadMedia(MakeServedModel(), &api);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().Message(),
            "messages[0].content[0].image_url: a picture, wanted none (this model has no encoder "
            "for pictures; give its projector with --mmproj)");
  ApiRequest text = Chat(false);
  EXPECT_TRUE(ReadMedia(MakeServedModel(), &text).ok());
}

TEST(MakePrompts, TakesTextsAndTokens) {
  const TurnMemory memory(&TinyVocab(), 1 << 20);
  ApiRequest api;
  api.kind = ApiRequest::Kind::kCompletion;
  api.prompts = {std::string("<|turn>"), std::vector<int32_t>{7, 8}};
  const auto prompts = MakePrompts(MakeServedModel(), memory, &api);
  ASSERT_TRUE(prompts.ok());
  EXPECT_EQ(prompts->at(0), (std::vector<int32_t>{TinyVocab().bos_id(), IdOf("<|turn>")}));
  EXPECT_EQ(prompts->at(1), (std::vector<int32_t>{7, 8}));
}

TEST(RefusedByEngine, TellsAFullQueueFromABadRequest) {
  const ApiError full = RefusedByEngine(Refuse("queue", "2 requests waiting", "fewer than 2"));
  EXPECT_EQ(full.status, 503);
  EXPECT_EQ(full.code, "queue_full");
  const ApiError bad = RefusedByEngine(Refuse("top_k", "-1", "at least 0"));
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.param, "top_k");
}

}  // namespace
}  // namespace facet
