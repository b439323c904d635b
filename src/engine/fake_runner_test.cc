// SPDX-License-Identifier: Apache-2.0
// The fake must see the mistakes that it is there to find.
#include "engine/fake_runner.h"

#include <gtest/gtest.h>

namespace facet::testing {
namespace {

constexpr RunnerInfo kInfo{
    .n_vocab = 8, .n_context = 100, .sliding_window = 4, .n_sliding_blocks = 4, .n_full_blocks = 4};

Batch MakeBatch(const std::vector<BlockId>& sliding, const std::vector<BlockId>& full,
                int first_pos, const std::vector<int32_t>& tokens) {
  Batch batch;
  batch.sequences.push_back({sliding, full});
  for (size_t n = 0; n < tokens.size(); ++n) {
    batch.rows.push_back({.pos = first_pos + static_cast<int>(n),
                          .token = tokens[n],
                          .wants_logits = n + 1 == tokens.size()});
  }
  return batch;
}

std::vector<float> HashOf(const std::vector<int32_t>& history) {
  std::vector<float> logits(8);
  HashLogits(history, logits);
  return logits;
}

TEST(FakeRunner, LogitsFollowTheHistoryHoweverItIsChunked) {
  FakeRunner runner(kInfo, HashLogits);
  const std::vector<BlockId> blocks{2};
  ASSERT_TRUE(runner.Run(MakeBatch(blocks, blocks, 0, {1, 2, 3})).ok());
  const auto logits = runner.Run(MakeBatch(blocks, blocks, 3, {4, 5}));
  ASSERT_TRUE(logits.ok());
  EXPECT_EQ(std::vector<float>(logits->begin(), logits->end()), HashOf({1, 2, 3, 4, 5}));
  EXPECT_TRUE(runner.faults().empty());
}

TEST(FakeRunner, WrongBlocksAreSeen) {
  const std::vector<BlockId> right{2};
  const std::vector<BlockId> wrong{3};
  const std::vector<BlockId> none;
  const struct {
    const std::vector<BlockId>& sliding;
    const std::vector<BlockId>& full;
    int pos;
    std::string fault;
  } cases[] = {{right, wrong, 3, "position 0 is visible, its block holds -1"},
               {wrong, right, 3, "position 0 is visible, its block holds -1"},
               {none, right, 3, "position 0 is visible and has no block"},
               {right, right, 4, "position 3 is visible, its block holds -1"}};
  for (const auto& sample : cases) {
    FakeRunner runner(kInfo, HashLogits);
    ASSERT_TRUE(runner.Run(MakeBatch(right, right, 0, {1, 2, 3})).ok());
    const auto logits = runner.Run(MakeBatch(sample.sliding, sample.full, sample.pos, {4}));
    ASSERT_TRUE(logits.ok());
    EXPECT_NE(std::vector<float>(logits->begin(), logits->end()), HashOf({1, 2, 3, 4}));
    ASSERT_FALSE(runner.faults().empty());
    EXPECT_EQ(runner.faults().front(), sample.fault);
  }
}

TEST(FakeRunner, SharedBlocksAndGapsAreSeen) {
  FakeRunner runner(kInfo, HashLogits);
  const std::vector<BlockId> blocks{0};
  Batch batch = MakeBatch(blocks, blocks, 0, {1});
  batch.sequences.push_back({blocks, blocks});
  batch.rows.push_back({.sequence = 1, .pos = 0, .token = 2});
  batch.rows.push_back({.sequence = 1, .pos = 2, .token = 2});
  ASSERT_TRUE(runner.Run(batch).ok());
  EXPECT_EQ(runner.faults()[0], "row at position 2 after 0");
  EXPECT_EQ(runner.faults()[1], "block 0 is written by two sequences");
}

TEST(FakeRunner, DraftsFollowTheHistoryAndItsHiddenRow) {
  RunnerInfo info = kInfo;
  info.n_embd = 1;
  FakeRunner runner(info, HashLogits);
  std::vector<int32_t> seen;
  runner.propose = [&](std::span<const int32_t> history, int n) {
    seen.assign(history.begin(), history.end());
    return std::vector<int32_t>(static_cast<size_t>(n), 5);
  };
  const std::vector<BlockId> blocks{2};
  ASSERT_TRUE(runner.Run(MakeBatch(blocks, blocks, 0, {1, 2, 3})).ok());
  ASSERT_EQ(runner.hidden().size(), 1U);
  const std::vector<float> hidden(runner.hidden().begin(), runner.hidden().end());
  const DraftTask task{
      .token = 4, .pos = 3, .hidden = hidden, .blocks = {blocks, blocks}, .n_drafts = 2};
  EXPECT_EQ(*runner.Draft(std::vector{task}), (std::vector<int32_t>{5, 5}));
  EXPECT_EQ(seen, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_TRUE(runner.faults().empty());
  ASSERT_TRUE(runner.Run(MakeBatch(blocks, blocks, 3, {4})).ok());
  const DraftTask stale{
      .token = 6, .pos = 4, .hidden = hidden, .blocks = {blocks, blocks}, .n_drafts = 1};
  ASSERT_TRUE(runner.Draft(std::vector{stale}).ok());
  ASSERT_EQ(runner.faults().size(), 1U);
  EXPECT_EQ(runner.faults().front(), "drafts at position 4 from another row's hidden state");
}

TEST(FakeRunner, SaysItsReply) {
  FakeRunner runner(kInfo, Say(2, {5, 6}));
  const std::vector<BlockId> blocks{0};
  EXPECT_EQ((*runner.Run(MakeBatch(blocks, blocks, 0, {1, 2})))[5], 20);
  EXPECT_EQ((*runner.Run(MakeBatch(blocks, blocks, 2, {5})))[6], 20);
  EXPECT_EQ((*runner.Run(MakeBatch(blocks, blocks, 3, {6})))[6], 20);
}

}  // namespace
}  // namespace facet::testing
