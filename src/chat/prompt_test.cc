// SPDX-License-Identifier: Apache-2.0
#include "chat/prompt.h"

#include <gtest/gtest.h>

#include "text/test_vocabs.h"

namespace facet {
namespace {

using testing::TinyVocab;

std::vector<int> Ids(const Prompt& prompt) {
  const Tokenizer tokenizer(&TinyVocab());
  return TokenizePrompt(tokenizer, TinyVocab(), prompt);
}

std::vector<int> PlainIds(std::string_view text) {
  return Tokenizer(&TinyVocab()).Encode(text, false);
}

std::vector<int> WithBos(std::vector<int> ids) {
  ids.insert(ids.begin(), TinyVocab().bos_id());
  return ids;
}

TEST(TokenizePromptTest, KeepsTheBosOfTheTemplate) {
  EXPECT_EQ(Ids({{{"<bos>", true}, {"Hi", false}}}), WithBos(PlainIds("Hi")));
}

TEST(TokenizePromptTest, AddsABosWhereTheTemplateWroteNone) {
  EXPECT_EQ(Ids({{{"Hi", true}}}), WithBos(PlainIds("Hi")));
}

TEST(TokenizePromptTest, KeepsOneBosOfSeveral) {
  EXPECT_EQ(Ids({{{"<bos><bos>", true}, {"Hi", false}}}), WithBos(PlainIds("Hi")));
  EXPECT_EQ(Ids({{{"<bos><bos>", true}}}), WithBos({}));
}

TEST(TokenizePromptTest, AnEmptyPromptIsOneBos) { EXPECT_EQ(Ids({}), WithBos({})); }

TEST(TokenizePromptTest, BosTypedByAUserIsText) {
  EXPECT_EQ(Ids({{{"<bos>", false}, {"Hi", false}}}), WithBos(PlainIds("<bos>Hi")));
  EXPECT_EQ(Ids({{{"<bos>", true}, {"<bos>Hi", false}}}), WithBos(PlainIds("<bos>Hi")));
}

TEST(TokenizePromptTest, AMarkSpreadOverTwoRunsIsText) {
  const std::vector<int> ids = Ids({{{"<|tu", true}, {"rn>", false}}});
  EXPECT_EQ(ids, WithBos(PlainIds("<|turn>")));
}

TEST(TokenizePromptTest, BordersOfRunsDoNotShowInCleanText) {
  EXPECT_EQ(Ids({{{"What is the cap", true}, {"ital of Fra", false}, {"nce?", true}}}),
            WithBos(PlainIds("What is the capital of France?")));
}

TEST(TokenizePromptTest, AVocabularyWithoutBosAddsNone) {
  VocabParts parts;
  parts.tokens_name = "tokens";
  parts.merges_name = "merges";
  parts.texts = {"<unk>", "a", "b"};
  parts.kinds = {TokenKind::kUnknown, TokenKind::kNormal, TokenKind::kNormal};
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok()) << vocab.error().Message();
  const Tokenizer tokenizer(&*vocab);
  EXPECT_EQ(TokenizePrompt(tokenizer, *vocab, {{{"ab", true}}}), (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace facet
