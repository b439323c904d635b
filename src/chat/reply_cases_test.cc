// SPDX-License-Identifier: Apache-2.0
// Every case of testdata/reply, and the properties that its README lists.
#include <gtest/gtest.h>

#include <algorithm>

#include "chat/chat_template.h"
#include "chat/reply_testing.h"
#include "text/tokenizer.h"

namespace facet {
namespace {

using testing::CaseTokens;
using testing::Message;
using testing::RealVocab;
using testing::ReplyCases;
using testing::ReplyToken;
using testing::SplitCase;
using testing::TinyVocab;

/// Content of white space only is null to a client.
std::string ContentOf(const Message& message) {
  return message.content.find_first_not_of(" \t\n") == std::string::npos ? "" : message.content;
}

Json CallsOf(const Message& message) {
  Json calls{Json::Array()};
  for (const ReplyDelta& call : message.calls) {
    calls.Append(
        Json::MakeObject({{"name", call.name}, {"arguments", *ParseJson(call.text, "arguments")}}));
  }
  return calls;
}

/// 3.0 and 3, and members in any order, are the same value.
Json Normal(const Json& value) {
  if (value.is_double() && value.as_double() == static_cast<double>(value.as_int())) {
    return value.as_int();
  }
  if (value.is_array()) {
    Json items{Json::Array()};
    for (const Json& item : value.items()) {
      items.Append(Normal(item));
    }
    return items;
  }
  if (value.is_object()) {
    Json::Object members = value.members();
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [name, member] : members) {
      member = Normal(member);
    }
    return members;
  }
  return value;
}

void ExpectCase(const Json& row, const Message& message) {
  const Json& expected = row["expect"];
  EXPECT_EQ(ContentOf(message), expected["content"].as_string());
  EXPECT_EQ(message.thought, expected["reasoning"].as_string());
  EXPECT_EQ(Normal(CallsOf(message)).Dump(), Normal(expected["tool_calls"]).Dump());
}

bool IsGoodCall(const Json& row) {
  return row["level"].as_string() == "exact" && !row["expect"]["tool_calls"].items().empty();
}

TEST(ReplyCases, GiveTheMessageExpected) {
  EXPECT_EQ(ReplyCases().size(), 51u);
  for (const Json& row : ReplyCases()) {
    SCOPED_TRACE(row["id"].as_string() + " " + row["title"].as_string());
    ExpectCase(row, SplitCase(row, CaseTokens(row)));
  }
}

TEST(ReplyCases, AreCountedByTheirLevel) {
  for (const Json& row : ReplyCases()) {
    SCOPED_TRACE(row["id"].as_string());
    const Message message = SplitCase(row, CaseTokens(row));
    const std::string& id = row["id"].as_string();
    EXPECT_EQ(message.n_repairs > 0, row["level"].as_string() == "repair");
    EXPECT_EQ(message.n_parse_errors, id == "P39" || id == "N06" ? 1 : 0);
  }
}

TEST(ReplyCases, AreTheSameInIdsOfTheRealVocabulary) {
  if (RealVocab() == nullptr) {
    GTEST_SKIP() << testing::kNoShared;
  }
  for (const Json& row : ReplyCases()) {
    SCOPED_TRACE(row["id"].as_string());
    std::vector<ReplyToken> tokens;
    for (const Json& id : row["ids"].items()) {
      const int token = static_cast<int>(id.as_int());
      tokens.push_back({token, std::string(RealVocab()->bytes(token))});
    }
    ExpectCase(row, SplitTokens(*RealVocab(), tokens, row["tools"],
                                row["start"].as_string() == "thought"));
  }
}

TEST(ReplyCases, WrappedToolsAreTheSameTools) {
  for (const Json& row : ReplyCases()) {
    Json wrapped{Json::Array()};
    for (const Json& tool : row["tools"].items()) {
      wrapped.Append(Json::MakeObject({{"type", "function"}, {"function", tool}}));
    }
    ExpectCase(row, SplitTokens(TinyVocab(), CaseTokens(row), wrapped,
                                row["start"].as_string() == "thought"));
  }
}

/// Deltas in the order in which they are handed out, neighbours of the same text joined.
std::vector<ReplyDelta> Joined(const std::vector<ReplyDelta>& deltas) {
  std::vector<ReplyDelta> joined;
  for (const ReplyDelta& delta : deltas) {
    if (!joined.empty() && delta.kind != ReplyDelta::Kind::kCall &&
        joined.back().kind == delta.kind) {
      joined.back().text += delta.text;
    } else {
      joined.push_back(delta);
    }
  }
  return joined;
}

TEST(ReplyCases, TheDivisionOfTextIntoTokensDoesNotMatter) {
  for (const Json& row : ReplyCases()) {
    SCOPED_TRACE(row["id"].as_string());
    const std::vector<ReplyToken> tokens = CaseTokens(row);
    const auto all_deltas = [&](const std::vector<ReplyToken>& list) {
      ReplySplitter splitter(TinyVocab(), row["tools"], row["start"].as_string() == "thought");
      std::vector<ReplyDelta> deltas;
      for (const ReplyToken& token : list) {
        const auto now = splitter.Push(token.id, token.bytes);
        deltas.insert(deltas.end(), now.begin(), now.end());
      }
      const auto rest = splitter.Finish();
      deltas.insert(deltas.end(), rest.begin(), rest.end());
      return Joined(deltas);
    };
    std::vector<ReplyToken> bytes;  // a byte at a time
    std::vector<ReplyToken> spans;  // all text between two marks at once
    for (const ReplyToken& token : tokens) {
      const bool is_mark = TinyVocab().is_special(token.id);
      if (is_mark) {
        bytes.push_back(token);
        spans.push_back(token);
        continue;
      }
      for (const char byte : token.bytes) {
        bytes.push_back({*TinyVocab().Find("a"), std::string(1, byte)});
      }
      if (spans.empty() || TinyVocab().is_special(spans.back().id)) {
        spans.push_back({*TinyVocab().Find("a"), ""});
      }
      spans.back().bytes += token.bytes;
    }
    EXPECT_EQ(all_deltas(bytes), all_deltas(tokens));
    EXPECT_EQ(all_deltas(spans), all_deltas(tokens));
  }
}

TEST(ReplyCases, EveryBeginningIsWhatWasHandedOutByThen) {
  // Nothing that was handed out depends on what follows: the deltas of a reply cut anywhere begin
  // with those that the whole reply had handed out at that place.
  for (const Json& row : ReplyCases()) {
    SCOPED_TRACE(row["id"].as_string());
    const std::vector<ReplyToken> tokens = CaseTokens(row);
    ReplySplitter whole(TinyVocab(), row["tools"], row["start"].as_string() == "thought");
    Message so_far;
    for (size_t n = 0; n < tokens.size(); ++n) {
      testing::AddDeltas(so_far, whole.Push(tokens[n].id, tokens[n].bytes));
      const Message cut = SplitCase(row, {tokens.begin(), tokens.begin() + ptrdiff_t(n) + 1});
      EXPECT_TRUE(cut.content.starts_with(so_far.content));
      EXPECT_TRUE(cut.thought.starts_with(so_far.thought));
      ASSERT_GE(cut.calls.size(), so_far.calls.size());
      EXPECT_TRUE(std::equal(so_far.calls.begin(), so_far.calls.end(), cut.calls.begin()));
    }
  }
}

void ExpectNoMarks(const std::string& text) {
  constexpr std::string_view kParts[] = {"<|", "|>", "\xFF"};
  for (const std::string_view part : kParts) {
    EXPECT_EQ(text.find(part), std::string::npos) << text;
  }
}

void ExpectNoMarks(const Message& message) {
  ExpectNoMarks(message.content);
  ExpectNoMarks(message.thought);
  for (const ReplyDelta& call : message.calls) {
    ExpectNoMarks(call.text);
    ExpectNoMarks(call.name);
  }
}

/// The tokens with one of them left out, doubled, or exchanged with the next.
std::vector<std::vector<ReplyToken>> SlipsOf(const std::vector<ReplyToken>& tokens) {
  std::vector<std::vector<ReplyToken>> slips;
  for (size_t n = 0; n < tokens.size(); ++n) {
    const auto place = static_cast<ptrdiff_t>(n);
    slips.push_back(tokens);
    slips.back().erase(slips.back().begin() + place);
    slips.push_back(tokens);
    slips.back().insert(slips.back().begin() + place, tokens[n]);
    if (n + 1 < tokens.size()) {
      slips.push_back(tokens);
      std::swap(slips.back()[n], slips.back()[n + 1]);
    }
  }
  return slips;
}

TEST(ReplyCases, NoDeltaHoldsAMarkOrItsBeginning) {
  for (const Json& row : ReplyCases()) {
    const std::string& id = row["id"].as_string();
    if (id == "N04" || id == "N18") {
      continue;  // have marks as ordinary text
    }
    SCOPED_TRACE(id);
    ExpectNoMarks(SplitCase(row, CaseTokens(row)));
    for (const std::vector<ReplyToken>& slip : SlipsOf(CaseTokens(row))) {
      ExpectNoMarks(SplitCase(row, slip));
    }
  }
}

TEST(ReplyCases, ASlipInAGoodCallIsNeverAnEmptySuccess) {
  int n_slips = 0;
  int n_calls = 0;
  for (const Json& row : ReplyCases()) {
    if (!IsGoodCall(row)) {
      continue;
    }
    for (const std::vector<ReplyToken>& slip : SlipsOf(CaseTokens(row))) {
      const Message message = SplitCase(row, slip);
      const bool is_text = ContentOf(message) != "";
      EXPECT_TRUE(!message.calls.empty() || is_text || message.n_parse_errors > 0)
          << row["id"].as_string();
      ++n_slips;
      n_calls += message.calls.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(n_slips, 1000);
  EXPECT_GT(n_calls, n_slips * 8 / 10);  // most slips are put right
}

TEST(ReplyCases, RenderedAgainGiveTheSameCalls) {
  const auto chat_template = ChatTemplate::Load("", "built-in", "<bos>", "<eos>");
  ASSERT_TRUE(chat_template.ok());
  const Tokenizer tokenizer(&TinyVocab());
  for (const Json& row : ReplyCases()) {
    const Json calls = CallsOf(SplitCase(row, CaseTokens(row)));
    if (calls.items().empty()) {
      continue;
    }
    SCOPED_TRACE(row["id"].as_string());
    Json tool_calls;
    for (const Json& call : calls.items()) {
      tool_calls.Append(Json::MakeObject(
          {{"type", "function"},
           {"function",
            Json::MakeObject({{"name", call["name"]}, {"arguments", call["arguments"].Dump()}})}}));
    }
    const Json messages =
        Json::MakeArray({Json::MakeObject({{"role", "user"}, {"content", "x"}}),
                         Json::MakeObject({{"role", "assistant"}, {"tool_calls", tool_calls}})});
    const auto prompt = chat_template->Render({.messages = messages});
    ASSERT_TRUE(prompt.ok()) << prompt.error().Message();
    std::vector<ReplyToken> tokens;
    for (const int id : TokenizePrompt(tokenizer, TinyVocab(), *prompt)) {
      tokens.push_back({id, std::string(TinyVocab().bytes(id))});
    }
    const Message again = SplitTokens(TinyVocab(), tokens, row["tools"]);
    EXPECT_EQ(Normal(CallsOf(again)).Dump(), Normal(calls).Dump());
  }
}

}  // namespace
}  // namespace facet
