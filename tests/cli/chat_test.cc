// SPDX-License-Identifier: Apache-2.0
// `facet` at a terminal, with keys typed as a person types them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "base/file.h"
#include "base/json.h"
#include "cli/process.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

const std::vector<std::string> kChat = {"run", "--temp", "0"};
constexpr std::string_view kStory = "Count from 1 to 20.";

class AtATerminal : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasTerminals()) {
      GTEST_SKIP() << kNoTerminals;
    }
  }
};
using Chat = AtATerminal;
using OneShot = AtATerminal;

TEST_F(Chat, AnswersAndLeaves) {
  TerminalProcess chat(kChat, {});
  chat.ReadUntil("/help lists the commands.");
  chat.ReadUntil("> ");
  chat.Type("What is the capital of France?\r");
  chat.ReadUntil("The capital of France is Paris.\n");
  chat.ReadUntil("> ");
  chat.Type("\x04");
  EXPECT_EQ(chat.Wait(), 0);
  EXPECT_TRUE(chat.is_cooked());
}

TEST_F(Chat, KnowsItsCommands) {
  const std::string file = MakeTempDir() + "/chat.json";
  TerminalProcess chat(kChat, {});
  chat.ReadUntil("> ");
  chat.Type("/undo\r");
  chat.ReadUntil("/undo: nothing to take back");
  chat.Type("What is the capital of France?\r");
  chat.ReadUntil("Paris.\n");
  chat.Type("/stats\r");
  chat.ReadUntil("1 answers");
  chat.Type("/params top_k 5\r");
  chat.ReadUntil("top_k is 5");
  chat.Type("/save " + file + "\r");
  chat.ReadUntil("2 messages saved");
  chat.Type("/undo\r");
  chat.ReadUntil("taken back: What is the capital of France?");
  chat.Type("/load " + file + "\r");
  chat.ReadUntil("2 messages loaded");
  chat.Type("/exit\r");
  EXPECT_EQ(chat.Wait(), 0);
  EXPECT_EQ(JsonOrDie(file)["messages"].items().at(1)["content"].as_string(),
            "The capital of France is Paris.");
}

TEST_F(Chat, KeepsAHistoryForItsOwner) {
  const std::string home = MakeTempDir();
  {
    TerminalProcess chat(kChat, {"HOME=" + home});
    chat.ReadUntil("> ");
    chat.Type("/think off\r");
    chat.ReadUntil("thinking is off");
    chat.ReadUntil("> ");
    chat.Type("\x04");
    EXPECT_EQ(chat.Wait(), 0);
  }
  struct stat info {};
  ASSERT_EQ(::stat((home + "/.local/state/facet/history").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  TerminalProcess chat(kChat, {"HOME=" + home});
  chat.ReadUntil("> ");
  chat.Type("\x1b[A");
  chat.ReadUntil("/think off");
  chat.Type("\r");
  chat.ReadUntil("thinking is off");
  chat.Type("/exit\r");
  EXPECT_EQ(chat.Wait(), 0);
}

TEST_F(Chat, CtrlCStopsTheReplyOnly) {
  TerminalProcess chat({"run", "--temp", "0", "-t", "1"}, {});
  chat.ReadUntil("> ");
  chat.Type(std::string(kStory) + "\r");
  chat.ReadUntil("\n");
  chat.Signal(SIGINT);
  chat.ReadUntil("> ");
  chat.Type("/system\r");
  chat.ReadUntil("no instructions");
  chat.Type("/exit\r");
  EXPECT_EQ(chat.Wait(), 0);
}

TEST_F(Chat, TwoCtrlCOnAnEmptyLineLeave) {
  TerminalProcess chat(kChat, {});
  chat.ReadUntil("> ");
  chat.Type("abc\x03");
  chat.Type("\x03");
  chat.ReadUntil("Ctrl-C again or Ctrl-D leaves.");
  chat.ReadUntil("> ");
  chat.Type("\x03");
  EXPECT_EQ(chat.Wait(), 0);
  EXPECT_TRUE(chat.is_cooked());
}

TEST_F(Chat, APasteWaitsForEnter) {
  TerminalProcess chat(kChat, {});
  chat.ReadUntil("> ");
  chat.Type("\x1b[200~/system one\rtwo\x1b[201~");
  chat.ReadUntil("two");
  chat.Type("\r");
  chat.ReadUntil("instructions set");
  chat.Type("/system\r");
  chat.ReadUntil("one\ntwo\n");
  chat.Type("/exit\r");
  EXPECT_EQ(chat.Wait(), 0);
}

TEST_F(Chat, EditsWideCharactersAndSurvivesAResize) {
  TerminalProcess chat(kChat, {});
  chat.ReadUntil("> ");
  chat.Type("/system 日本語x");
  chat.ReadUntil("日本語x");
  chat.Resize(20, 10);
  chat.Type("\x7f\x7f");
  chat.Type("\x1b[D国\r");
  chat.ReadUntil("instructions set");
  chat.Type("/system\r");
  chat.ReadUntil("日国本");
  chat.Type("/exit\r");
  EXPECT_EQ(chat.Wait(), 0);
}

TEST_F(Chat, SIGTERMPutsTheTerminalRight) {
  TerminalProcess chat(kChat, {});
  chat.ReadUntil("> ");
  EXPECT_FALSE(chat.is_cooked());
  chat.Signal(SIGTERM);
  EXPECT_EQ(chat.Wait(), -SIGTERM);
  EXPECT_TRUE(chat.is_cooked());
}

TEST_F(Chat, WorksOnADumbTerminal) {
  TerminalProcess chat(kChat, {"TERM=dumb"});
  chat.ReadUntil("> ");
  chat.Type("/system\n");
  chat.ReadUntil("no instructions");
  chat.Type("/exit\n");
  EXPECT_EQ(chat.Wait(), 0);
  EXPECT_EQ(chat.raw().find('\x1b'), std::string::npos);
}

TEST_F(OneShot, DimsThoughtsUnlessColoursAreUnwanted) {
  const std::vector<std::string> think = {"run", "--temp", "0", "--think", "What is 3 + 9 + 20?"};
  TerminalProcess colours(think, {});
  EXPECT_EQ(colours.Wait(), 0);
  EXPECT_NE(colours.raw().find("\x1b[2m"), std::string::npos) << colours.raw();
  TerminalProcess plain(think, {"NO_COLOR=1"});
  EXPECT_EQ(plain.Wait(), 0);
  EXPECT_EQ(plain.raw().find("\x1b["), std::string::npos) << plain.raw();
  EXPECT_NE(plain.raw().find("[thought] "), std::string::npos) << plain.raw();
}

TEST_F(OneShot, CtrlCEndsWith130) {
  // End tokens cannot be drawn, so that the reply is long.
  TerminalProcess run({"run", "--temp", "1", "-t", "1", "--logit-bias", "1=-100", "--logit-bias",
                       "16=-100", "--logit-bias", "9=-100", std::string(kStory)},
                      {});
  run.ReadUntil("1");
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 130);
  EXPECT_NE(run.raw().find("[interrupted]"), std::string::npos) << run.raw();
}

}  // namespace
}  // namespace facet::testing
