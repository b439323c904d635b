// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/test_vocabs.h"

namespace facet {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<int> IdsOf(const Json& array) {
  std::vector<int> ids;
  for (const Json& id : array.items()) {
    ids.push_back(static_cast<int>(id.as_int()));
  }
  return ids;
}

std::string DecodeBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = (bits << 6) | static_cast<uint32_t>(kDigits.find(c));
    n_bits += 6;
    if (n_bits >= 8) {
      n_bits -= 8;
      bytes.push_back(static_cast<char>((bits >> n_bits) & 0xFFu));
    }
  }
  return bytes;
}

/// The generator of the long texts (testdata/tokenizer/README.md).
std::vector<uint32_t> PseudoWords(uint32_t seed, size_t n) {
  std::vector<uint32_t> values;
  uint32_t state = seed;
  for (size_t i = 0; i < n; ++i) {
    state = (state * 1103515245u + 12345u) & 0x7FFFFFFFu;
    values.push_back(state >> 8);
  }
  return values;
}

std::string Repeated(std::string_view text, size_t n) {
  std::string repeated;
  for (size_t i = 0; i < n; ++i) {
    repeated += text;
  }
  return repeated;
}

std::string LongAlnum() {
  std::string text;
  for (const uint32_t value : PseudoWords(1, 20000)) {
    text.push_back("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[value % 62]);
  }
  return text;
}

std::string Cjk(uint32_t seed, size_t n) {
  std::string text;
  for (const uint32_t value : PseudoWords(seed, n)) {
    AppendUtf8(text, 0x4E00 + value % 0x5000);
  }
  return text;
}

std::string LongSyllables() {
  const char* syllables[] = {"ka", "ro", "mi", "ten", "lo", "su", "bra", "vi",
                             "ng", "or", "th", "e",   "an", "qu", "is"};
  const char* separators[] = {" ", " ", " ", " ", ", ", ". ", "\n", "\n\n", "  ", "-"};
  const std::vector<uint32_t> values = PseudoWords(3, 400000);
  std::string text;
  size_t i = 0;
  while (text.size() < 102400) {
    const uint32_t n = 1 + values[i++] % 4;
    for (uint32_t k = 0; k < n; ++k) {
      text += syllables[values[i++] % 15];
    }
    text += separators[values[i++] % 10];
  }
  return text;
}

/// The texts of four groups joined by newlines, again and again until there are 100000 characters.
std::string LongMixed(const std::vector<Json>& rows) {
  std::string base;
  for (const Json& row : rows) {
    const std::string& group = row["group"].as_string();
    if (group == "code" || group == "cjk" || group == "emoji" || group == "mixed") {
      base += (base.empty() ? "" : "\n") + row["text"].as_string();
    }
  }
  return Repeated(base, 1 + 100000 / CountCodePoints(base));
}

std::string LongText(const std::string& name, const std::vector<Json>& rows) {
  if (name == "word_20000_a") {
    return std::string(20000, 'a');
  }
  if (name == "word_20000_alnum") {
    return LongAlnum();
  }
  if (name == "word_20000_cjk") {
    return Cjk(2, 20000);
  }
  if (name == "spaces_5000") {
    return std::string(5000, ' ');
  }
  if (name == "newlines_5000") {
    return std::string(5000, '\n');
  }
  if (name == "emoji_2000") {
    return Repeated("\U0001f469\u200d\U0001f680", 2000);
  }
  if (name == "specials_3000") {
    return Repeated("<|turn>x<turn|>", 3000);
  }
  return name == "text_100k" ? LongSyllables() : LongMixed(rows);
}

/// FNV-1a over values as four little-endian bytes each, as 16 hexadecimal digits.
template <typename Values>
std::string Fnv1a(const Values& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const auto value : values) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((static_cast<uint32_t>(value) >> shift) & 0xFFu)) * 0x100000001b3u;
    }
  }
  std::string digits(16, '0');
  for (size_t i = 0; i < 16; ++i) {
    digits[15 - i] = "0123456789abcdef"[(hash >> (4 * i)) & 0xFu];
  }
  return digits;
}

std::vector<char32_t> CodePoints(std::string_view text) {
  std::vector<char32_t> points;
  while (!text.empty()) {
    const Utf8Step step = DecodeUtf8(text);
    points.push_back(step.character);
    text.remove_prefix(static_cast<size_t>(step.size));
  }
  return points;
}

void CheckLong(const Vocab& vocab, const Json& row, const std::string& text) {
  const Tokenizer tokenizer(&vocab);
  ASSERT_EQ(Fnv1a(CodePoints(text)), row["text_fnv1a64"].as_string())
      << "the test's copy of the text";
  const std::vector<int> ids = tokenizer.Encode(text, true);
  EXPECT_EQ(static_cast<int64_t>(ids.size()), row["count"].as_int());
  EXPECT_EQ(Fnv1a(ids), row["fnv1a64"].as_string());
  EXPECT_EQ(Decode(vocab, ids, false) == text, row["roundtrip"].as_bool());
  const std::vector<int> plain = tokenizer.Encode(text, false);
  const Json& wanted = row.contains("fnv1a64_plain") ? row["fnv1a64_plain"] : row["fnv1a64"];
  EXPECT_EQ(Fnv1a(plain), wanted.as_string());
}

void CheckVectors(const Vocab& vocab, const std::string& file, size_t n_rows) {
  const Tokenizer tokenizer(&vocab);
  const std::vector<Json> rows = testing::JsonLinesOrDie(testing::TestdataPath(file));
  EXPECT_EQ(rows.size(), n_rows);
  for (const Json& row : rows) {
    SCOPED_TRACE(row["id"].as_string());
    if (row["group"].as_string() == "long") {
      CheckLong(vocab, row, LongText(row["name"].as_string(), rows));
      continue;
    }
    const std::string& text = row["text"].as_string();
    const std::string input =
        row.contains("bytes_b64") ? DecodeBase64(row["bytes_b64"].as_string()) : text;
    const std::vector<int> wanted = IdsOf(row["ids"]);
    const std::vector<int> ids = tokenizer.Encode(input, true);
    EXPECT_THAT(ids, ElementsAreArray(wanted));
    const std::vector<int> plain = tokenizer.Encode(input, false);
    EXPECT_THAT(plain,
                ElementsAreArray(row.contains("ids_plain") ? IdsOf(row["ids_plain"]) : wanted));
    const std::string decoded = row.contains("decoded") ? row["decoded"].as_string() : text;
    EXPECT_EQ(Decode(vocab, ids, false), decoded);
    EXPECT_EQ(Decode(vocab, ids, true),
              row.contains("decoded_skip") ? row["decoded_skip"].as_string() : decoded);
    for (const int id : plain) {
      EXPECT_FALSE(vocab.is_special(id));
    }
  }
}

TEST(TokenizerTest, EqualsTheReferenceOnTheTinyVocabulary) {
  CheckVectors(testing::TinyVocab(), "tokenizer/vectors_tiny.jsonl", 151);
}

TEST(TokenizerTest, EqualsTheReferenceOnTheRealVocabulary) {
  if (testing::RealVocab() == nullptr) {
    GTEST_SKIP() << testing::kNoShared;
  }
  CheckVectors(*testing::RealVocab(), "tokenizer/vectors.jsonl", 400);
}

/// Where `foreign` stands in a prompt at or after `position` as the template places such strings:
/// at the beginning of a turn, or behind a quote.
size_t FindForeign(const std::string& rendered, const std::string& foreign, size_t position) {
  size_t first = std::string::npos;
  for (const std::string_view before : {"user\n", "system\n", "tool\n", "<|\"|>"}) {
    const size_t found = rendered.find(std::string(before) + foreign, position);
    if (found != std::string::npos) {
      first = std::min(first, found + before.size());
    }
  }
  return first;
}

/// A prompt cut into what the template wrote and what came from outside.
std::vector<TextRun> SplitAtForeign(const std::string& rendered,
                                    const std::vector<std::string>& foreign) {
  std::vector<TextRun> runs;
  size_t position = 0;
  while (true) {
    size_t begin = std::string::npos;
    size_t size = 0;
    for (const std::string& text : foreign) {
      const size_t found = FindForeign(rendered, text, position);
      if (found < begin) {
        begin = found;
        size = text.size();
      }
    }
    if (begin == std::string::npos) {
      runs.push_back({rendered.substr(position), true});
      return runs;
    }
    runs.push_back({rendered.substr(position, begin - position), true});
    runs.push_back({rendered.substr(begin, size), false});
    position = begin + size;
  }
}

/// The strings with markup in them, wherever they stand in the messages and tools.
void CollectForeign(const Json& json, std::vector<std::string>& foreign) {
  if (json.is_string() && json.as_string().find_first_of("<|") != std::string::npos) {
    foreign.push_back(json.as_string());
  }
  for (const Json& item : json.items()) {
    CollectForeign(item, foreign);
  }
  for (const auto& [key, value] : json.members()) {
    CollectForeign(value, foreign);
  }
}

TEST(TokenizerTest, ForgedControlTokensStayText) {
  const Vocab* vocab = testing::RealVocab();
  if (vocab == nullptr) {
    GTEST_SKIP() << testing::kNoShared;
  }
  const Tokenizer tokenizer(vocab);
  const auto rows = testing::JsonLinesOrDie(testing::TestdataPath("tokenizer/chat_safe.jsonl"));
  EXPECT_EQ(rows.size(), 15u);
  for (const Json& row : rows) {
    SCOPED_TRACE(row["id"].as_string());
    std::vector<std::string> foreign;
    CollectForeign(row["messages"], foreign);
    CollectForeign(row["tools"], foreign);
    const std::string& rendered = row["rendered"].as_string();
    const std::vector<int> ids = tokenizer.Encode(SplitAtForeign(rendered, foreign));
    std::vector<int> special;
    for (const int id : ids) {
      if (vocab->is_special(id)) {
        special.push_back(id);
      }
    }
    EXPECT_THAT(special, ElementsAreArray(IdsOf(row["control_ids"])));
    EXPECT_EQ(Decode(*vocab, ids, false), rendered);
    if (!row["unsafe_ids_differ"].as_bool()) {
      EXPECT_THAT(ids, ElementsAreArray(IdsOf(row["ids"])));
    }
  }
}

std::vector<int> EncodeRuns(const Tokenizer& tokenizer, const std::vector<TextRun>& runs) {
  return tokenizer.Encode(runs);
}

TEST(TokenizerTest, RunsAreOneText) {
  const Vocab& vocab = testing::TinyVocab();
  const Tokenizer tokenizer(&vocab);
  const std::string text = "<|turn>user\nthe question<turn|>\n\n  what is it?";
  const std::vector<int> whole = tokenizer.Encode(text, true);
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      const std::vector<TextRun> runs = {
          {text.substr(0, i), true}, {text.substr(i, j - i), true}, {text.substr(j), true}};
      ASSERT_EQ(tokenizer.Encode(runs), whole) << i << " " << j;
    }
  }
  const size_t user = text.find("the question");
  EXPECT_EQ(EncodeRuns(tokenizer, {{text.substr(0, user), true},
                                   {"the question", false},
                                   {text.substr(user + 12), true}}),
            whole);
  EXPECT_TRUE(EncodeRuns(tokenizer, {}).empty());
  EXPECT_TRUE(EncodeRuns(tokenizer, {{"", true}, {"", false}}).empty());
}

TEST(TokenizerTest, ASpecialTokenNeedsAllOfItsBytesInRunsThatAllowIt) {
  const Vocab& vocab = testing::TinyVocab();
  const Tokenizer tokenizer(&vocab);
  const std::string marker = "<|turn>";
  const std::vector<int> as_text = tokenizer.Encode(marker, false);
  EXPECT_THAT(tokenizer.Encode(marker, true), ElementsAre(15));
  EXPECT_GT(as_text.size(), 1u);
  for (size_t i = 0; i <= marker.size(); ++i) {
    const std::string begin = marker.substr(0, i);
    const std::string end = marker.substr(i);
    EXPECT_THAT(EncodeRuns(tokenizer, {{begin, true}, {end, true}}), ElementsAre(15));
    EXPECT_EQ(EncodeRuns(tokenizer, {{begin, false}, {end, false}}), as_text);
    if (i > 0 && i < marker.size()) {
      EXPECT_EQ(EncodeRuns(tokenizer, {{begin, true}, {end, false}}), as_text);
      EXPECT_EQ(EncodeRuns(tokenizer, {{begin, false}, {end, true}}), as_text);
      EXPECT_EQ(EncodeRuns(tokenizer, {{begin, true}, {"", false}, {end, true}}), as_text)
          << "an empty run is a border";
    }
  }
}

TEST(TokenizerTest, BrokenUtf8IsRepairedRunByRun) {
  const Tokenizer tokenizer(&testing::TinyVocab());
  EXPECT_EQ(tokenizer.Encode("a\xff"
                             "b\xe4\xbd",
                             true),
            tokenizer.Encode("a\ufffdb\ufffd", true));
  EXPECT_EQ(EncodeRuns(tokenizer, {{"a\xff", true}, {"b\xe4", false}}),
            tokenizer.Encode("a\ufffdb\ufffd", true));
}

TEST(TokenizerTest, NoTextBecomesASpecialTokenEvenWhereAFileWantsIt) {
  VocabParts parts;
  parts.texts = {"<unk>", "a", "b", "ab", "<0x41>"};
  parts.kinds = {TokenKind::kNormal, TokenKind::kControl, TokenKind::kNormal,
                 TokenKind::kUserDefined, TokenKind::kNormal};
  parts.merges = {{"a", "b"}};
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  const Tokenizer tokenizer(&*vocab);
  EXPECT_THAT(tokenizer.Encode("b", false), ElementsAre(2));
  EXPECT_THAT(tokenizer.Encode("ab", false), ElementsAre(0, 2))
      << "the letter a is a control token, so unknown as text";
  EXPECT_THAT(tokenizer.Encode("ab", true), ElementsAre(3));
  EXPECT_THAT(tokenizer.Encode("aab", true), ElementsAre(1, 3));
}

TEST(TokenizerTest, CharactersWithoutTokenOrBytesBecomeOneUnknown) {
  VocabParts parts;
  parts.texts = {"<unk>", "a", "<0x41>", "\xe2\x96\x81", "a\xe2\x96\x81"};
  parts.kinds.assign(parts.texts.size(), TokenKind::kNormal);
  parts.merges = {{"a", "\xe2\x96\x81"}};
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  const Tokenizer tokenizer(&*vocab);
  EXPECT_THAT(tokenizer.Encode("axya", false), ElementsAre(1, 0, 1));
  EXPECT_THAT(tokenizer.Encode("xAy\u4f60 ", false), ElementsAre(0, 2, 0, 3));
  EXPECT_THAT(tokenizer.Encode("a  ", false), ElementsAre(4, 3));
}

TEST(TokenizerTest, MergesGoByRankThenFromTheLeft) {
  VocabParts parts;
  parts.texts = {"<unk>", "a", "b", "aa", "ab", "aab", "aaaa"};
  parts.kinds.assign(parts.texts.size(), TokenKind::kNormal);
  parts.merges = {{"a", "b"}, {"a", "a"}, {"a", "ab"}, {"aa", "aa"}};
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok());
  const Tokenizer tokenizer(&*vocab);
  EXPECT_THAT(tokenizer.Encode("aab", false), ElementsAre(5));
  EXPECT_THAT(tokenizer.Encode("aaa", false), ElementsAre(3, 1));
  EXPECT_THAT(tokenizer.Encode("aaab", false), ElementsAre(3, 4));
  EXPECT_THAT(tokenizer.Encode("aaaaa", false), ElementsAre(6, 1));
}

/// Two megabytes without a place to split: the heap must carry it, without recursion.
void CheckTwoMegabytes(const Vocab& vocab) {
  const Tokenizer tokenizer(&vocab);
  constexpr size_t kSize = 2 << 20;
  const std::vector<int> letters = tokenizer.Encode(std::string(kSize, 'a'), true);
  const std::vector<int> fewer = tokenizer.Encode(std::string(kSize / 128, 'a'), true);
  EXPECT_EQ(letters.size(), 128 * fewer.size());
  EXPECT_EQ(Decode(vocab, letters, false), std::string(kSize, 'a'));
  const std::string cjk = Cjk(5, kSize / 3);
  const std::vector<int> ids = tokenizer.Encode(cjk, true);
  EXPECT_LE(ids.size(), cjk.size());
  EXPECT_EQ(Decode(vocab, ids, false), cjk);
}

TEST(TokenizerTest, TwoMegabytesOfOneStretchTiny) { CheckTwoMegabytes(testing::TinyVocab()); }

TEST(TokenizerTest, TwoMegabytesOfOneStretchReal) {
  if (testing::RealVocab() == nullptr) {
    GTEST_SKIP() << testing::kNoShared;
  }
  CheckTwoMegabytes(*testing::RealVocab());
}

}  // namespace
}  // namespace facet
