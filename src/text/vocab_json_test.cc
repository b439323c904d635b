// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "text/test_vocabs.h"
#include "text/vocab.h"

namespace facet {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kSmall = R"({
  "added_tokens": [
    {"id": 0, "content": "<unk>", "lstrip": false, "special": true},
    {"id": 4, "content": "<mark>", "special": false}],
  "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
  "pre_tokenizer": null,
  "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
            "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"]}})";

Json Parsed(std::string_view text) {
  auto json = ParseJson(text, "test");
  EXPECT_TRUE(json.ok());
  return *std::move(json);
}

std::string MessageOf(const Json& tokenizer, const Json& config = Json()) {
  const auto vocab = Vocab::FromTokenizerJson(tokenizer, config, "t.json");
  return vocab.ok() ? "ok" : vocab.error().Message();
}

/// What the small file with a member of its model replaced is answered with; `value` is JSON.
std::string MessageWithModel(std::string_view key, std::string_view value) {
  Json tokenizer = Parsed(kSmall);
  Json model = tokenizer["model"];
  model.Set(key, Parsed(value));
  tokenizer.Set("model", model);
  return MessageOf(tokenizer);
}

std::string MessageWith(std::string_view key, std::string_view value) {
  Json tokenizer = Parsed(kSmall);
  tokenizer.Set(key, Parsed(value));
  return MessageOf(tokenizer);
}

TEST(VocabJsonTest, ReadsTokensKindsAndMerges) {
  const auto vocab = Vocab::FromTokenizerJson(Parsed(kSmall), Json(), "t.json");
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->size(), 5);
  EXPECT_EQ(vocab->text(3), "ab");
  EXPECT_EQ(vocab->kind(0), TokenKind::kControl);
  EXPECT_EQ(vocab->kind(4), TokenKind::kUserDefined);
  EXPECT_EQ(vocab->unk_id(), 0);
  EXPECT_EQ(vocab->eos_id(), -1);
  EXPECT_THAT(vocab->MergeTexts(), ElementsAre("a b"));
}

TEST(VocabJsonTest, RolesComeFromTheConfiguration) {
  const Json config = Parsed(
      R"({"eos_token": "b", "bos_token": {"content": "a", "lstrip": false}, "pad_token": null})");
  const auto vocab = Vocab::FromTokenizerJson(Parsed(kSmall), config, "t.json");
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->eos_id(), 2);
  EXPECT_EQ(vocab->bos_id(), 1);
  EXPECT_EQ(vocab->pad_id(), -1);
  EXPECT_THAT(vocab->end_ids(), ElementsAre(2));
  EXPECT_EQ(MessageOf(Parsed(kSmall), Parsed(R"({"eos_token": "x"})")),
            "t.json: eos_token: \"x\", wanted the text of a token");
  EXPECT_EQ(MessageOf(Parsed(kSmall), Parsed(R"({"eos_token": 1})")),
            "t.json: eos_token: 1, wanted the text of a token");
}

TEST(VocabJsonTest, AcceptsTheKnownVariants) {
  EXPECT_EQ(MessageWithModel("merges", R"([["a", "b"]])"), "ok");
  EXPECT_EQ(MessageWithModel("dropout", "null"), "ok");
  EXPECT_EQ(MessageWithModel("end_of_word_suffix", "\"\""), "ok");
  EXPECT_EQ(MessageWith("pre_tokenizer", R"({"type": "Split", "pattern": {"String": " "}})"), "ok");
  EXPECT_EQ(MessageWith("normalizer", R"({"type": "Sequence", "normalizers": [
      {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})"),
            "ok");
}

TEST(VocabJsonTest, RefusesOtherKindsOfTokenizer) {
  EXPECT_EQ(MessageOf(Json("x")), "t.json: a string, wanted an object");
  EXPECT_EQ(MessageOf(Json(Json::Object())), "t.json: model: missing or null, wanted an object");
  EXPECT_EQ(MessageWith("model", "[1]"), "t.json: model: [1], wanted an object");
  EXPECT_EQ(MessageWithModel("type", "\"Unigram\""),
            "t.json: model.type: \"Unigram\", wanted \"BPE\"");
  EXPECT_EQ(MessageWithModel("byte_fallback", "false"),
            "t.json: model.byte_fallback: false, wanted true");
  EXPECT_EQ(MessageWithModel("ignore_merges", "true"),
            "t.json: model.ignore_merges: true, wanted false");
  EXPECT_EQ(MessageWithModel("dropout", "0.5"), "t.json: model.dropout: 0.5, wanted null");
  EXPECT_EQ(MessageWithModel("end_of_word_suffix", "\"</w>\""),
            "t.json: model.end_of_word_suffix: \"</w>\", wanted null");
  EXPECT_EQ(MessageWith("normalizer", "null"),
            "t.json: normalizer: missing or null, wanted a Replace of \" \" by \"▁\"");
  EXPECT_EQ(MessageWith("normalizer", "{\"type\":\"NFC\"}"),
            "t.json: normalizer: {\"type\":\"NFC\"}, wanted a Replace of \" \" by \"▁\"");
  EXPECT_EQ(MessageWith("pre_tokenizer", "{\"type\":\"ByteLevel\"}"),
            "t.json: pre_tokenizer: {\"type\":\"ByteLevel\"}, wanted null or a Split at \" \"");
}

TEST(VocabJsonTest, RefusesBadVocabularies) {
  EXPECT_EQ(MessageWithModel("vocab", "[]"), "t.json: model.vocab: [], wanted an object");
  EXPECT_EQ(MessageWithModel("vocab", R"({"a": "1"})"),
            "t.json: model.vocab[\"a\"]: \"1\", wanted an id below 1048576");
  EXPECT_EQ(MessageWithModel("vocab", R"({"a": -1})"),
            "t.json: model.vocab[\"a\"]: -1, wanted an id below 1048576");
  EXPECT_EQ(MessageWithModel("vocab", R"({"a": 1048576})"),
            "t.json: model.vocab[\"a\"]: 1048576, wanted an id below 1048576");
  EXPECT_EQ(MessageWithModel("vocab", R"({"a": 99999999999999999999})"),
            "t.json: model.vocab[\"a\"]: 99999999999999999999, wanted an id below 1048576");
  EXPECT_EQ(MessageWithModel("vocab", R"({"a": 1, "b": 1})"),
            "t.json: model.vocab[\"b\"]: id 1, which is \"a\", wanted an id of its own");
  EXPECT_EQ(MessageWithModel("vocab", R"({"a": 1, "b": 3})"),
            "t.json: model.vocab: no token with id 2, wanted all ids below 5");
  EXPECT_EQ(MessageWithModel("vocab", R"({"a": 1, "": 2, "b": 3})"),
            "t.json: model.vocab[2]: an empty text, wanted at least one byte");
  EXPECT_EQ(MessageWithModel("vocab", R"({"a": 1, "b": 2, "<mark>": 3})"),
            "t.json: model.vocab[4]: \"<mark>\", the text of token 3, wanted a text of its own");
}

TEST(VocabJsonTest, RefusesBadAddedTokens) {
  EXPECT_EQ(MessageWith("added_tokens", "{}"), "t.json: added_tokens: {}, wanted an array");
  EXPECT_EQ(MessageWith("added_tokens", "[7]"),
            "t.json: added_tokens[0].content: missing or null, wanted a string");
  EXPECT_EQ(MessageWith("added_tokens", R"([{"content": "x"}])"),
            "t.json: added_tokens[\"x\"]: missing or null, wanted an id below 1048576");
  EXPECT_EQ(MessageWith("added_tokens", R"([{"content": "x", "id": 1}])"),
            "t.json: added_tokens[\"x\"]: id 1, which is \"a\", wanted an id of its own");
  EXPECT_EQ(MessageWith("added_tokens", R"([{"content": "x", "id": 4, "lstrip": true}])"),
            "t.json: added_tokens[0].lstrip: true, wanted false");
}

TEST(VocabJsonTest, RefusesBadMerges) {
  constexpr std::string_view kWanted =
      ", wanted two token texts, in an array or with a space between";
  EXPECT_EQ(MessageWithModel("merges", "{}"), "t.json: model.merges: {}, wanted an array");
  EXPECT_EQ(MessageWithModel("merges", R"(["a b", "ab"])"),
            std::string("t.json: model.merges[1]: \"ab\"").append(kWanted));
  EXPECT_EQ(MessageWithModel("merges", R"([["a"]])"),
            std::string("t.json: model.merges[0]: [\"a\"]").append(kWanted));
  EXPECT_EQ(MessageWithModel("merges", R"([["a", 1]])"),
            std::string("t.json: model.merges[0]: [\"a\",1]").append(kWanted));
  EXPECT_EQ(MessageWithModel("merges", R"([["a", ""]])"),
            "t.json: model.merges[0]: \"\", which is no token, wanted two tokens that joined are a "
            "token");
}

TEST(VocabJsonTest, LongFindingsAreCutWithoutBreakingCharacters) {
  const std::string message =
      MessageWith("pre_tokenizer", "\"" + std::string(98, 'x') + "é and more\"");
  EXPECT_EQ(message, "t.json: pre_tokenizer: \"" + std::string(98, 'x') +
                         "\xef\xbf\xbd..., wanted null or a Split at \" \"");
}

TEST(VocabJsonTest, TinyVocabulary) {
  const Vocab& vocab = testing::TinyVocab();
  EXPECT_EQ(vocab.size(), 2048);
  EXPECT_EQ(vocab.merges().size(), 1641u);
  EXPECT_EQ(vocab.bos_id(), 2);
  EXPECT_EQ(vocab.eos_id(), 1);
  EXPECT_EQ(vocab.pad_id(), 0);
  EXPECT_EQ(vocab.unk_id(), 3);
  EXPECT_THAT(vocab.end_ids(), ElementsAre(1, 16, 9));
  EXPECT_EQ(vocab.byte_id(0xFF), 279);
  EXPECT_TRUE(vocab.suppressed_ids().empty());
}

TEST(VocabJsonTest, EqualsTheGgufMadeFromIt) {
  const auto path = testing::SharedPath("models/gguf/facet-tiny-q8_0.gguf");
  if (!path) {
    GTEST_SKIP() << testing::kNoShared;
  }
  const auto file = gguf::File::Open(*path);
  ASSERT_TRUE(file.ok());
  const auto from_gguf = Vocab::FromGguf(file->metadata(), *path);
  ASSERT_TRUE(from_gguf.ok()) << from_gguf.error().Message();
  const Vocab& from_json = testing::TinyVocab();
  ASSERT_EQ(from_gguf->size(), from_json.size());
  const gguf::Value* types = file->metadata().Find("tokenizer.ggml.token_type");
  for (int id = 0; id < from_json.size(); ++id) {
    EXPECT_EQ(from_gguf->text(id), from_json.text(id));
    EXPECT_EQ(from_gguf->bytes(id), from_json.bytes(id));
    EXPECT_EQ(from_gguf->kind(id), from_json.kind(id)) << from_json.text(id);
    EXPECT_EQ(from_json.GgufTokenType(id), types->IntAt(static_cast<size_t>(id)));
  }
  EXPECT_EQ(from_gguf->MergeTexts(), from_json.MergeTexts());
  EXPECT_EQ(from_gguf->end_ids(), from_json.end_ids());
}

}  // namespace
}  // namespace facet
