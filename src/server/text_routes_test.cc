// SPDX-License-Identifier: Apache-2.0
#include "server/text_routes.h"

#include <gtest/gtest.h>

#include "server/served_model_testing.h"

namespace facet {
namespace {

using testing::MakeServedModel;
using testing::TinyVocab;

Json Parse(const std::string& text) {
  const auto json = ParseBody(text);
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

std::string ErrorOf(const Result<Json>& result) {
  return result.ok() ? "no error" : result.error().Message();
}

TEST(ParseBody, WantsAnObjectOfBoundedDepth) {
  EXPECT_EQ(ErrorOf(ParseBody("[1]")), "body: an array, wanted an object");
  EXPECT_FALSE(ParseBody("").ok());
  EXPECT_FALSE(ParseBody("{\"a\":\"\xc3\x28\"}").ok());
  EXPECT_TRUE(ParseBody("{\"a\":" + std::string(90, '[') + std::string(90, ']') + "}").ok());
  EXPECT_FALSE(ParseBody("{\"a\":" + std::string(150, '[') + std::string(150, ']') + "}").ok());
}

TEST(Tokenize, KnowsSpecialTokensAndPieces) {
  const ServedModel model = MakeServedModel();
  const int turn = TinyVocab().Find("<|turn>").value();
  const auto special = Tokenize(Parse(R"({"content":"<|turn>"})"), model);
  ASSERT_TRUE(special.ok());
  EXPECT_EQ((*special)["tokens"], Json::MakeArray({turn}));
  const auto plain = Tokenize(Parse(R"({"content":"<|turn>","parse_special":false})"), model);
  ASSERT_TRUE(plain.ok());
  EXPECT_GT((*plain)["tokens"].items().size(), 1U);
  const auto with_bos = Tokenize(Parse(R"({"content":"","add_special":true})"), model);
  ASSERT_TRUE(with_bos.ok());
  EXPECT_EQ((*with_bos)["tokens"], Json::MakeArray({TinyVocab().bos_id()}));
  // A character that no token has comes in bytes.
  const auto pieces = Tokenize(Parse(R"({"content":"fox 🦊","with_pieces":true})"), model);
  ASSERT_TRUE(pieces.ok());
  std::string text;
  for (const Json& token : (*pieces)["tokens"].items()) {
    EXPECT_TRUE(token["id"].is_integer());
    text += token["piece"].as_string();
    for (const Json& byte : token["piece"].items()) {
      text += static_cast<char>(byte.as_int());
    }
  }
  EXPECT_EQ(text, "fox 🦊");
}

TEST(Tokenize, NamesTheFieldThatIsWrong) {
  const ServedModel model = MakeServedModel();
  EXPECT_EQ(ErrorOf(Tokenize(Parse("{}"), model)), "content: nothing, wanted a string");
  EXPECT_EQ(ErrorOf(Tokenize(Parse(R"({"content":"a","with_pieces":1})"), model)),
            "with_pieces: an integer, wanted true or false");
}

TEST(TokenizeChat, GivesThePromptsTokens) {
  const ServedModel model = MakeServedModel();
  const Json body = Parse(R"({"messages":[],"with_pieces":true,"tools":[]})");
  EXPECT_EQ(WithoutTokenizeFields(body).Dump(), R"({"messages":[],"tools":[]})");
  const auto tokens = TokenizeChat(body, Prompt{{{"<|turn>", true}}}, model);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->Dump(), R"({"tokens":[{"id":2,"piece":"<bos>"},{"id":15,"piece":"<|turn>"}]})");
}

TEST(Props, TellsWhatMayBeInAChat) {
  ServedModel model = MakeServedModel();
  const auto modalities = [&] { return ModelJson(model, 1)["modalities"].Dump(); };
  MediaSettings settings;
  settings.traits.sees = true;
  const MediaReader seeing(settings);
  model.media = &seeing;
  EXPECT_EQ(modalities(), R"(["text","image"])");
  settings.traits.hears = true;
  settings.helper = "facet-media";
  const MediaReader all(settings);
  model.media = &all;
  EXPECT_EQ(modalities(), R"(["text","image","audio","video"])");
  EXPECT_EQ(PropsJson(model, {}, "1")["modalities"].Dump(), modalities());
  model.chat_template = &testing::PlainTemplate();
  EXPECT_EQ(modalities(), R"(["text"])");
}

TEST(Props, TellsWhetherADrafterIsLoaded) {
  ServedModel model = MakeServedModel();
  model.spec = SpecMode::kAuto;
  EXPECT_EQ(PropsJson(model, {.has_drafter = true}, "1")["drafting"].Dump(),
            R"({"spec":"auto","drafter":true})");
}

TEST(Detokenize, WritesSpecialTokensOut) {
  const ServedModel model = MakeServedModel();
  const int turn = TinyVocab().Find("<|turn>").value();
  const auto text = Detokenize(Parse(R"({"tokens":[)" + std::to_string(turn) + "]}"), model);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ((*text)["content"].as_string(), "<|turn>");
  EXPECT_EQ(ErrorOf(Detokenize(Parse("{}"), model)),
            "tokens: nothing, wanted an array of token ids");
  EXPECT_EQ(ErrorOf(Detokenize(Parse(R"({"tokens":[1,2048]})"), model)),
            "tokens[1]: 2048, wanted a whole number from 0 to 2047");
  EXPECT_EQ(ErrorOf(Detokenize(Parse(R"({"tokens":["a"]})"), model)),
            "tokens[0]: a string, wanted a whole number from 0 to 2047");
}

TEST(TextRoutes, HaveLimits) {
  const ServedModel model = MakeServedModel();
  const Json text = Json::MakeObject({{"content", std::string((size_t{4} << 20) + 1, 'a')}});
  EXPECT_EQ(ErrorOf(Tokenize(text, model)), "content: 4194305 bytes, wanted at most 4194304");
  const Json ids = Json::MakeObject({{"tokens", Json::Array((size_t{1} << 20) + 1, Json(1))}});
  EXPECT_EQ(ErrorOf(Detokenize(ids, model)), "tokens: 1048577 tokens, wanted at most 1048576");
}

TEST(Props, TellsModelAndLimits) {
  const Json props = PropsJson(MakeServedModel(), {.n_context = 100, .max_body_bytes = 7}, "1.2");
  EXPECT_EQ(props["n_ctx"].as_int(), 100);
  EXPECT_EQ(props["build"].as_string(), "1.2");
  EXPECT_EQ(props["limits"]["max_body_bytes"].as_int(), 7);
  EXPECT_EQ(props["modalities"], Json::MakeArray({"text"}));
  EXPECT_EQ(props["drafting"].Dump(), R"({"spec":"off","drafter":false})");
  EXPECT_FALSE(props["chat_template"].as_string().empty());
}

}  // namespace
}  // namespace facet
