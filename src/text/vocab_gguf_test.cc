// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/gguf.h"
#include "text/test_vocabs.h"
#include "text/vocab.h"

namespace facet {
namespace {

using gguf::Metadata;
using gguf::Value;
using ::testing::ElementsAre;

Metadata SmallMetadata() {
  Metadata metadata;
  metadata.Set("tokenizer.ggml.model", Value::String("gemma4"));
  metadata.Set("tokenizer.ggml.tokens",
               Value::Strings({"<pad>", "<eos>", "<unk>", "a", "b", "ab"}));
  metadata.Set("tokenizer.ggml.token_type", Value::I32s({3, 3, 2, 1, 1, 4}));
  metadata.Set("tokenizer.ggml.merges", Value::Strings({"a b"}));
  return metadata;
}

std::string MessageOf(const Metadata& metadata) {
  const auto vocab = Vocab::FromGguf(metadata, "f.gguf");
  return vocab.ok() ? "ok" : vocab.error().Message();
}

/// What the small file with one key changed is answered with.
std::string MessageWith(const std::string& key, Value value) {
  Metadata metadata = SmallMetadata();
  metadata.Set("tokenizer.ggml." + key, std::move(value));
  return MessageOf(metadata);
}

TEST(VocabGgufTest, ReadsKindsRolesAndMerges) {
  Metadata metadata = SmallMetadata();
  metadata.Set("tokenizer.ggml.eos_token_id", Value::U32(3));
  metadata.Set("tokenizer.ggml.eot_token_id", Value::U32(4));
  metadata.Set("tokenizer.ggml.suppress_tokens", Value::I32s({0, 5}));
  const auto vocab = Vocab::FromGguf(metadata, "f.gguf");
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->size(), 6);
  EXPECT_EQ(vocab->kind(0), TokenKind::kControl);
  EXPECT_EQ(vocab->kind(3), TokenKind::kNormal);
  EXPECT_EQ(vocab->kind(5), TokenKind::kUserDefined);
  EXPECT_EQ(vocab->GgufTokenType(5), 4);
  EXPECT_THAT(vocab->MergeTexts(), ElementsAre("a b"));
  EXPECT_EQ(vocab->eos_id(), 3);
  EXPECT_THAT(vocab->end_ids(), ElementsAre(3, 1, 4));
  EXPECT_THAT(vocab->suppressed_ids(), ElementsAre(0, 5));
}

TEST(VocabGgufTest, ReadsAFileWithoutTypes) {
  Metadata metadata;
  metadata.Set("tokenizer.ggml.model", Value::String("gemma4"));
  metadata.Set("tokenizer.ggml.tokens", Value::Strings({"<unk>", "<|turn>", "<0xFF>"}));
  metadata.Set("tokenizer.ggml.merges", Value::Strings({}));
  const auto vocab = Vocab::FromGguf(metadata, "f.gguf");
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->kind(1), TokenKind::kControl);
  EXPECT_EQ(vocab->kind(2), TokenKind::kByte);
}

TEST(VocabGgufTest, RefusesOtherKindsOfTokenizer) {
  EXPECT_EQ(MessageOf(Metadata()), "f.gguf: tokenizer.ggml.model: missing, wanted \"gemma4\"");
  EXPECT_EQ(MessageWith("model", Value::String("llama")),
            "f.gguf: tokenizer.ggml.model: \"llama\", wanted \"gemma4\"");
  EXPECT_EQ(MessageWith("model", Value::U32(4)),
            "f.gguf: tokenizer.ggml.model: a value of type uint32, wanted \"gemma4\"");
}

TEST(VocabGgufTest, RefusesArraysOfTheWrongKindOrSize) {
  EXPECT_EQ(MessageWith("tokens", Value::U32s({1})),
            "f.gguf: tokenizer.ggml.tokens: an array of uint32, wanted an array of string");
  EXPECT_EQ(MessageWith("tokens", Value::Strings({})),
            "f.gguf: tokenizer.ggml.token_type: 6 types, wanted one type for each of 0 tokens");
  EXPECT_EQ(MessageWith("merges", Value::String("a b")),
            "f.gguf: tokenizer.ggml.merges: a value of type string, wanted an array of string");
  EXPECT_EQ(
      MessageWith("merges", Value::Strings({"a b", "ab"})),
      "f.gguf: tokenizer.ggml.merges[1]: \"ab\", wanted two token texts with a space between");
  EXPECT_EQ(MessageWith("merges", Value::Strings({"a c"})),
            "f.gguf: tokenizer.ggml.merges[0]: \"c\", which is no token, wanted two tokens that "
            "joined are a token");
  EXPECT_EQ(MessageWith("token_type", Value::I32s({1})),
            "f.gguf: tokenizer.ggml.token_type: 1 types, wanted one type for each of 6 tokens");
  EXPECT_EQ(MessageWith("token_type", Value::U32(1)),
            "f.gguf: tokenizer.ggml.token_type: a value of type uint32, wanted one type for each "
            "of 6 tokens");
  EXPECT_EQ(MessageWith("token_type", Value::F32s({1, 1, 1, 1, 1, 1})),
            "f.gguf: tokenizer.ggml.token_type: an array of float32, wanted an array of int32");
  EXPECT_EQ(MessageWith("token_type", Value::I32s({1, 1, 1, 7, 1, 1})),
            "f.gguf: tokenizer.ggml.token_type[3]: type 7, wanted 1 to 6");
}

TEST(VocabGgufTest, RefusesIdsOutOfRange) {
  EXPECT_EQ(MessageWith("bos_token_id", Value::U32(6)),
            "f.gguf: tokenizer.ggml.bos_token_id: id 6, wanted an id below 6");
  EXPECT_EQ(MessageWith("eot_token_id", Value::String("1")),
            "f.gguf: tokenizer.ggml.eot_token_id: a value of type string, wanted a token id");
  EXPECT_EQ(MessageWith("suppress_tokens", Value::I32s({1, -1})),
            "f.gguf: tokenizer.ggml.suppress_tokens[1]: id -1, wanted an id below 6");
  EXPECT_EQ(
      MessageWith("suppress_tokens", Value::Strings({"a"})),
      "f.gguf: tokenizer.ggml.suppress_tokens: an array of string, wanted an array of token ids");
  EXPECT_EQ(MessageWith("suppress_tokens", Value::U32(1)),
            "f.gguf: tokenizer.ggml.suppress_tokens: a value of type uint32, wanted an array of "
            "token ids");
}

TEST(VocabGgufTest, RealVocabulary) {
  const Vocab* vocab = testing::RealVocab();
  if (vocab == nullptr) {
    GTEST_SKIP() << testing::kNoShared;
  }
  EXPECT_EQ(vocab->size(), 262144);
  EXPECT_EQ(vocab->merges().size(), 514906u);
  EXPECT_EQ(vocab->bos_id(), 2);
  EXPECT_EQ(vocab->eos_id(), 1);
  EXPECT_EQ(vocab->pad_id(), 0);
  EXPECT_EQ(vocab->unk_id(), 3);
  EXPECT_THAT(vocab->end_ids(), ElementsAre(1, 106, 50));
  EXPECT_EQ(vocab->Find("<|\"|>"), 52);
  EXPECT_EQ(vocab->Find("<|video|>"), 258884);
  EXPECT_EQ(vocab->bytes(107), "\n");
  EXPECT_EQ(vocab->bytes(236743), " ");
  std::vector<int> special;
  std::vector<int> user_defined;
  int n_bytes = 0;
  for (int id = 0; id < vocab->size(); ++id) {
    if (vocab->is_special(id)) {
      special.push_back(id);
    }
    if (vocab->GgufTokenType(id) == 4) {
      user_defined.push_back(id);
    }
    n_bytes += vocab->kind(id) == TokenKind::kByte ? 1 : 0;
  }
  EXPECT_THAT(special, ElementsAre(0, 1, 2, 3, 4, 46, 47, 48, 49, 50, 51, 52, 98, 100, 101, 105,
                                   106, 255999, 256000, 258880, 258881, 258882, 258883, 258884));
  EXPECT_THAT(user_defined, ElementsAre(48, 49, 50, 51, 52, 100, 101));
  EXPECT_EQ(n_bytes, 256);
}

TEST(VocabGgufTest, WhatAWriterGetsIsWhatWasRead) {
  const auto path = testing::SharedPath("data/gemma4-vocab.gguf");
  if (!path) {
    GTEST_SKIP() << testing::kNoShared;
  }
  const auto file = gguf::File::Open(*path);
  ASSERT_TRUE(file.ok());
  const Vocab& vocab = *testing::RealVocab();
  EXPECT_EQ(vocab.MergeTexts(), *file->metadata().Find("tokenizer.ggml.merges")->AsStrings());
  const Value* types = file->metadata().Find("tokenizer.ggml.token_type");
  const auto& tokens = *file->metadata().Find("tokenizer.ggml.tokens")->AsStrings();
  for (int id = 0; id < vocab.size(); ++id) {
    ASSERT_EQ(vocab.text(id), tokens[static_cast<size_t>(id)]);
    ASSERT_EQ(vocab.GgufTokenType(id), types->IntAt(static_cast<size_t>(id))) << id;
  }
}

}  // namespace
}  // namespace facet
