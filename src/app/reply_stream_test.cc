// SPDX-License-Identifier: Apache-2.0
#include "app/reply_stream.h"

#include <gtest/gtest.h>

#include <thread>

#include "app/loaded_model.h"

namespace facet {
namespace {

Event Token(int32_t token, std::string bytes) {
  Event event;
  event.token = token;
  event.bytes = std::move(bytes);
  return event;
}

std::string Joined(const std::vector<ReplyDelta>& deltas, ReplyDelta::Kind kind) {
  std::string text;
  for (const ReplyDelta& delta : deltas) {
    text += delta.kind == kind ? delta.text : "";
  }
  return text;
}

TEST(EventQueue, GivesEventsInOrderAndNothingWhenThereIsNone) {
  EventQueue queue;
  EXPECT_FALSE(queue.Pop().has_value());
  std::thread other([&queue] {
    for (int n = 0; n < 1000; ++n) {
      queue.Push(Token(n, ""));
    }
  });
  for (int n = 0; n < 1000;) {
    if (const std::optional<Event> event = queue.Pop()) {
      EXPECT_EQ(event->token, n);
      ++n;
    }
  }
  other.join();
}

class ReplyReaderTest : public ::testing::Test {
 protected:
  ReplyReaderTest() {
    ::testing::internal::CaptureStderr();
    auto model = LoadedModel::Load("");
    ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(model.ok());
    model_ = *std::move(model);
  }

  /// All that a reader hands out of `text`, token by token.
  std::vector<ReplyDelta> Read(const std::string& text, bool is_raw) {
    const Vocab& vocab = model_->vocab();
    ReplyReader reader(vocab, {}, Json(), is_raw);
    std::vector<ReplyDelta> all;
    for (const int id : model_->tokenizer().Encode(text, true)) {
      for (ReplyDelta& delta : reader.Push(Token(id, std::string(vocab.bytes(id))))) {
        all.push_back(std::move(delta));
      }
    }
    for (ReplyDelta& delta : reader.Finish()) {
      all.push_back(std::move(delta));
    }
    for (const ReplyDelta& delta : all) {
      EXPECT_NE(delta.text, "");
    }
    return all;
  }

  std::unique_ptr<LoadedModel> model_;
};

constexpr auto kContent = ReplyDelta::Kind::kContent;
constexpr auto kThought = ReplyDelta::Kind::kThought;

TEST_F(ReplyReaderTest, SplitsThoughtsFromContent) {
  const auto deltas = Read("<|channel>thought\nhm<channel|>Paris.", false);
  EXPECT_EQ(Joined(deltas, kThought), "hm");
  EXPECT_EQ(Joined(deltas, kContent), "Paris.");
}

TEST_F(ReplyReaderTest, TakesEverythingAsContentWhenRaw) {
  const auto deltas = Read("<|channel>thought\nhm<channel|>Paris.", true);
  EXPECT_EQ(Joined(deltas, kThought), "");
  EXPECT_EQ(Joined(deltas, kContent), "<|channel>thought\nhm<channel|>Paris.");
}

TEST_F(ReplyReaderTest, ReplacesACharacterThatIsNeverFinished) {
  ReplyReader reader(model_->vocab(), {}, Json(), true);
  EXPECT_TRUE(reader.Push(Token(5, "\xe2\x82")).empty());
  EXPECT_EQ(Joined(reader.Finish(), kContent), "\xef\xbf\xbd");
}

}  // namespace
}  // namespace facet
