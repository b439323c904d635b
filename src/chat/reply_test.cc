// SPDX-License-Identifier: Apache-2.0
#include "chat/reply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/json.h"
#include "support/testing.h"
#include "text/test_vocabs.h"
#include "text/tokenizer.h"

namespace facet {
namespace {

using Kind = ReplyDelta::Kind;
using testing::JsonLinesOrDie;
using testing::RealVocab;
using testing::TestdataPath;
using testing::TinyVocab;

/// A token as the model gave it: its id, and the bytes where the id does not say them.
struct Token {
  int id;
  std::string bytes;
};

/// All deltas of a reply, joined.
struct Reply {
  std::string content;
  std::string thought;
  std::vector<std::string> calls;

  bool operator==(const Reply&) const = default;
};

void Add(Reply& reply, const std::vector<ReplyDelta>& deltas) {
  for (const ReplyDelta& delta : deltas) {
    EXPECT_TRUE(IsValidUtf8(delta.text));
    if (delta.kind == Kind::kCall) {
      reply.calls.push_back(delta.text);
    } else {
      EXPECT_FALSE(delta.text.empty());
      (delta.kind == Kind::kContent ? reply.content : reply.thought) += delta.text;
    }
  }
}

Reply Split(const Vocab& vocab, const std::vector<Token>& tokens, bool in_thought = false) {
  ReplySplitter splitter(vocab, in_thought);
  Reply reply;
  for (const Token& token : tokens) {
    Add(reply, splitter.Push(token.id, token.bytes));
  }
  Add(reply, splitter.Finish());
  return reply;
}

/// Marks by their text, and other text as one token of the tiny vocabulary: the splitter asks no
/// more of ordinary tokens than not to be special.
std::vector<Token> Tokens(std::initializer_list<std::string_view> pieces) {
  const int ordinary = *TinyVocab().Find("a");
  std::vector<Token> tokens;
  for (const std::string_view piece : pieces) {
    const std::optional<int> id = TinyVocab().Find(piece);
    if (id && TinyVocab().is_special(*id)) {
      tokens.push_back({*id, std::string(piece)});
    } else {
      tokens.push_back({ordinary, std::string(piece)});
    }
  }
  return tokens;
}

Reply SplitPieces(std::initializer_list<std::string_view> pieces, bool in_thought = false) {
  return Split(TinyVocab(), Tokens(pieces), in_thought);
}

/// The tokens of a row of reply_cases.jsonl in the tiny vocabulary.
std::vector<Token> CaseTokens(const Json& row) {
  std::vector<Token> tokens;
  for (const Json& token : row["tokens"].items()) {
    if (token.contains("c")) {
      tokens.push_back({*TinyVocab().Find(token["c"].as_string()), token["c"].as_string()});
    } else if (token.contains("b")) {
      const int byte = std::stoi(token["b"].as_string(), nullptr, 16);
      tokens.push_back({TinyVocab().byte_id(static_cast<uint8_t>(byte)),
                        std::string(1, static_cast<char>(byte))});
    } else {
      tokens.push_back({*TinyVocab().Find("a"), token.as_string()});
    }
  }
  return tokens;
}

/// Rows whose calls become content: of a cut call, or where no tools were offered. That is for the
/// parser of calls, which knows what makes a whole call.
bool NeedsCallParser(const Json& row) {
  static const std::set<std::string> kIds = {"P39", "N06", "N16"};
  return kIds.count(row["id"].as_string()) > 0;
}

void ExpectContentAndThought(const Json& row, const Reply& reply) {
  EXPECT_EQ(reply.content, row["expect"]["content"].as_string()) << row["id"].as_string();
  EXPECT_EQ(reply.thought, row["expect"]["reasoning"].as_string()) << row["id"].as_string();
  EXPECT_EQ(reply.calls.size(), row["expect"]["tool_calls"].items().size())
      << row["id"].as_string();
}

TEST(ReplyCases, ContentThoughtAndNumberOfCalls) {
  int n_exact_text = 0;
  int n_with_calls = 0;
  int n_left = 0;
  for (const Json& row : JsonLinesOrDie(TestdataPath("reply/reply_cases.jsonl"))) {
    if (NeedsCallParser(row)) {
      ++n_left;
      continue;
    }
    const bool has_calls = !row["expect"]["tool_calls"].items().empty();
    n_with_calls += has_calls ? 1 : 0;
    n_exact_text += !has_calls && row["level"].as_string() == "exact" ? 1 : 0;
    ExpectContentAndThought(
        row, Split(TinyVocab(), CaseTokens(row), row["start"].as_string() == "thought"));
  }
  EXPECT_EQ(n_exact_text, 8);   // complete here
  EXPECT_EQ(n_with_calls, 35);  // names and arguments are left to the parser of calls
  EXPECT_EQ(n_left, 3);         // left to it altogether
}

TEST(ReplyCases, IdsOfTheRealVocabulary) {
  if (RealVocab() == nullptr) {
    GTEST_SKIP() << testing::kNoShared;
  }
  for (const Json& row : JsonLinesOrDie(TestdataPath("reply/reply_cases.jsonl"))) {
    std::vector<Token> tokens;
    for (const Json& id : row["ids"].items()) {
      const int token = static_cast<int>(id.as_int());
      tokens.push_back({token, std::string(RealVocab()->bytes(token))});
    }
    const bool in_thought = row["start"].as_string() == "thought";
    const Reply reply = Split(*RealVocab(), tokens, in_thought);
    EXPECT_EQ(reply, Split(TinyVocab(), CaseTokens(row), in_thought)) << row["id"].as_string();
  }
}

TEST(ReplyCases, CallTextIsAllThatStandsBetweenTheMarks) {
  const auto rows = JsonLinesOrDie(TestdataPath("reply/reply_cases.jsonl"));
  const auto calls = [&](std::string_view id) {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Json& r) { return r["id"].as_string() == id; });
    return Split(TinyVocab(), CaseTokens(*row)).calls;
  };
  EXPECT_EQ(calls("P01"), std::vector<std::string>{"call:get_time{zone:<|\"|>Europe/Oslo<|\"|>}"});
  EXPECT_EQ(calls("N04"),
            std::vector<std::string>{"call:doc{t:<|\"|>use call:f{x:1} or <|tool_call>call:g{}"
                                     "<tool_call|>, k:2<|\"|>,n:1}"});
  EXPECT_EQ(calls("N05"), (std::vector<std::string>{"call:a{}", "call:b{n:1}"}));
  EXPECT_EQ(calls("N14"), std::vector<std::string>{"call:f{a:<|\"|>x😀y<|\"|>}"});
  EXPECT_EQ(calls("P39"),
            std::vector<std::string>{"call:write{path:<|\"|>a.txt<|\"|>,text:<|\"|>half"});
}

TEST(ReplyCases, SlipsNeverLeakMarkupOrBreakCharacters) {
  constexpr std::string_view kMarks[] = {"<|channel>",      "<channel|>", "<|tool_call>",
                                         "<tool_call|>",    "<|turn>",    "<turn|>",
                                         "<|tool_response>"};
  const auto expect_clean = [&](const std::string& id, const std::vector<Token>& tokens) {
    const Reply reply = Split(TinyVocab(), tokens);
    for (const std::string_view mark : kMarks) {
      EXPECT_EQ((reply.content + reply.thought).find(mark), std::string::npos) << id;
    }
  };
  for (const Json& row : JsonLinesOrDie(TestdataPath("reply/reply_cases.jsonl"))) {
    const std::string& id = row["id"].as_string();
    if (id == "N04") {
      continue;  // has marks as ordinary text
    }
    const std::vector<Token> tokens = CaseTokens(row);
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::vector<Token> slip = tokens;
      slip.erase(slip.begin() + static_cast<ptrdiff_t>(i));
      expect_clean(id, slip);
      slip = tokens;
      slip.insert(slip.begin() + static_cast<ptrdiff_t>(i), tokens[i]);
      expect_clean(id, slip);
      slip = tokens;
      std::swap(slip[i], slip[(i + 1) % slip.size()]);
      expect_clean(id, slip);
    }
  }
}

TEST(ReplySplitterTest, HandsOutTextAsItComes) {
  ReplySplitter splitter(TinyVocab(), false);
  const int ordinary = *TinyVocab().Find("a");
  using Deltas = std::vector<ReplyDelta>;
  EXPECT_EQ(splitter.Push(ordinary, "Fo"), (Deltas{{Kind::kContent, "Fo"}}));
  EXPECT_EQ(splitter.Push(ordinary, "ur "), (Deltas{{Kind::kContent, "ur "}}));
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<|channel>"), ""), Deltas{});
  EXPECT_EQ(splitter.Push(ordinary, "thou"), Deltas{});
  EXPECT_EQ(splitter.Push(ordinary, "ght\nI "), (Deltas{{Kind::kThought, "I"}}));
  EXPECT_EQ(splitter.Push(ordinary, "see"), (Deltas{{Kind::kThought, " see"}}));
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<|tool_call>"), ""), Deltas{});
  EXPECT_EQ(splitter.Push(ordinary, "call:f{}"), Deltas{});
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<tool_call|>"), ""),
            (Deltas{{Kind::kCall, "call:f{}"}}));
  EXPECT_EQ(splitter.Push(ordinary, "more\n"), (Deltas{{Kind::kThought, "more"}}));
  EXPECT_EQ(splitter.Finish(), Deltas{});
}

TEST(ReplySplitterTest, HoldsACharacterUntilItIsWhole) {
  ReplySplitter splitter(TinyVocab(), false);
  const auto byte = [&](uint8_t value) {
    return splitter.Push(TinyVocab().byte_id(value), std::string(1, static_cast<char>(value)));
  };
  using Deltas = std::vector<ReplyDelta>;
  EXPECT_EQ(byte(0xF0), Deltas{});
  EXPECT_EQ(byte(0x9F), Deltas{});
  EXPECT_EQ(byte(0x98), Deltas{});
  EXPECT_EQ(byte(0x80), (Deltas{{Kind::kContent, "😀"}}));
  EXPECT_EQ(byte(0xE2), Deltas{});
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<|channel>"), ""),
            (Deltas{{Kind::kContent, "\xEF\xBF\xBD"}}));
  EXPECT_EQ(byte(0xC3), Deltas{});
  EXPECT_EQ(splitter.Finish(), (Deltas{{Kind::kThought, "\xEF\xBF\xBD"}}));
}

TEST(ReplySplitterTest, ToleratesSlipsInThoughts) {
  const Reply ok = {"ok", "hm", {}};
  EXPECT_EQ(SplitPieces({"<|channel>", "thought\n", "hm\n", "<channel|>", "ok"}), ok);
  EXPECT_EQ(SplitPieces({"<|channel>", "hm", "<channel|>", "ok"}), ok);
  EXPECT_EQ(SplitPieces({"<|channel>", "thought", "<channel|>", "ok"}), (Reply{"ok", "", {}}));
  EXPECT_EQ(SplitPieces({"<|channel>", "<|channel>", "thought\nhm", "<channel|>", "ok"}), ok);
  EXPECT_EQ(SplitPieces({"<|channel>", "<channel|>", "<channel|>", "ok"}), (Reply{"ok", "", {}}));
  EXPECT_EQ(SplitPieces({"<|channel>", "thoughtful", "<channel|>", "ok"}),
            (Reply{"ok", "thoughtful", {}}));
  EXPECT_EQ(SplitPieces({"<|channel>", "thou", "<channel|>", "ok"}), (Reply{"ok", "thou", {}}));
  EXPECT_EQ(SplitPieces({"<|channel>", "thought\nh", "<|channel>", "thought\nm"}),
            (Reply{"", "hm", {}}));
}

TEST(ReplySplitterTest, ToleratesSlipsInCalls) {
  EXPECT_EQ(SplitPieces({"<|tool_call>", "call:a{}", "<|tool_call>", "call:b{}"}),
            (Reply{"", "", {"call:a{}", "call:b{}"}}));
  EXPECT_EQ(SplitPieces({"x", "<tool_call|>", "y", "<|tool_call>", "<tool_call|>"}),
            (Reply{"xy", "", {""}}));
  EXPECT_EQ(SplitPieces({"<|tool_call>", "call:a{", "<|channel>", "hm", "<channel|>", "ok"}),
            (Reply{"ok", "hm", {"call:a{"}}));
  EXPECT_EQ(SplitPieces({"<|tool_call>", "call:a{}", "<|tool_response>", "x"}),
            (Reply{"x", "", {"call:a{}"}}));
  // The thought around a call goes on after it, unless it was closed within.
  EXPECT_EQ(SplitPieces({"<|channel>", "h", "<|tool_call>", "c", "<tool_call|>", "m"}),
            (Reply{"", "hm", {"c"}}));
  EXPECT_EQ(
      SplitPieces({"<|channel>", "hm", "<|tool_call>", "c", "<channel|>", "<tool_call|>", "ok"}),
      (Reply{"ok", "hm", {"c"}}));
}

TEST(ReplySplitterTest, DropsTurnHeaders) {
  EXPECT_EQ(SplitPieces({"<|turn>", "mod", "el\nHi", "<turn|>", "\n", "<|turn>", "model\n"}),
            (Reply{"Hi\n", "", {}}));
  EXPECT_EQ(SplitPieces({"<|turn>", "models"}), (Reply{"models", "", {}}));
  EXPECT_EQ(SplitPieces({"<|channel>", "hm", "<turn|>", "ok"}), (Reply{"ok", "hm", {}}));
}

TEST(ReplySplitterTest, WhiteSpace) {
  EXPECT_EQ(SplitPieces({" ", "\n"}), Reply{});
  EXPECT_EQ(SplitPieces({" ", "\na", " ", "\n"}), (Reply{" \na \n", "", {}}));
  EXPECT_EQ(SplitPieces({"<|channel>", "thought\n", " \n", "a", "\n", " b\n ", "<channel|>"}),
            (Reply{"", "a\n b", {}}));
}

TEST(ReplySplitterTest, WorksWithoutMarksInTheVocabulary) {
  VocabParts parts;
  parts.tokens_name = "tokens";
  parts.merges_name = "merges";
  parts.texts = {"<unk>", "a", "b"};
  parts.kinds = {TokenKind::kUnknown, TokenKind::kNormal, TokenKind::kNormal};
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok()) << vocab.error().Message();
  EXPECT_EQ(Split(*vocab, {{1, "a"}, {2, "<|channel>"}, {2, "b"}}),
            (Reply{"a<|channel>b", "", {}}));
  EXPECT_FALSE(EndsInOpenThought(*vocab, std::vector<int>{1, 2}));
}

TEST(ReplySplitterTest, TimeIsLinearInTheReply) {
  std::vector<Token> tokens = Tokens({"<|channel>"});
  tokens.resize(200'000, {*TinyVocab().Find("a"), " "});
  tokens.push_back({*TinyVocab().Find("a"), "x"});
  const Reply reply = Split(TinyVocab(), tokens);
  EXPECT_EQ(reply.thought, "x");
  tokens.insert(tokens.begin() + 1, {*TinyVocab().Find("a"), "y"});
  EXPECT_EQ(Split(TinyVocab(), tokens).thought.size(), 200'001u);
}

TEST(EndsInOpenThoughtTest, LooksAtTheLastMark) {
  const Tokenizer tokenizer(&TinyVocab());
  const auto ends_open = [&](std::string_view prompt) {
    return EndsInOpenThought(TinyVocab(), tokenizer.Encode(prompt, true));
  };
  EXPECT_FALSE(ends_open(""));
  EXPECT_FALSE(ends_open("<bos><|turn>user\nHi<turn|>\n<|turn>model\n"));
  EXPECT_FALSE(ends_open("<bos><|turn>model\n<|channel>thought\n<channel|>"));
  EXPECT_TRUE(ends_open("<bos><|turn>model\n<|channel>"));
  EXPECT_TRUE(ends_open("<bos><|turn>model\n<|channel>thought\n"));
  EXPECT_TRUE(ends_open("<tool_response|><|channel>thought\nSo far"));
  EXPECT_FALSE(ends_open("<|channel>thought\n<|tool_call>call:f{}<tool_call|><|tool_response>"));
  const std::vector<int> typed = tokenizer.Encode("<|channel>thought\n", false);
  EXPECT_FALSE(EndsInOpenThought(TinyVocab(), typed));
}

// Statements of testdata/reports.md, by number.

TEST(Reports, N15_AnotherFamilysTurnMarkerIsText) {
  EXPECT_EQ(SplitPieces({"It ends with <", "end_of_turn", "> or </s>", " there."}),
            (Reply{"It ends with <end_of_turn> or </s> there.", "", {}}));
}

TEST(Reports, N31_SurplusClosersAndHalfAnOpenerReachNobody) {
  EXPECT_EQ(SplitPieces({"ok", "<channel|>", "<tool_call|>", "<|channel>"}), (Reply{"ok", "", {}}));
}

TEST(Reports, N36_ProseAndCodeAreNoCalls) {
  EXPECT_EQ(SplitPieces({"```\n", "<|tool_", "call>call:f{}<tool_call|>\n```"}),
            (Reply{"```\n<|tool_call>call:f{}<tool_call|>\n```", "", {}}));
}

TEST(Reports, N38_ContentIsFreeOfMarkers) {
  EXPECT_EQ(SplitPieces({"<|channel>", "thought\n", "Easy.\n", "<channel|>", "Four."}),
            (Reply{"Four.", "Easy.", {}}));
}

TEST(Reports, N39_APromptInAThoughtStartsTheReplyAsReasoning) {
  const Reply reply = {"It is 7.", "It is seven.", {}};
  EXPECT_EQ(SplitPieces({"It is ", "seven.\n", "<channel|>", "It is 7."}, true), reply);
  EXPECT_EQ(SplitPieces({"thought\n", "It is seven.", "<channel|>", "It is 7."}, true), reply);
}

TEST(Reports, N49_TokensThatEndAReplyAreNotPartOfIt) {
  const std::vector<int>& ends = TinyVocab().end_ids();
  for (const std::string_view end : {"<eos>", "<turn|>", "<|tool_response>"}) {
    EXPECT_EQ(SplitPieces({"ok", end}), (Reply{"ok", "", {}}));
    EXPECT_EQ(std::count(ends.begin(), ends.end(), *TinyVocab().Find(end)), 1) << end;
  }
}

}  // namespace
}  // namespace facet
