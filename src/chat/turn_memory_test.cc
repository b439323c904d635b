// SPDX-License-Identifier: Apache-2.0
#include "chat/turn_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "chat/chat_template.h"
#include "chat/reply_testing.h"
#include "text/tokenizer.h"

namespace facet {
namespace {

using testing::Message;
using testing::ReplyToken;
using testing::TinyVocab;
using Tokens = std::vector<int32_t>;

constexpr size_t kBytes = size_t{1} << 20;

/// A reply with its marks written out, in the smallest tokens that there are: hardly ever those
/// that the tokenizer would choose.
Tokens SmallTokens(std::string_view text) {
  Tokens tokens;
  for (const ReplyToken& token : testing::TokensOfText(text)) {
    if (TinyVocab().is_special(token.id)) {
      tokens.push_back(token.id);
      continue;
    }
    const auto whole = TinyVocab().Find(token.bytes == " " ? kSpacePiece : token.bytes);
    if (whole) {
      tokens.push_back(*whole);
      continue;
    }
    for (const char byte : token.bytes) {
      tokens.push_back(TinyVocab().byte_id(static_cast<uint8_t>(byte)));
    }
  }
  return tokens;
}

Json UserSays(const char* text) { return Json::MakeObject({{"role", "user"}, {"content", text}}); }

/// What a client sends back of a reply.
Json AssistantSays(const Tokens& reply, const Json& tools) {
  std::vector<ReplyToken> tokens;
  for (const int32_t token : reply) {
    tokens.push_back({token, std::string(TinyVocab().bytes(token))});
  }
  const Message message = SplitTokens(TinyVocab(), tokens, tools);
  Json assistant = Json::MakeObject({{"role", "assistant"},
                                     {"content", message.content},
                                     {"reasoning_content", message.thought}});
  for (const ReplyDelta& call : message.calls) {
    Json calls = assistant["tool_calls"];
    calls.Append(Json::MakeObject(
        {{"id", "call_" + std::to_string(call.index)},
         {"type", "function"},
         {"function", Json::MakeObject({{"name", call.name}, {"arguments", call.text}})}}));
    assistant.Set("tool_calls", std::move(calls));
  }
  return assistant;
}

class Conversation {
 public:
  explicit Conversation(Json tools) : tools_(std::move(tools)) {}

  void Add(Json message) { messages_.Append(std::move(message)); }
  void AddReply(const Tokens& reply) { Add(AssistantSays(reply, tools_)); }
  [[nodiscard]] Tokens Prompt() const {
    static const auto chat_template = ChatTemplate::Load("", "built-in", "<bos>", "<eos>");
    const auto prompt = chat_template->Render({.messages = messages_, .tools = tools_});
    EXPECT_TRUE(prompt.ok()) << prompt.error().Message();
    return TokenizePrompt(Tokenizer(&TinyVocab()), TinyVocab(), *prompt);
  }

 private:
  Json tools_;
  Json messages_;
};

Tokens Join(Tokens begin, const Tokens& end) {
  begin.insert(begin.end(), end.begin(), end.end());
  return begin;
}

std::string TextOf(const Tokens& tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    text += TinyVocab().bytes(token);
  }
  return text;
}

void ExpectBegins(const Tokens& tokens, const Tokens& beginning) {
  ASSERT_GE(tokens.size(), beginning.size());
  EXPECT_EQ(Tokens(tokens.begin(), tokens.begin() + ptrdiff_t(beginning.size())), beginning);
}

/// The reply, in small tokens, comes back in the prompt after `next` was said.
void ExpectTurnComesBack(Conversation conversation, std::string_view reply_text, const Json& next) {
  TurnMemory memory(&TinyVocab(), kBytes);
  const Tokens prompt = conversation.Prompt();
  const Tokens reply = SmallTokens(reply_text);
  memory.Remember(prompt, reply);
  conversation.AddReply(reply);
  conversation.Add(next);
  const Tokens plain = conversation.Prompt();
  const Tokens restored = memory.Restore(plain);
  EXPECT_NE(restored, plain);
  ExpectBegins(restored, Join(prompt, reply));
  EXPECT_EQ(TextOf(restored), TextOf(plain));
}

Conversation Asked(const Json& tools = {}) {
  Conversation conversation(tools);
  conversation.Add(UserSays("What time is it in Oslo?"));
  return conversation;
}

Json Clock() {
  return Json::MakeArray({Json::MakeObject(
      {{"type", "function"}, {"function", Json::MakeObject({{"name", "get_time"}})}})});
}

Json ToolSays(const char* text) {
  return Json::MakeObject({{"role", "tool"}, {"tool_call_id", "call_0"}, {"content", text}});
}

TEST(TurnMemory, AReplyComesBackInTheTokensThatWereDrawn) {
  ExpectTurnComesBack(Asked(), "It is four, I think. 👩‍🚀 e\u0301<turn|>",
                      UserSays("Thanks"));
  ExpectTurnComesBack(Asked(), "a {b: \"c\"}\n\n\tline\n  two<turn|>", UserSays("Thanks"));
}

TEST(TurnMemory, AReplyThatTheLimitCutComesBack) {
  ExpectTurnComesBack(Asked(), "It is four, I", UserSays("Go on"));
}

TEST(TurnMemory, ACallComesBack) {
  ExpectTurnComesBack(
      Asked(Clock()),
      "<|tool_call>call:get_time{n:7,ok:true,x:null,zone:<|\"|>Europe/Oslo<|\"|>}<tool_call|>"
      "<|tool_response>",
      ToolSays("12:00"));
}

TEST(TurnMemory, SeveralCallsComeBack) {
  ExpectTurnComesBack(Asked(Clock()),
                      "<|tool_call>call:get_time{l:[1,2.5,<|\"|>a<|\"|>],o:{k:{}}}<tool_call|>"
                      "<|tool_call>call:get_time{}<tool_call|><|tool_response>",
                      ToolSays("12:00"));
}

TEST(TurnMemory, AThoughtComesBackInTheRunningToolLoop) {
  ExpectTurnComesBack(Asked(Clock()),
                      "<|channel>thought\nI need the clock.\nNow.\n<channel|>"
                      "<|tool_call>call:get_time{zone:<|\"|>Europe/Oslo<|\"|>}<tool_call|>"
                      "<|tool_response>",
                      ToolSays("12:00"));
}

TEST(TurnMemory, TheLongestTurnIsTaken) {
  TurnMemory memory(&TinyVocab(), kBytes);
  Conversation conversation = Asked(Clock());
  Tokens prompt = conversation.Prompt();
  const char* const replies[] = {
      "<|tool_call>call:get_time{zone:<|\"|>Europe/Oslo<|\"|>}<tool_call|><|tool_response>",
      "It is noon.<turn|>", "You are welcome.<turn|>"};
  const Json answers[] = {ToolSays("12:00"), UserSays("Thanks"), UserSays("Bye")};
  for (size_t turn = 0; turn < std::size(replies); ++turn) {
    const Tokens reply = SmallTokens(replies[turn]);
    memory.Remember(prompt, reply);
    conversation.AddReply(reply);
    conversation.Add(answers[turn]);
    const Tokens so_far = Join(prompt, reply);
    prompt = memory.Restore(conversation.Prompt());
    ExpectBegins(prompt, so_far);
  }
}

TEST(TurnMemory, ADroppedThoughtLeavesTheTurnsBeforeIt) {
  TurnMemory memory(&TinyVocab(), kBytes);
  Conversation conversation = Asked();
  const Tokens first_prompt = conversation.Prompt();
  const Tokens first = SmallTokens("Noon.<turn|>");
  memory.Remember(first_prompt, first);
  conversation.AddReply(first);
  conversation.Add(UserSays("Sure?"));
  const Tokens second_prompt = memory.Restore(conversation.Prompt());
  const Tokens second = SmallTokens("<|channel>thought\nHm.\n<channel|>Yes.<turn|>");
  memory.Remember(second_prompt, second);
  conversation.AddReply(second);
  conversation.Add(UserSays("Thanks"));
  const Tokens third_prompt = memory.Restore(conversation.Prompt());
  ExpectBegins(third_prompt, Join(first_prompt, first));
  EXPECT_EQ(TextOf(third_prompt), TextOf(conversation.Prompt()));
}

TEST(TurnMemory, EditedAndOtherTurnsAreNotFound) {
  TurnMemory memory(&TinyVocab(), kBytes);
  const Conversation asked = Asked();
  memory.Remember(asked.Prompt(), SmallTokens("It is four.<turn|>"));
  for (const char* text : {"It is five.<turn|>", "It is four<turn|>", "It is four. <turn|>x"}) {
    Conversation edited = asked;
    edited.AddReply(SmallTokens(text));
    edited.Add(UserSays("Thanks"));
    EXPECT_EQ(memory.Restore(edited.Prompt()), edited.Prompt()) << text;
  }
  Conversation other(Json{});
  other.Add(UserSays("What time is it in Bergen?"));
  other.AddReply(SmallTokens("It is four.<turn|>"));
  other.Add(UserSays("Thanks"));
  EXPECT_EQ(memory.Restore(other.Prompt()), other.Prompt());
  EXPECT_EQ(memory.Restore({}), Tokens{});
}

TEST(TurnMemory, AMarkAndItsTextAreNotTheSame) {
  TurnMemory memory(&TinyVocab(), kBytes);
  const Tokenizer tokenizer(&TinyVocab());
  const Tokens mark = tokenizer.Encode("<turn|>", true);
  const Tokens text = tokenizer.Encode("<turn|>", false);
  memory.Remember(SmallTokens("ab"), text);
  EXPECT_EQ(memory.Restore(Join(tokenizer.Encode("ab", false), mark)),
            Join(tokenizer.Encode("ab", false), mark));
  // A byte token that looks like the sign of an id is one by itself.
  const Tokens byte = {TinyVocab().byte_id(0xFF)};
  memory.Remember(SmallTokens("a"), byte);
  EXPECT_EQ(memory.Restore(Join({*TinyVocab().Find("a")}, byte)),
            Join({*TinyVocab().Find("a")}, byte));
}

TEST(TurnMemory, ATurnMustEndAtATokensBorder) {
  TurnMemory memory(&TinyVocab(), kBytes);
  const Tokenizer tokenizer(&TinyVocab());
  const Tokens he = tokenizer.Encode("he", false);
  ASSERT_EQ(he.size(), 1u);
  memory.Remember(SmallTokens("<turn|>"), SmallTokens("h"));
  const Tokens canonical = Join(SmallTokens("<turn|>"), he);
  EXPECT_EQ(memory.Restore(canonical), canonical);
  memory.Remember(SmallTokens("<turn|>h"), SmallTokens("e"));
  EXPECT_EQ(memory.Restore(canonical), SmallTokens("<turn|>he"));
}

TEST(TurnMemory, TheLatestOfTheSameTextCounts) {
  TurnMemory memory(&TinyVocab(), kBytes);
  const Tokens canonical = Tokenizer(&TinyVocab()).Encode("the time", false);
  memory.Remember(SmallTokens("the"), SmallTokens(" time"));
  EXPECT_EQ(memory.Restore(canonical), SmallTokens("the time"));
  memory.Remember(Tokens(canonical.begin(), canonical.end() - 1), Tokens{canonical.back()});
  EXPECT_EQ(memory.Restore(canonical), canonical);
}

TEST(TurnMemory, ForgetsWhatWasNotUsedForTheLongestTime) {
  TurnMemory memory(&TinyVocab(), 3 * 172);  // room for three turns of three tokens
  const auto text = [](char c) { return SmallTokens(std::string("<turn|>") + c); };
  const auto turn = [&](char c) { memory.Remember(text(c), SmallTokens("e")); };
  const Tokenizer tokenizer(&TinyVocab());
  const Tokens canonical = tokenizer.Encode("<turn|>he", true);
  ASSERT_EQ(canonical.size(), 2u);
  turn('h');
  turn('a');
  turn('b');
  EXPECT_EQ(memory.Restore(canonical), SmallTokens("<turn|>he"));  // used: a is the oldest now
  turn('c');
  EXPECT_EQ(memory.Restore(canonical), SmallTokens("<turn|>he"));
  turn('d');
  turn('f');
  turn('g');
  EXPECT_EQ(memory.Restore(canonical), canonical);
  // What is larger than all the room is not kept, and costs nothing else.
  memory.Remember(text('h'), SmallTokens("e"));
  memory.Remember(Tokens(1000, canonical[0]), SmallTokens("e"));
  EXPECT_EQ(memory.Restore(canonical), SmallTokens("<turn|>he"));
}

TEST(TurnMemory, MayBeUsedBySeveralThreads) {
  TurnMemory memory(&TinyVocab(), 4096);
  const auto work = [&memory](int seed) {
    const Tokens prompt = SmallTokens("<turn|>" + std::to_string(seed));
    for (int n = 0; n < 300; ++n) {
      const Tokens reply = SmallTokens(" reply " + std::to_string(n % 7) + "<turn|>");
      memory.Remember(prompt, reply);
      EXPECT_EQ(TextOf(memory.Restore(Join(prompt, reply))), TextOf(Join(prompt, reply)));
    }
  };
  std::vector<std::thread> threads;
  for (int seed = 0; seed < 4; ++seed) {
    threads.emplace_back(work, seed);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(TurnMemory, SaltsAreApart) {
  TurnMemory memory(&TinyVocab(), kBytes);
  const Tokens canonical = Tokenizer(&TinyVocab()).Encode("the", false);
  ASSERT_NE(canonical, SmallTokens("the"));
  memory.Remember(SmallTokens("th"), SmallTokens("e"), "a");
  EXPECT_EQ(memory.Restore(canonical), canonical);
  EXPECT_EQ(memory.Restore(canonical, "b"), canonical);
  EXPECT_EQ(memory.Restore(canonical, "a"), SmallTokens("the"));
}

}  // namespace
}  // namespace facet
