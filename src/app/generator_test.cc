// SPDX-License-Identifier: Apache-2.0
#include "app/generator.h"

#include <gtest/gtest.h>

#include <csignal>

#include "app/terminal.h"

namespace facet {
namespace {

class GeneratorTest : public ::testing::Test {
 protected:
  GeneratorTest() {
    ::testing::internal::CaptureStderr();
    auto model = LoadedModel::Load("");
    ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(model.ok());
    model_ = *std::move(model);
    auto generator = Generator::Create(
        *model_, {}, *RunnerOptionsFrom({}, model_->checkpoint().config()), nullptr);
    EXPECT_TRUE(generator.ok()) << generator.error().Message();
    generator_.emplace(*std::move(generator));
  }

  Request MakeGreedyRequest(const std::string& text, bool thinking) {
    ChatRequest chat;
    chat.messages.Append(Json::MakeObject({{"role", "user"}, {"content", text}}));
    chat.thinking = thinking;
    const auto prompt = model_->chat_template().Render(chat);
    Options options;
    options.temperature = 0.0F;
    return MakeRequest(options, *model_,
                       TokenizePrompt(model_->tokenizer(), model_->vocab(), *prompt), 1);
  }

  std::unique_ptr<LoadedModel> model_;
  std::optional<Generator> generator_;
};

TEST_F(GeneratorTest, StreamsTheWholeReply) {
  std::string streamed;
  const auto reply =
      generator_->Generate(MakeGreedyRequest("What is the capital of France?", false), false,
                           [&](const ReplyDelta& delta) {
                             streamed += delta.text;
                             return Status();
                           });
  ASSERT_TRUE(reply.ok()) << reply.error().Message();
  EXPECT_EQ(reply->content, "The capital of France is Paris.");
  EXPECT_EQ(streamed, reply->content);
  EXPECT_EQ(reply->reason, FinishReason::kEndToken);
  EXPECT_GT(reply->stats.n_generated, 1);
}

TEST_F(GeneratorTest, SplitsThoughtsUnlessRaw) {
  const Request request = MakeGreedyRequest("What is 3 + 9 + 20?", true);
  const auto sink = [](const ReplyDelta&) { return Status(); };
  const auto reply = generator_->Generate(request, false, sink);
  ASSERT_TRUE(reply.ok());
  EXPECT_FALSE(reply->thought.empty());
  EXPECT_FALSE(reply->content.empty());
  const auto raw = generator_->Generate(request, true, sink);
  ASSERT_TRUE(raw.ok());
  EXPECT_TRUE(raw->thought.empty());
  EXPECT_NE(raw->content.find(reply->thought), std::string::npos) << raw->content;
}

TEST_F(GeneratorTest, AFailingSinkStopsTheReply) {
  int n_calls = 0;
  const auto reply = generator_->Generate(MakeGreedyRequest("Tell me a story about a fox.", false),
                                          false, [&n_calls](const ReplyDelta&) -> Status {
                                            ++n_calls;
                                            return Refuse("standard output", "closed");
                                          });
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().Message(), "standard output: closed");
  EXPECT_EQ(n_calls, 1);
}

TEST_F(GeneratorTest, AnInterruptKeepsWhatWasSaid) {
  InstallSignalHandlers();
  bool was_raised = false;
  Request request = MakeGreedyRequest("Tell me a story about a fox.", false);
  request.end_tokens.clear();
  request.stops_on_repetition = false;
  const auto reply = generator_->Generate(request, false, [&was_raised](const ReplyDelta&) {
    if (!was_raised) {
      was_raised = true;
      std::raise(SIGINT);
    }
    return Status();
  });
  ASSERT_TRUE(reply.ok()) << reply.error().Message();
  EXPECT_EQ(reply->reason, FinishReason::kCancelled);
  EXPECT_FALSE(reply->content.empty());
}

TEST_F(GeneratorTest, TellsBothNumbersOfAPromptThatIsTooLong) {
  Request request = MakeGreedyRequest("a", false);
  request.prompt.resize(5000, 100);
  const auto reply =
      generator_->Generate(request, false, [](const ReplyDelta&) { return Status(); });
  ASSERT_FALSE(reply.ok());
  EXPECT_NE(reply.error().Message().find("5000"), std::string::npos) << reply.error().Message();
  EXPECT_NE(reply.error().Message().find("4096"), std::string::npos) << reply.error().Message();
}

}  // namespace
}  // namespace facet
