// SPDX-License-Identifier: Apache-2.0
#include "app/trace.h"

#include <gtest/gtest.h>

#include "support/testing.h"

namespace facet {
namespace {

TEST(Trace, WritesPromptAndEvents) {
  const std::string path = testing::MakeTempDir() + "/trace.jsonl";
  {
    auto trace = Trace::Create(path);
    ASSERT_TRUE(trace.ok()) << trace.error().Message();
    trace->WritePrompt({.prompt = {{{"<|turn>user\n", true}, {"<|turn>", false}}},
                        .tokens = {2, 15},
                        .media = {},
                        .notices = {}});
    Event event;
    event.token = 7;
    event.bytes = "\xe6\x97";
    trace->WriteEvent(event);
    event.kind = Event::Kind::kFinished;
    event.bytes.clear();
    event.reason = FinishReason::kMaxTokens;
    event.stats.n_prompt = 2;
    event.stats.n_generated = 1;
    trace->WriteEvent(event);
    EXPECT_TRUE(trace->status().ok());
  }
  const std::vector<Json> lines = testing::JsonLinesOrDie(path);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].Dump(),
            R"({"trace":"prompt","runs":[{"text":"<|turn>user\n","parse_special":true},)"
            R"({"text":"<|turn>","parse_special":false}],"tokens":[2,15]})");
  EXPECT_EQ(lines[1].Dump(), R"({"trace":"token","token":7,"bytes":"e697"})");
  EXPECT_EQ(lines[2]["reason"].as_string(), "length");
  EXPECT_EQ(lines[2]["usage"]["total_tokens"].as_int(), 3);
}

TEST(Trace, TellsWhenItCannotBeWritten) {
  const auto missing = Trace::Create("/nothing/here");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().Message(), "/nothing/here: cannot create: No such file or directory");
  auto full = Trace::Create("/dev/full");
  ASSERT_TRUE(full.ok());
  full->WriteEvent(Event{});
  ASSERT_FALSE(full->status().ok());
  EXPECT_EQ(full->status().error().Message(), "/dev/full: cannot write: No space left on device");
}

}  // namespace
}  // namespace facet
