// SPDX-License-Identifier: Apache-2.0
#include "app/reply_printer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>

#include "base/json.h"
#include "support/testing.h"

namespace facet {
namespace {

using Kind = ReplyDelta::Kind;

/// A pipe or a terminal whose other end is read.
class Output {
 public:
  explicit Output(bool is_terminal) {
    if (is_terminal) {
      read_ = ::posix_openpt(O_RDWR | O_NOCTTY);
      EXPECT_EQ(::grantpt(read_) + ::unlockpt(read_), 0);
      write_ = ::open(::ptsname(read_), O_RDWR | O_NOCTTY);
      EXPECT_GE(write_, 0);
      termios mode;
      ::tcgetattr(write_, &mode);
      ::cfmakeraw(&mode);
      ::tcsetattr(write_, TCSANOW, &mode);
    } else {
      int ends[2];
      EXPECT_EQ(::pipe(ends), 0);
      read_ = ends[0];
      write_ = ends[1];
    }
  }
  ~Output() {
    ::close(read_);
    ::close(write_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] int fd() const { return write_; }
  std::string Take() {
    char buffer[4096];
    EXPECT_EQ(::write(write_, "$", 1), 1);
    std::string all;
    while (!all.ends_with('$')) {
      const ssize_t got = ::read(read_, buffer, sizeof buffer);
      if (got <= 0) {
        break;
      }
      all.append(buffer, static_cast<size_t>(got));
    }
    all.pop_back();
    return all;
  }

 private:
  int read_ = -1;
  int write_ = -1;
};

TEST(TextPrinter, APipeGetsTheAnswerOnly) {
  Output pipe(false);
  TextPrinter printer(pipe.fd(), Style{});
  ASSERT_TRUE(printer.Print({Kind::kThought, "hmm"}).ok());
  ASSERT_TRUE(printer.Print({Kind::kContent, "a\x1b[31m"}).ok());
  ASSERT_TRUE(printer.Print({Kind::kContent, "\r\nb"}).ok());
  ASSERT_TRUE(printer.Finish().ok());
  EXPECT_EQ(pipe.Take(), "a\x1b[31m\r\nb\n");
}

TEST(TextPrinter, AddsNoSecondLineBreak) {
  Output pipe(false);
  TextPrinter printer(pipe.fd(), Style{});
  ASSERT_TRUE(printer.Print({Kind::kContent, "a\n"}).ok());
  ASSERT_TRUE(printer.Finish().ok());
  EXPECT_EQ(pipe.Take(), "a\n");
  ASSERT_TRUE(TextPrinter(pipe.fd(), Style{}).Finish().ok());
  EXPECT_EQ(pipe.Take(), "");
}

TEST(TextPrinter, ATerminalShowsThoughtsDimmedAndControlsHarmless) {
  if (!testing::HasTerminals()) {
    GTEST_SKIP() << testing::kNoTerminals;
  }
  Output terminal(true);
  TextPrinter printer(terminal.fd(), Style{"<b>", "<dim>", "<red>", "<reset>"});
  ASSERT_TRUE(printer.Print({Kind::kThought, "hm"}).ok());
  ASSERT_TRUE(printer.Print({Kind::kThought, "m"}).ok());
  ASSERT_TRUE(printer.Print({Kind::kContent, "a\x1b[2J"}).ok());
  ASSERT_TRUE(printer.Finish().ok());
  EXPECT_EQ(terminal.Take(), "<dim>hmm<reset>\n\na^[[2J\n");
}

TEST(TextPrinter, MarksThoughtsWithoutColours) {
  if (!testing::HasTerminals()) {
    GTEST_SKIP() << testing::kNoTerminals;
  }
  Output terminal(true);
  TextPrinter printer(terminal.fd(), Style{});
  ASSERT_TRUE(printer.Print({Kind::kThought, "hm"}).ok());
  ASSERT_TRUE(printer.Print({Kind::kContent, "a"}).ok());
  ASSERT_TRUE(printer.Finish().ok());
  EXPECT_EQ(terminal.Take(), "[thought] hm\n\na\n");
}

TEST(TextPrinter, TellsWhenItCannotWrite) {
  const Status status = TextPrinter(-1, Style{}).Print({Kind::kContent, "a"});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().Message(), "standard output: cannot write: Bad file descriptor");
}

TEST(JsonPrinter, PrintsOneObjectPerLine) {
  Output pipe(false);
  JsonPrinter printer(pipe.fd());
  ASSERT_TRUE(printer.Print({Kind::kThought, "a\nb"}).ok());
  Reply reply;
  reply.reason = FinishReason::kMaxTokens;
  reply.stats = {.n_prompt = 3,
                 .n_generated = 5,
                 .n_draft_rounds = 2,
                 .n_drafted = 4,
                 .n_accepted = 3,
                 .prefill_s = 0.5,
                 .decode_s = 2};
  ASSERT_TRUE(printer.Finish(reply, 0.25).ok());
  EXPECT_EQ(pipe.Take(),
            "{\"event\":\"delta\",\"kind\":\"thought\",\"text\":\"a\\nb\"}\n"
            "{\"event\":\"finish\",\"reason\":\"length\",\"usage\":{\"prompt_tokens\":3,"
            "\"completion_tokens\":5,"
            "\"total_tokens\":8},\"drafts\":{\"rounds\":2,\"drafted\":4,\"accepted\":3},"
            "\"timings\":{\"queue_s\":0.0,\"prefill_s\":0.5,\"decode_s\":2.0,"
            "\"prefill_tokens_per_s\":6.0,\"decode_tokens_per_s\":2.0,\"load_s\":0.25}}\n");
}

TEST(FinishNote, TellsEveryEndThatIsNotTheModels) {
  Reply reply;
  reply.stats.n_generated = 256;
  const auto note = [&reply](FinishReason reason) {
    reply.reason = reason;
    return FinishNote(reply, 4096);
  };
  EXPECT_EQ(note(FinishReason::kEndToken), "");
  EXPECT_EQ(note(FinishReason::kStopString), "");
  EXPECT_EQ(note(FinishReason::kMaxTokens), "[stopped: 256 tokens (-n)]");
  EXPECT_EQ(note(FinishReason::kContext), "[stopped: the context of 4096 positions is full (-c)]");
  EXPECT_EQ(note(FinishReason::kRepetition), "[stopped: the reply repeats itself]");
  EXPECT_EQ(note(FinishReason::kCancelled), "[interrupted]");
}

}  // namespace
}  // namespace facet
