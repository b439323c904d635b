// SPDX-License-Identifier: Apache-2.0
#include "chat/reply.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chat/reply_testing.h"
#include "text/tokenizer.h"

namespace facet {
namespace {

using Kind = ReplyDelta::Kind;
using Deltas = std::vector<ReplyDelta>;
using Texts = std::vector<std::string>;
using testing::Message;
using testing::ReplyToken;
using testing::SplitTokens;
using testing::TinyVocab;
using testing::TokensOf;
using testing::TokensOfText;
using testing::ToolsNamed;

const Json& Tools() {
  static const Json tools = ToolsNamed({"f", "g", "find"});
  return tools;
}

Message SplitPieces(const Texts& pieces, bool in_thought = false) {
  return SplitTokens(TinyVocab(), TokensOf(pieces), Tools(), in_thought);
}

/// Of a reply with its marks written out.
Message Split(std::string_view text, const Json& tools = Tools()) {
  return SplitTokens(TinyVocab(), TokensOfText(text), tools);
}

void ExpectText(const Message& message, std::string_view content, std::string_view thought = "") {
  EXPECT_EQ(message.content, content);
  EXPECT_EQ(message.thought, thought);
  EXPECT_EQ(message.call_texts(), Texts{});
}

TEST(ReplySplitterTest, HandsOutTextAsItComes) {
  ReplySplitter splitter(TinyVocab(), Tools(), false);
  const int ordinary = *TinyVocab().Find("a");
  EXPECT_EQ(splitter.Push(ordinary, "Fo"), (Deltas{{Kind::kContent, "Fo"}}));
  EXPECT_EQ(splitter.Push(ordinary, "ur "), (Deltas{{Kind::kContent, "ur "}}));
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<|channel>"), ""), Deltas{});
  EXPECT_EQ(splitter.Push(ordinary, "thou"), Deltas{});
  EXPECT_EQ(splitter.Push(ordinary, "ght\nI "), (Deltas{{Kind::kThought, "I"}}));
  EXPECT_EQ(splitter.Push(ordinary, "see"), (Deltas{{Kind::kThought, " see"}}));
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<|tool_call>"), ""), Deltas{});
  EXPECT_EQ(splitter.Push(ordinary, "call:f{}"), Deltas{});
  EXPECT_EQ(splitter.n_calls(), 0);
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<tool_call|>"), ""),
            (Deltas{{Kind::kCall, "{}", "f", 0}}));
  EXPECT_EQ(splitter.n_calls(), 1);
  EXPECT_EQ(splitter.Push(ordinary, "more\n"), (Deltas{{Kind::kThought, "more"}}));
  EXPECT_EQ(splitter.Finish(), Deltas{});
}

TEST(ReplySplitterTest, HoldsACharacterUntilItIsWhole) {
  ReplySplitter splitter(TinyVocab(), Json(), false);
  const auto byte = [&](uint8_t value) {
    return splitter.Push(TinyVocab().byte_id(value), std::string(1, static_cast<char>(value)));
  };
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
  ExpectText(SplitPieces({"<|channel>", "thought\n", "hm\n", "<channel|>", "ok"}), "ok", "hm");
  ExpectText(SplitPieces({"<|channel>", "hm", "<channel|>", "ok"}), "ok", "hm");
  ExpectText(SplitPieces({"<|channel>", "thought", "<channel|>", "ok"}), "ok");
  ExpectText(SplitPieces({"<|channel>", "<|channel>", "thought\nhm", "<channel|>", "ok"}), "ok",
             "hm");
  ExpectText(SplitPieces({"<|channel>", "<channel|>", "<channel|>", "ok"}), "ok");
  ExpectText(SplitPieces({"<|channel>", "thoughtful", "<channel|>", "ok"}), "ok", "thoughtful");
  ExpectText(SplitPieces({"<|channel>", "thou", "<channel|>", "ok"}), "ok", "thou");
  ExpectText(SplitPieces({"<|channel>", "thought\nh", "<|channel>", "thought\nm"}), "", "hm");
}

TEST(ReplySplitterTest, ACallEndsWhereAnotherMarkBeginsSomethingNew) {
  const Message two = SplitPieces({"<|tool_call>", "call:f{}", "<|tool_call>", "call:g{}"});
  EXPECT_EQ(two.call_texts(), (Texts{"f{}", "g{}"}));
  EXPECT_EQ(two.n_repairs, 2);
  const Message cut = SplitPieces({"<|tool_call>", "call:f{", "<|channel>", "hm", "<channel|>"});
  ExpectText(cut, "call:f{", "hm");
  EXPECT_EQ(cut.n_parse_errors, 1);
  const Message ended = SplitPieces({"<|tool_call>", "call:f{}", "<|tool_response>", "x"});
  EXPECT_EQ(ended.call_texts(), Texts{"f{}"});
  EXPECT_EQ(ended.content, "x");
}

TEST(ReplySplitterTest, AThoughtGoesOnAfterACallUnlessClosedWithin) {
  const Message open =
      SplitPieces({"<|channel>", "h", "<|tool_call>", "call:f{}", "<tool_call|>", "m"});
  EXPECT_EQ(open.thought, "hm");
  EXPECT_EQ(open.call_texts(), Texts{"f{}"});
  const Message closed = SplitPieces(
      {"<|channel>", "hm", "<|tool_call>", "call:f{}", "<channel|>", "<tool_call|>", "ok"});
  EXPECT_EQ(closed.content, "ok");
  EXPECT_EQ(closed.thought, "hm");
  EXPECT_EQ(closed.call_texts(), Texts{"f{}"});
}

TEST(ReplySplitterTest, TextOfAThoughtStaysThere) {
  ExpectText(Split("<|channel>hm<|tool_call>well, <|tool_call>no<tool_call|> way<channel|>ok"),
             "ok", "hmwell, no way");
  ExpectText(Split("<|channel>hm<|tool_call>call:f{a:<channel|>ok"), "ok", "hmcall:f{a:");
  const Message rest = Split("<|channel>hm<|tool_call>call:f{}then<channel|>ok");
  EXPECT_EQ(rest.call_texts(), Texts{"f{}"});
  EXPECT_EQ(rest.thought, "hmthen");
  EXPECT_EQ(rest.content, "ok");
  ExpectText(Split("<|channel>h<|tool_call>call:f{}<tool_call|>m<channel|>ok", Json()), "ok",
             "hcall:f{}m");
}

TEST(ReplySplitterTest, AnEmptyCallIsAnErrorUnlessOpenedTwice) {
  const Message empty = SplitPieces({"<|tool_call>", "<tool_call|>"});
  ExpectText(empty, "");
  EXPECT_EQ(empty.n_parse_errors, 1);
  const Message twice = SplitPieces({"<|tool_call>", "<|tool_call>", "call:f{}", "<tool_call|>"});
  EXPECT_EQ(twice.call_texts(), Texts{"f{}"});
  EXPECT_EQ(twice.n_parse_errors, 0);
}

TEST(ReplySplitterTest, WithoutItsMarkACallIsFoundOnlyAtTheStartAndOnlyIfOffered) {
  EXPECT_EQ(Split("call:f{a:<|\"|>x<|\"|>}<tool_call|>").call_texts(), Texts{R"(f{"a":"x"})"});
  EXPECT_EQ(Split(" \ncall:f{}").call_texts(), Texts{"f{}"});
  EXPECT_EQ(Split("<|channel>thought\nhm\n<channel|>call:g{n:1}").call_texts(),
            Texts{R"(g{"n":1})"});
  const Message followed = Split("call:f{a:1}\ncall:g{} Done.");
  EXPECT_EQ(followed.call_texts(), (Texts{R"(f{"a":1})", "g{}"}));
  EXPECT_EQ(followed.content, "Done.");
  for (const std::string_view text : {"call:h{}", "call:fi{}", "Use call:f{}", "call: me", "call",
                                      "call:fin", "call:find us", "callous"}) {
    const Message message = Split(text);
    ExpectText(message, text);
    EXPECT_EQ(message.n_parse_errors, 0) << text;
  }
  const Message cut = Split("call:f{a:1");
  ExpectText(cut, "call:f{a:1");
  EXPECT_EQ(cut.n_parse_errors, 1);
}

TEST(ReplySplitterTest, AnUnmarkedCallIsHandedOutWhenOtherTextFollows) {
  for (const std::string_view arguments : {R"({a:<|"|>}<|"|>})", R"({"a":"}"})"}) {
    ReplySplitter splitter(TinyVocab(), Tools(), false);
    for (const ReplyToken& token : TokensOfText("call:f" + std::string(arguments) + "} \nca")) {
      EXPECT_EQ(splitter.Push(token.id, token.bytes), Deltas{});
    }
    EXPECT_EQ(splitter.Push(*TinyVocab().Find("a"), "n: "),
              (Deltas{{Kind::kCall, R"({"a":"}"})", "f", 0}, {Kind::kContent, "can: "}}));
    EXPECT_EQ(splitter.Push(*TinyVocab().Find("a"), "so"), (Deltas{{Kind::kContent, "so"}}));
    EXPECT_EQ(splitter.Finish(), Deltas{});
  }
  const Message phone = Split("call:f{n:1}\ncall: 555-1234 (call:g{})");
  EXPECT_EQ(phone.call_texts(), Texts{R"(f{"n":1})"});
  EXPECT_EQ(phone.content, "call: 555-1234 (call:g{})");
  const Message cut = Split("<|tool_call>call:f{n:1}call:g{s:");
  EXPECT_EQ(cut.call_texts(), Texts{R"(f{"n":1})"});
  EXPECT_EQ(cut.content, "call:g{s:");
  EXPECT_EQ(cut.n_parse_errors, 1);
}

TEST(ReplySplitterTest, SplittersMayShareTheTools) {
  const auto tools = std::make_shared<const OfferedTools>(Tools());
  ReplySplitter splitter(TinyVocab(), tools, false);
  EXPECT_EQ(tools.use_count(), 2);
  splitter.Push(*TinyVocab().Find("a"), "call:f{}");
  EXPECT_EQ(splitter.Finish(), (Deltas{{Kind::kCall, "{}", "f", 0}}));
}

TEST(ReplySplitterTest, TextThatCannotBeACallIsHandedOutAtOnce) {
  ReplySplitter splitter(TinyVocab(), Tools(), false);
  const int ordinary = *TinyVocab().Find("a");
  EXPECT_EQ(splitter.Push(ordinary, "call:"), Deltas{});
  EXPECT_EQ(splitter.Push(ordinary, "fi"), Deltas{});
  EXPECT_EQ(splitter.Push(ordinary, "x"), (Deltas{{Kind::kContent, "call:fix"}}));
  EXPECT_EQ(splitter.Push(ordinary, " it"), (Deltas{{Kind::kContent, " it"}}));
}

TEST(ReplySplitterTest, WithoutToolsTheTextOfACallIsContentAtOnce) {
  ReplySplitter splitter(TinyVocab(), Json(), false);
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<|tool_call>"), ""), Deltas{});
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("a"), "call:f{"),
            (Deltas{{Kind::kContent, "call:f{"}}));
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<|\"|>"), ""), Deltas{});
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<tool_call|>"), ""), Deltas{});
  EXPECT_EQ(splitter.n_calls() + splitter.n_repairs() + splitter.n_parse_errors(), 0);
}

TEST(ReplySplitterTest, DropsTurnHeaders) {
  ExpectText(SplitPieces({"<|turn>", "mod", "el\nHi", "<turn|>", "\n", "<|turn>", "model\n"}),
             "Hi\n");
  ExpectText(SplitPieces({"<|turn>", "models"}), "models");
  ExpectText(SplitPieces({"<|channel>", "hm", "<turn|>", "ok"}), "ok", "hm");
}

TEST(ReplySplitterTest, WhiteSpace) {
  ExpectText(SplitPieces({" ", "\n"}), "");
  ExpectText(SplitPieces({" ", "\na", " ", "\n"}), " \na \n");
  ExpectText(SplitPieces({"<|channel>", "thought\n", " \n", "a", "\n", " b\n ", "<channel|>"}), "",
             "a\n b");
}

TEST(ReplySplitterTest, WorksWithoutMarksInTheVocabulary) {
  VocabParts parts;
  parts.tokens_name = "tokens";
  parts.merges_name = "merges";
  parts.texts = {"<unk>", "a", "b"};
  parts.kinds = {TokenKind::kUnknown, TokenKind::kNormal, TokenKind::kNormal};
  const auto vocab = Vocab::FromParts(parts);
  ASSERT_TRUE(vocab.ok()) << vocab.error().Message();
  ExpectText(SplitTokens(*vocab, {{1, "a"}, {2, "<|channel>"}, {2, "b"}}, Tools()), "a<|channel>b");
  EXPECT_FALSE(EndsInOpenThought(*vocab, std::vector<int>{1, 2}));
}

TEST(ReplySplitterTest, TimeIsLinearInTheReply) {
  std::vector<ReplyToken> tokens = TokensOf({"<|channel>"});
  tokens.resize(200'000, {*TinyVocab().Find("a"), " "});
  tokens.push_back({*TinyVocab().Find("a"), "x"});
  EXPECT_EQ(SplitTokens(TinyVocab(), tokens, Tools()).thought, "x");
  tokens.insert(tokens.begin() + 1, {*TinyVocab().Find("a"), "y"});
  EXPECT_EQ(SplitTokens(TinyVocab(), tokens, Tools()).thought.size(), 200'001u);
  tokens.erase(tokens.begin(), tokens.begin() + 2);
  EXPECT_EQ(SplitTokens(TinyVocab(), tokens, Tools()).content.size(), 200'000u);
  tokens.insert(tokens.begin(), {*TinyVocab().Find("a"), "call:f{}"});
  EXPECT_EQ(SplitTokens(TinyVocab(), tokens, Tools()).content, "x");
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
  ExpectText(SplitPieces({"It ends with <", "end_of_turn", "> or </s>", " there."}),
             "It ends with <end_of_turn> or </s> there.");
}

TEST(Reports, N23_LostOrMixedDelimitersAreRepairedOrTheTextIsShown) {
  for (const std::string_view arguments :
       {R"({q:<|"|>a b<|"|>,n:1})", R"({q:a b<|"|>,n:1})", R"({q:<|"|>a b,n:1})", R"({q:a b,n:1})",
        R"({q:"a b<|"|>,n:1})", R"({q:<|"|>a b",n:1})", R"({q:'a b',n:1})"}) {
    const Message message = Split("<|tool_call>call:f" + std::string(arguments) + "<tool_call|>");
    EXPECT_EQ(message.call_texts(), Texts{R"(f{"q":"a b","n":1})"}) << arguments;
  }
  const Message broken = Split("<|tool_call>call:f{no key}<tool_call|>");
  ExpectText(broken, "call:f{no key}");
  EXPECT_EQ(broken.n_parse_errors, 1);
}

TEST(Reports, N24_QuotesInsideContainersAreSyntax) {
  EXPECT_EQ(Split(R"(<|tool_call>call:f{l:["x",'y'],o:{"k":"v"}}<tool_call|>)").call_texts(),
            Texts{R"(f{"l":["x","y"],"o":{"k":"v"}})"});
}

TEST(Reports, N25_ForeignSyntaxIsReadAndTheNextCallSurvives) {
  constexpr std::string_view kGood = R"(<|tool_call>call:g{k:<|"|>v<|"|>}<tool_call|>)";
  for (const std::string_view bad :
       {R"(call:f{a=<|"|>x<|"|>})", R"(call:f(a:<|"|>x<|"|>))", R"(f{a:<|"|>x<|"|>})",
        R"(:f{a:<|"|>x<|"|>})", R"(call f{a:<|"|>x<|"|>})"}) {
    const Message message =
        Split("<|tool_call>" + std::string(bad) + "<tool_call|>" + std::string(kGood));
    EXPECT_EQ(message.call_texts(), (Texts{R"(f{"a":"x"})", R"(g{"k":"v"})"})) << bad;
    EXPECT_EQ(message.calls.back().index, 1);
  }
}

TEST(Reports, N26_ALastBraceLostBeforeTheCloserIsNoLoss) {
  const Message message = Split(R"(<|tool_call>call:f{o:{k:<|"|>v<|"|>}<tool_call|>)");
  EXPECT_EQ(message.call_texts(), Texts{R"(f{"o":{"k":"v"}})"});
  EXPECT_EQ(message.n_repairs, 1);
}

TEST(Reports, N27_TheClosingMarkerAsTextComesBackWhole) {
  const Message message = SplitPieces({"<|tool_call>", "call:f{t:", "<|\"|>", "a <tool_",
                                       "call|> b", "<|\"|>", "}", "<tool_call|>"});
  EXPECT_EQ(message.call_texts(), Texts{R"(f{"t":"a <tool_call|> b"})"});
}

TEST(Reports, N28_ALostDelimiterSwallowsNoKeyAndAStrayBracketStopsNothing) {
  EXPECT_EQ(
      Split(R"(<|tool_call>call:f{a:<|"|>x,b:<|"|>y<|"|>,c:[1]],d:2}<tool_call|>)").call_texts(),
      Texts{R"(f{"a":"x","b":"y","c":[1],"d":2})"});
}

TEST(Reports, N29_NothingIsCutAtTheFirstClosingBrace) {
  EXPECT_EQ(Split(R"(<|tool_call>call:f{o:{p:{q:1}},t:<|"|>if(x){y();}}<|"|>,u:2}<tool_call|>)")
                .call_texts(),
            Texts{R"(f{"o":{"p":{"q":1}},"t":"if(x){y();}}","u":2})"});
}

TEST(Reports, N30_ACallInAThoughtOrRightAfterItIsACall) {
  const Message inside = Split("<|channel>thought\nhm<|tool_call>call:f{}<tool_call|><channel|>ok");
  EXPECT_EQ(inside.call_texts(), Texts{"f{}"});
  EXPECT_EQ(inside.thought, "hm");
  EXPECT_EQ(inside.content, "ok");
  const Message after = Split("<|channel>thought\nhm\n<channel|><|tool_call>call:f{}<tool_call|>");
  EXPECT_EQ(after.call_texts(), Texts{"f{}"});
  EXPECT_EQ(after.n_repairs, 0);
}

TEST(Reports, N31_SurplusClosersAndHalfAnOpenerReachNobody) {
  ExpectText(SplitPieces({"ok", "<channel|>", "<tool_call|>", "<|channel>"}), "ok");
  ExpectText(SplitPieces({"ok", "<tool_call|>", "<tool_call|>", "<|tool_call>"}), "ok");
}

TEST(Reports, N32_AnInventedSyntaxIsShownAndCounted) {
  for (const std::string_view text :
       {R"({"name": "f", "arguments": {"a": 1}})", "f a=1", "<f><a>1</a></f>", "call:f[a:1]"}) {
    const Message message = Split("<|tool_call>" + std::string(text) + "<tool_call|>");
    ExpectText(message, text);
    EXPECT_EQ(message.n_parse_errors, 1) << text;
  }
}

TEST(Reports, N33_ASourceFileComesBackByteForByte) {
  std::string file;
  for (int line = 0; line < 300; ++line) {
    file += "  if (s[" + std::to_string(line) + "] == '}') { p(`${\"x\\n\"}`, {a: [1, 2]}); }\n";
  }
  const Message message =
      Split("<|tool_call>call:f{text:<|\"|>" + file + "<|\"|>,n:1}<tool_call|>");
  ASSERT_EQ(message.calls.size(), 1u);
  const Json arguments = *ParseJson(message.calls[0].text, "arguments");
  EXPECT_EQ(arguments["text"].as_string(), file);
  EXPECT_EQ(arguments["n"].as_int(), 1);
  EXPECT_EQ(message.n_repairs, 0);
}

TEST(Reports, N35_ACallIsKnownWithItsClosingMark) {
  ReplySplitter splitter(TinyVocab(), Tools(), false);
  for (const ReplyToken& token : TokensOfText("<|tool_call>call:f{}")) {
    splitter.Push(token.id, token.bytes);
    EXPECT_EQ(splitter.n_calls(), 0);
  }
  splitter.Push(*TinyVocab().Find("<tool_call|>"), "");
  EXPECT_EQ(splitter.n_calls(), 1);
}

TEST(Reports, N36_ProseAndCodeAreNoCalls) {
  const Texts pieces = {"```\n", "<|tool_", "call>call:f{}<tool_call|>\n```"};
  ExpectText(SplitPieces(pieces), "```\n<|tool_call>call:f{}<tool_call|>\n```");
  ExpectText(Split("<|tool_call>call:f{a:<|\"|>x<|\"|>}<tool_call|>", Json()), "call:f{a:x}");
  ExpectText(Split("<|channel>hm<|tool_call>call:f{}<tool_call|>", Json::MakeArray({})), "",
             "hmcall:f{}");
}

TEST(Reports, N38_ContentIsFreeOfMarkers) {
  ExpectText(SplitPieces({"<|channel>", "thought\n", "Easy.\n", "<channel|>", "Four."}), "Four.",
             "Easy.");
}

TEST(Reports, N39_APromptInAThoughtStartsTheReplyAsReasoning) {
  ExpectText(SplitPieces({"It is ", "seven.\n", "<channel|>", "It is 7."}, true), "It is 7.",
             "It is seven.");
  ExpectText(SplitPieces({"thought\n", "It is seven.", "<channel|>", "It is 7."}, true), "It is 7.",
             "It is seven.");
}

TEST(Reports, N41_AThoughtThatIsCutLeavesNoHeaderBehind) {
  // The engine closes the channel by itself when the budget is spent, also inside the header.
  ExpectText(SplitPieces({"<|channel>", "thought", "<channel|>", "Four."}), "Four.");
  ExpectText(SplitPieces({"<|channel>", "<channel|>", "Four."}), "Four.");
}

TEST(Reports, N46_NumbersAndLiteralsWaitUntilTheyAreCertain) {
  ReplySplitter splitter(TinyVocab(), Tools(), false);
  for (const ReplyToken& token : TokensOfText("<|tool_call>call:f{n:1")) {
    EXPECT_EQ(splitter.Push(token.id, token.bytes), Deltas{});
  }
  for (const ReplyToken& token : TokensOfText("e5}")) {
    EXPECT_EQ(splitter.Push(token.id, token.bytes), Deltas{});
  }
  EXPECT_EQ(splitter.Push(*TinyVocab().Find("<tool_call|>"), ""),
            (Deltas{{Kind::kCall, R"({"n":1e5})", "f", 0}}));
}

TEST(Reports, N47_ParallelCallsCarryTheirIndex) {
  const Message message = Split(
      "<|tool_call>call:f{}<tool_call|><|tool_call>call:g{}<tool_call|>"
      "<|tool_call>call:f{n:1}<tool_call|>");
  EXPECT_EQ(message.calls, (Deltas{{Kind::kCall, "{}", "f", 0},
                                   {Kind::kCall, "{}", "g", 1},
                                   {Kind::kCall, R"({"n":1})", "f", 2}}));
}

TEST(Reports, N49_TokensThatEndAReplyAreNotPartOfIt) {
  const std::vector<int>& ends = TinyVocab().end_ids();
  for (const std::string_view end : {"<eos>", "<turn|>", "<|tool_response>"}) {
    ExpectText(SplitPieces({"ok", std::string(end)}), "ok");
    EXPECT_EQ(std::count(ends.begin(), ends.end(), *TinyVocab().Find(end)), 1) << end;
  }
}

}  // namespace
}  // namespace facet
