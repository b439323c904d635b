// SPDX-License-Identifier: Apache-2.0
#include "text/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/test_vocabs.h"

namespace facet {
namespace {

using ::testing::ElementsAre;

VocabParts SmallParts() {
  VocabParts parts;
  parts.tokens_name = "f: tokens";
  parts.merges_name = "f: merges";
  parts.texts = {"<unk>",
                 "<|turn>",
                 "a",
                 "b",
                 "\xe2\x96\x81",
                 "ab",
                 "\xe2\x96\x81"
                 "ab\xe2\x96\x81",
                 "<0x0A>",
                 "ab\xe2\x96\x81"};
  parts.kinds.assign(parts.texts.size(), TokenKind::kNormal);
  parts.merges = {{"a", "b"}, {"ab", "\xe2\x96\x81"}, {"\xe2\x96\x81", "ab\xe2\x96\x81"}};
  return parts;
}

std::string MessageOf(const VocabParts& parts) {
  const auto vocab = Vocab::FromParts(parts);
  return vocab.ok() ? "ok" : vocab.error().Message();
}

TEST(VocabTest, HoldsTextsBytesAndKinds) {
  const auto vocab = Vocab::FromParts(SmallParts());
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->size(), 9);
  EXPECT_EQ(vocab->text(6),
            "\xe2\x96\x81"
            "ab\xe2\x96\x81");
  EXPECT_EQ(vocab->bytes(6), " ab ");
  EXPECT_EQ(vocab->text(7), "<0x0A>");
  EXPECT_EQ(vocab->bytes(7), "\n");
  EXPECT_EQ(vocab->kind(7), TokenKind::kByte);
  EXPECT_EQ(vocab->byte_id(10), 7);
  EXPECT_EQ(vocab->byte_id(11), -1);
  EXPECT_EQ(vocab->bytes(1), "<|turn>");
  EXPECT_EQ(vocab->Find("ab"), 5);
  EXPECT_EQ(vocab->Find("abc"), std::nullopt);
  EXPECT_EQ(vocab->Find(""), std::nullopt);
}

TEST(VocabTest, FamilyControlTokensAreSpecialWhateverTheFileSays) {
  for (const TokenKind stated :
       {TokenKind::kNormal, TokenKind::kUserDefined, TokenKind::kUnused, TokenKind::kUnknown}) {
    VocabParts parts = SmallParts();
    parts.kinds[1] = stated;
    const auto vocab = Vocab::FromParts(parts);
    ASSERT_TRUE(vocab.ok());
    EXPECT_EQ(vocab->kind(1), TokenKind::kControl);
    EXPECT_TRUE(vocab->is_special(1));
    EXPECT_EQ(vocab->GgufTokenType(1), 3);
  }
}

TEST(VocabTest, RolesAreStatedOrFoundByText) {
  VocabParts parts = SmallParts();
  parts.texts = {"<pad>", "<eos>",        "<bos>", "<unk>", "<turn|>", "<|tool_response>",
                 "</s>",  "<end_of_turn>"};
  parts.kinds.assign(parts.texts.size(), TokenKind::kNormal);
  parts.merges.clear();
  parts.suppressed_ids = {6};
  auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->pad_id(), 0);
  EXPECT_EQ(vocab->eos_id(), 1);
  EXPECT_EQ(vocab->bos_id(), 2);
  EXPECT_EQ(vocab->unk_id(), 3);
  EXPECT_THAT(vocab->end_ids(), ElementsAre(1, 4, 5));
  EXPECT_THAT(vocab->suppressed_ids(), ElementsAre(6));
  parts.eos_id = 4;
  parts.end_ids = {6, -1, 4};
  vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->eos_id(), 4);
  EXPECT_THAT(vocab->end_ids(), ElementsAre(4, 1, 5, 6));
}

TEST(VocabTest, RolesThatNobodyHasAreMinusOne) {
  const auto vocab = Vocab::FromParts(SmallParts());
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->bos_id(), -1);
  EXPECT_EQ(vocab->eos_id(), -1);
  EXPECT_EQ(vocab->pad_id(), -1);
  EXPECT_TRUE(vocab->end_ids().empty());
}

TEST(VocabTest, MergesHaveRanksAndTexts) {
  const auto vocab = Vocab::FromParts(SmallParts());
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->FindMerge(2, 3), 0);
  EXPECT_EQ(vocab->FindMerge(5, 4), 1);
  EXPECT_EQ(vocab->FindMerge(3, 2), -1);
  EXPECT_EQ(vocab->merges()[1].merged, 8);
  EXPECT_THAT(vocab->MergeTexts(),
              ElementsAre("a b", "ab \xe2\x96\x81", "\xe2\x96\x81 ab\xe2\x96\x81"));
}

TEST(VocabTest, OfARepeatedMergeTheLastCounts) {
  VocabParts parts = SmallParts();
  parts.merges.push_back(parts.merges[0]);
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->FindMerge(2, 3), 3);
  EXPECT_EQ(vocab->merges().size(), 4u);
}

TEST(VocabTest, NoMergeLeadsToASpecialOrByteToken) {
  VocabParts parts = SmallParts();
  parts.texts = {"<unk>", "<|tur", "n>", "<|turn>", "<0x0", "A>", "<0x0A>"};
  parts.kinds.assign(parts.texts.size(), TokenKind::kNormal);
  parts.merges = {{"<|tur", "n>"}, {"<0x0", "A>"}};
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->FindMerge(1, 2), -1);
  EXPECT_EQ(vocab->FindMerge(4, 5), -1);
  EXPECT_THAT(vocab->MergeTexts(), ElementsAre("<|tur n>", "<0x0 A>"));
}

TEST(VocabTest, RefusesBadTokens) {
  VocabParts parts = SmallParts();
  parts.texts[5] = "";
  EXPECT_EQ(MessageOf(parts), "f: tokens[5]: an empty text, wanted at least one byte");
  parts.texts[5] = "a";
  EXPECT_EQ(MessageOf(parts), "f: tokens[5]: \"a\", the text of token 2, wanted a text of its own");
  parts.texts[5] = "\xff";
  EXPECT_EQ(MessageOf(parts), "f: tokens[5]: bytes that are not UTF-8, wanted UTF-8");
  const std::string longest(Vocab::kMaxTokenBytes, 'x');
  const std::string longer = longest + "x";
  parts.texts[5] = longer;
  EXPECT_EQ(MessageOf(parts), "f: tokens[5]: 1025 bytes, wanted at most 1024");
  parts.merges.clear();
  parts.texts[5] = longest;
  EXPECT_EQ(MessageOf(parts), "ok");
  parts.kinds[5] = TokenKind::kByte;
  parts.texts[5] = "<0x0a>";
  EXPECT_EQ(MessageOf(parts),
            "f: tokens[5]: \"<0x0a>\" with the type of a byte, wanted a text like \"<0x0A>\"");
  parts.texts.clear();
  parts.kinds.clear();
  EXPECT_EQ(MessageOf(parts), "f: tokens: 0 tokens, wanted 1 to 1048576");
}

TEST(VocabTest, NeedsBytesOrAnUnknownToken) {
  VocabParts parts = SmallParts();
  parts.texts[0] = "u";
  EXPECT_EQ(MessageOf(parts),
            "f: tokens: no token \"<0x00>\", wanted all 256 byte tokens, or an unknown token");
  parts.unk_id = 0;
  EXPECT_EQ(MessageOf(parts), "ok");
}

TEST(VocabTest, RefusesMergesOfUnknownTokens) {
  VocabParts parts = SmallParts();
  parts.merges.push_back({"a", "\n"});
  EXPECT_EQ(MessageOf(parts),
            "f: merges[3]: \"\\n\", which is no token, wanted two tokens that joined are a token");
  parts.merges.back() = {"b", "a"};
  EXPECT_EQ(MessageOf(parts),
            "f: merges[3]: \"ba\", which is no token, wanted two tokens that joined are a token");
}

TEST(VocabTest, SplitsMergeLinesAtTheFirstSpaceAfterTheFirstByte) {
  using Pair = std::pair<std::string_view, std::string_view>;
  EXPECT_EQ(SplitMerge("a b"), Pair("a", "b"));
  EXPECT_EQ(SplitMerge("\n\n \n"), Pair("\n\n", "\n"));
  EXPECT_EQ(SplitMerge("  b"), Pair(" ", "b"));
  EXPECT_EQ(SplitMerge("a b c"), Pair("a", "b c"));
  for (const std::string_view bad : {"", " ", "a", " a", "a "}) {
    EXPECT_EQ(SplitMerge(bad), std::nullopt) << bad;
  }
}

TEST(VocabTest, CopiesAndMovesKeepTheTexts) {
  auto vocab = Vocab::FromParts(SmallParts());
  ASSERT_TRUE(vocab.ok());
  const Vocab copy = *vocab;
  const Vocab moved = *std::move(vocab);
  EXPECT_EQ(copy.text(5), "ab");
  EXPECT_EQ(moved.Find("ab"), 5);
}

TEST(VocabDeathTest, AnIdOutOfRangeIsABug) {
  const Vocab& vocab = testing::TinyVocab();
  EXPECT_DEATH((void)vocab.text(-1), "CHECK failed");
  EXPECT_DEATH((void)vocab.bytes(vocab.size()), "CHECK failed");
}

}  // namespace
}  // namespace facet
