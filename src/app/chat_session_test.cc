// SPDX-License-Identifier: Apache-2.0
#include "app/chat_session.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/testing.h"

namespace facet {
namespace {

ChatSession MakeSession() {
  ChatSettings settings;
  settings.knows_thinking = true;
  settings.bytes_per_token = 3e6;
  return {Options{}, settings};
}

void AddExchange(ChatSession* session, const std::string& question, const std::string& answer) {
  EXPECT_TRUE(session->AddUser(question).ok());
  session->AddReply(answer, {.n_prompt = 10, .n_generated = 5, .prefill_s = 0.5, .decode_s = 2});
}

TEST(ChatSession, TellsCommandsFromText) {
  EXPECT_TRUE(ChatSession::IsCommand("/help"));
  EXPECT_TRUE(ChatSession::IsCommand("  /system be brief"));
  EXPECT_FALSE(ChatSession::IsCommand("/usr/bin is a folder"));
  EXPECT_FALSE(ChatSession::IsCommand("/"));
  EXPECT_FALSE(ChatSession::IsCommand("//help"));
  EXPECT_EQ(ChatSession::TextOf("//help"), "/help");
  EXPECT_EQ(ChatSession::TextOf("/usr/bin"), "/usr/bin");
}

TEST(ChatSession, HelpListsEveryCommand) {
  const auto answer = MakeSession().Run("/help");
  for (const std::string& name : ChatSession::CommandNames()) {
    EXPECT_NE(answer.text.find(name), std::string::npos) << name;
  }
}

TEST(ChatSession, SuggestsCommands) {
  ChatSession session = MakeSession();
  EXPECT_EQ(session.Run("/rset").text, "unknown command /rset, did you mean /reset");
  EXPECT_EQ(session.Run("/xyzzyxyzzy").text, "unknown command /xyzzyxyzzy (/help lists them)");
  EXPECT_EQ(session.Run("/reset now").text, "/reset: \"now\", wanted nothing after it");
  EXPECT_TRUE(session.Run("/rset").is_error);
}

TEST(ChatSession, BuildsTheRequest) {
  ChatSession session = MakeSession();
  session.Run("/system Be brief.");
  session.Run("/think on");
  AddExchange(&session, "a", "b");
  EXPECT_TRUE(session.AddUser("c").ok());
  const ChatRequest request = session.MakeChatRequest();
  EXPECT_EQ(request.messages.Dump(),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"a"},)"
            R"({"role":"assistant","content":"b"},{"role":"user","content":"c"}])");
  EXPECT_TRUE(request.thinking);
}

TEST(ChatSession, AttachedFilesGoWithTheNextMessage) {
  const std::string folder = testing::MakeTempDir();
  ASSERT_TRUE(WriteFile(folder + "/a.png", "x").ok());
  ASSERT_TRUE(WriteFile(folder + "/b c.wav", "x").ok());
  ChatSettings settings;
  settings.media.sees = true;
  settings.media.hears = true;
  settings.home = folder;
  ChatSession session(Options{}, settings);
  EXPECT_FALSE(session.Run("/image ~/a.png").is_error);
  EXPECT_FALSE(session.Run("/audio \"" + folder + "/b c.wav\"").is_error);
  EXPECT_TRUE(session.Run("/image " + folder + "/missing.png").is_error);
  EXPECT_EQ(session.attached().size(), 2U);
  EXPECT_FALSE(session.AddUser("<|image|> alone").ok()) << "one placeholder for two files";
  ASSERT_TRUE(session.AddUser("what?").ok());
  EXPECT_TRUE(session.attached().empty());
  const Json parts = session.MakeChatRequest().messages.items().back()["content"];
  ASSERT_EQ(parts.items().size(), 3U);
  EXPECT_EQ(parts.items()[0]["type"].as_string(), "image");
  EXPECT_EQ(parts.items()[0]["path"].as_string(), folder + "/a.png");
  EXPECT_EQ(parts.items()[1]["type"].as_string(), "audio");
  EXPECT_EQ(parts.items()[2]["text"].as_string(), "what?");
  EXPECT_FALSE(session.Run("/image ~/a.png").is_error);
  EXPECT_FALSE(session.Run("/drop").is_error);
  EXPECT_TRUE(session.attached().empty());
  ChatSession blind(Options{}, ChatSettings{});
  EXPECT_TRUE(blind.Run("/image " + folder + "/a.png").is_error) << "a model of text alone";
}

TEST(ChatSession, UndoTakesBackAnExchange) {
  ChatSession session = MakeSession();
  EXPECT_EQ(session.Run("/undo").text, "/undo: nothing to take back");
  AddExchange(&session, "first", "1");
  AddExchange(&session, "second\nline", "2");
  EXPECT_EQ(session.Run("/undo").text, "taken back: second...");
  EXPECT_EQ(session.messages().size(), 2U);
  EXPECT_EQ(session.Run("/undo").text, "taken back: first");
  EXPECT_TRUE(session.messages().empty());
}

TEST(ChatSession, AnEmptyReplyTakesTheQuestionBack) {
  ChatSession session = MakeSession();
  AddExchange(&session, "a", "");
  EXPECT_TRUE(session.messages().empty());
}

TEST(ChatSession, ResetKeepsTheSettings) {
  ChatSession session = MakeSession();
  session.Run("/system Be brief.");
  AddExchange(&session, "a", "b");
  EXPECT_EQ(session.Run("/reset").text, "conversation forgotten");
  EXPECT_TRUE(session.messages().empty());
  EXPECT_EQ(session.Run("/system").text, "Be brief.");
  EXPECT_EQ(session.Run("/system off").text, "no instructions");
}

TEST(ChatSession, ParamsChangeTheOptions) {
  ChatSession session = MakeSession();
  EXPECT_EQ(session.Run("/params temperature 0.25").text, "temperature is 0.25");
  EXPECT_FLOAT_EQ(session.options().temperature.value_or(-1), 0.25F);
  EXPECT_EQ(session.Run("/params top_k = 7").text, "top_k is 7");
  EXPECT_EQ(session.Run("/params temperature default").text, "temperature is default");
  EXPECT_EQ(session.Run("/params temperature hot").text,
            "temperature: \"hot\", wanted a number from 0 to 100");
  EXPECT_EQ(session.Run("/params model x").text,
            "/params: unknown key \"model\" (/params lists them)");
  const std::string all = session.Run("/params").text;
  EXPECT_NE(all.find("top_k               7"), std::string::npos) << all;
  EXPECT_NE(all.find("seed                default"), std::string::npos) << all;
}

TEST(ChatSession, ThinkNeedsATemplateThatKnowsIt) {
  ChatSession session(Options{}, ChatSettings{});
  EXPECT_EQ(session.Run("/think on").text, "/think: the model's chat template knows no thinking");
  EXPECT_EQ(MakeSession().Run("/think").text, "thinking is off");
  EXPECT_EQ(MakeSession().Run("/think maybe").text, "/think: \"maybe\", wanted on or off");
}

TEST(ChatSession, StatsTellOfTheLastAnswer) {
  ChatSession session = MakeSession();
  EXPECT_EQ(session.Run("/stats").text, "no answer yet");
  AddExchange(&session, "a", "b");
  EXPECT_EQ(session.Run("/stats").text,
            "prompt    10 tokens in 0.500 s, 20.0 tokens/s\n"
            "reply     5 tokens in 2.000 s, 2.0 tokens/s, 6.00 MB/s of weights\n"
            "in all    1 answers, 5 tokens; 2 messages in the conversation");
}

TEST(ChatSession, SavesAndLoads) {
  const std::string path = testing::MakeTempDir() + "/chat.json";
  ChatSession session = MakeSession();
  session.Run("/system Be brief.");
  session.Run("/think on");
  AddExchange(&session, "a \"quoted\"\n日", "b");
  EXPECT_EQ(session.Run("/save " + path).text, "2 messages saved to " + path);
  ChatSession other = MakeSession();
  EXPECT_EQ(other.Run("/load " + path).text, "2 messages loaded from " + path);
  EXPECT_EQ(other.messages(), session.messages());
  EXPECT_EQ(other.options().system, "Be brief.");
  EXPECT_TRUE(other.options().think);
}

TEST(ChatSession, LoadRefusesOtherFiles) {
  const std::string path = testing::MakeTempDir() + "/chat.json";
  ChatSession session = MakeSession();
  AddExchange(&session, "kept", "kept");
  const auto load = [&](std::string_view text) {
    EXPECT_TRUE(WriteFile(path, text).ok());
    const auto answer = session.Run("/load " + path);
    EXPECT_TRUE(answer.is_error);
    EXPECT_TRUE(answer.text.starts_with(path)) << answer.text;
    EXPECT_EQ(session.messages().size(), 2U);
    return answer.text.substr(path.size());
  };
  EXPECT_EQ(
      load("{}"),
      ": no member \"format\" of value \"facet-chat\", wanted a conversation that /save wrote");
  EXPECT_EQ(load(R"({"format":"facet-chat","version":2})"), ": version: 2, wanted 1");
  EXPECT_EQ(load(R"({"format":"facet-chat","version":1})"),
            ": messages: null, wanted an array of questions and answers in turn");
  EXPECT_EQ(
      load(R"({"format":"facet-chat","version":1,"messages":[{"role":"user","content":"a"}]})"),
      ": messages: an odd number of them, wanted an array of questions and answers in turn");
  EXPECT_EQ(
      load(
          R"({"format":"facet-chat","version":1,"messages":[{"role":"user","content":"a"},{"role":"user"}]})"),
      ": messages[1].role: \"user\", wanted \"assistant\"");
  EXPECT_EQ(
      load(
          R"({"format":"facet-chat","version":1,"messages":[{"role":"user","content":1},{"role":"assistant"}]})"),
      ": messages[0].content: an integer, wanted a string or an array of parts");
  EXPECT_EQ(session.Run("/load").text, "/load: no file, wanted /load FILE");
  EXPECT_EQ(session.Run("/load /nothing/here").text,
            "/nothing/here: cannot open: No such file or directory");
}

TEST(ChatSession, ExitLeaves) {
  EXPECT_TRUE(MakeSession().Run("/exit").ends);
  EXPECT_TRUE(MakeSession().Run("/quit").ends);
  EXPECT_FALSE(MakeSession().Run("/help").ends);
}

}  // namespace
}  // namespace facet
