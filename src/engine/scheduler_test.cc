// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>

#include "kv/plan.h"

namespace facet {
namespace {

SchedulerLimits Roomy() {
  return {.max_rows = 100,
          .max_rows_beside = 20,
          .max_sequences = 4,
          .window = 64,
          .n_sliding_blocks = 1000,
          .n_full_blocks = 1000};
}

/// "0:1 1:20" - rows per sequence, then "run N", and "preempt N" when there are any.
std::string Plan(const std::vector<SequenceState>& sequences, int n_running,
                 const SchedulerLimits& limits) {
  const StepPlan plan = PlanStep(sequences, n_running, limits);
  std::string text;
  for (const StepPlan::Rows& rows : plan.rows) {
    text += std::to_string(rows.sequence) + ":" + std::to_string(rows.n_rows) + " ";
  }
  text += "run " + std::to_string(plan.n_running);
  return plan.n_preempted > 0 ? text + " preempt " + std::to_string(plan.n_preempted) : text;
}

TEST(Scheduler, NothingToDo) { EXPECT_EQ(Plan({}, 0, Roomy()), "run 0"); }

TEST(Scheduler, ALonePromptIsPrefilledInTheLargestChunks) {
  EXPECT_EQ(Plan({{250, 0, 300}}, 0, Roomy()), "0:100 run 1");
  EXPECT_EQ(Plan({{250, 100, 300}}, 1, Roomy()), "0:100 run 1");
  EXPECT_EQ(Plan({{250, 200, 300}}, 1, Roomy()), "0:50 run 1");
  EXPECT_EQ(Plan({{251, 250, 300}}, 1, Roomy()), "0:1 run 1");
}

TEST(Scheduler, RunningStreamsGoFirstAndANewcomersChunkIsBounded) {
  EXPECT_EQ(Plan({{51, 50, 300}, {61, 60, 300}, {90, 0, 300}}, 2, Roomy()), "0:1 1:1 2:20 run 3");
  EXPECT_EQ(Plan({{90, 20, 300}, {61, 60, 300}}, 2, Roomy()), "0:20 1:1 run 2")
      << "also when it is the older";
}

TEST(Scheduler, ChunksGoToTheOldestAndWhatIsLeftToTheNext) {
  EXPECT_EQ(Plan({{70, 0, 300}, {70, 0, 300}, {70, 0, 300}}, 0, Roomy()), "0:70 1:30 run 2");
  EXPECT_EQ(Plan({{5, 4, 300}, {15, 0, 300}, {70, 0, 300}}, 1, Roomy()), "0:1 1:15 2:5 run 3");
}

TEST(Scheduler, NoMoreThanMaxSequencesRun) {
  SchedulerLimits limits = Roomy();
  limits.max_sequences = 2;
  EXPECT_EQ(Plan({{5, 0, 9}, {5, 0, 9}, {5, 0, 9}}, 0, limits), "0:5 1:5 run 2");
}

TEST(Scheduler, ANewcomerWaitsUntilItsWholePromptFitsBesideTheOthers) {
  SchedulerLimits limits = Roomy();
  limits.n_full_blocks = 10;
  // The first: 33 tokens and 32 to come are 3 blocks. 7 blocks are left for the second with its 32
  // to come.
  EXPECT_EQ(Plan({{33, 32, 300}, {192, 0, 300}}, 1, limits), "0:1 1:20 run 2");
  EXPECT_EQ(Plan({{33, 32, 300}, {193, 0, 300}}, 1, limits), "0:1 run 1");
  EXPECT_EQ(Plan({{33, 32, 300}, {193, 0, 193}}, 1, limits), "0:1 1:20 run 2")
      << "it will not grow";
  EXPECT_EQ(Plan({{33, 32, 300}, {193, 0, 300}, {1, 0, 300}}, 1, limits), "0:1 run 1")
      << "nobody passes it";
  EXPECT_EQ(Plan({{320, 0, 320}}, 0, limits), "0:100 run 1") << "a lone one always";
}

TEST(Scheduler, WhatANewcomerTakesUpFromOthersCountsAsItsOwn) {
  SchedulerLimits limits = Roomy();
  EXPECT_EQ(Plan({{33, 32, 300}, {192, 190, 300}}, 1, limits), "0:1 1:2 run 2");
  EXPECT_EQ(Plan({{33, 32, 300}, {192, 191, 300}}, 1, limits), "0:1 1:1 run 2");
  limits.n_full_blocks = 7;
  EXPECT_EQ(Plan({{33, 32, 300}, {192, 190, 192}}, 1, limits), "0:1 run 1")
      << "2 and 6 are too many";
  limits.n_full_blocks = 9;
  EXPECT_EQ(Plan({{33, 32, 300}, {192, 190, 192}}, 1, limits), "0:1 1:2 run 2");
  EXPECT_EQ(Plan({{288, 250, 288}}, 0, limits), "0:38 run 1");
}

TEST(Scheduler, TheYoungestGivesItsBlocksBack) {
  SchedulerLimits limits = Roomy();
  limits.n_full_blocks = 4;
  // All four blocks are held; the first needs a third one.
  EXPECT_EQ(Plan({{65, 64, 128}, {40, 39, 128}}, 2, limits), "0:1 run 1 preempt 1");
  // The second needs another and is the youngest: it waits with what it has.
  EXPECT_EQ(Plan({{64, 63, 128}, {65, 64, 128}}, 2, limits), "0:1 run 2");
}

TEST(Scheduler, AChunkLeavesTheYoungerTheirRow) {
  SchedulerLimits limits = Roomy();
  limits.max_rows_beside = 100;
  limits.n_full_blocks = 5;
  // Two blocks are free, and the second is about to begin one.
  EXPECT_EQ(Plan({{200, 64, 200}, {33, 32, 100}}, 2, limits), "0:32 1:1 run 2");
}

TEST(Scheduler, SlidingBlocksBoundAChunkAndNotTheContext) {
  SchedulerLimits limits = Roomy();
  limits.n_sliding_blocks = BlocksTouched(64);
  EXPECT_EQ(LargestContext(limits, 5000), 5000);
  EXPECT_EQ(Plan({{500, 0, 600}}, 0, limits), "0:96 run 1");
  EXPECT_EQ(Plan({{500, 96, 600}}, 1, limits), "0:32 run 1");
  limits.n_sliding_blocks = 2;
  EXPECT_EQ(LargestContext(limits, 5000), 64) << "the window itself does not fit";
  limits.window = 0;
  EXPECT_EQ(LargestContext(limits, 5000), 5000);
  limits.n_full_blocks = 3;
  EXPECT_EQ(LargestContext(limits, 5000), 96);
  EXPECT_EQ(LargestContext(limits, 90), 90);
}

TEST(Scheduler, SpansAreNeverCut) {
  const std::vector<RowSpan> spans = {{10, 50}, {50, 90}, {120, 300}};
  EXPECT_EQ(OutsideSpans(spans, 10), 10);
  EXPECT_EQ(OutsideSpans(spans, 11), 10);
  EXPECT_EQ(OutsideSpans(spans, 50), 50);
  EXPECT_EQ(OutsideSpans(spans, 89), 50);
  EXPECT_EQ(OutsideSpans(spans, 100), 100);
  EXPECT_EQ(OutsideSpans(spans, 299), 120);
  EXPECT_EQ(OutsideSpans({}, 7), 7);
  EXPECT_EQ(Plan({{400, 0, 500, spans}}, 0, Roomy()), "0:100 run 1") << "between two of them";
  EXPECT_EQ(Plan({{400, 10, 500, spans}}, 1, Roomy()), "0:100 run 1") << "past two";
  EXPECT_EQ(Plan({{400, 100, 500, spans}}, 1, Roomy()), "0:20 run 1") << "up to it";
  EXPECT_EQ(Plan({{400, 120, 500, spans}}, 1, Roomy()), "0:180 run 1") << "more than a step's rows";
  EXPECT_EQ(Plan({{51, 50, 300}, {400, 0, 500, spans}}, 1, Roomy()), "0:1 1:10 run 2");
  EXPECT_EQ(Plan({{51, 50, 300}, {400, 10, 500, spans}}, 2, Roomy()), "0:1 1:40 run 2")
      << "whole, also beside others";
  SchedulerLimits limits = Roomy();
  limits.n_full_blocks = 10;
  EXPECT_EQ(Plan({{400, 120, 500, spans}, {129, 128, 200}}, 2, limits), "0:180 run 1 preempt 1");
  EXPECT_EQ(Plan({{200, 199, 200}, {400, 50, 500, spans}}, 2, limits), "0:1 1:40 run 2");
  EXPECT_EQ(Plan({{250, 249, 250}, {400, 50, 500, spans}}, 2, limits), "0:1 run 2")
      << "the youngest waits for room for all of it";
}

SequenceState Drafting(int n_tokens, int n_computed, int n_most, int n_drafts) {
  return {.n_tokens = n_tokens, .n_computed = n_computed, .n_most = n_most, .n_drafts = n_drafts};
}

TEST(Scheduler, DraftsTakeWhatIsLeft) {
  EXPECT_EQ(Plan({Drafting(51, 50, 300, 4), {61, 60, 300}, Drafting(61, 60, 300, 3)}, 3, Roomy()),
            "0:5 1:1 2:4 run 3");
  EXPECT_EQ(Plan({Drafting(52, 50, 300, 4)}, 1, Roomy()), "0:2 run 1") << "not while it prefills";
  EXPECT_EQ(Plan({Drafting(51, 50, 300, 4), {90, 0, 300}}, 1, Roomy()), "0:5 1:20 run 2")
      << "prefill has its rows all the same";
  SchedulerLimits limits = Roomy();
  limits.max_rows = 26;
  EXPECT_EQ(Plan({Drafting(51, 50, 300, 4), {90, 0, 300}, Drafting(61, 60, 300, 4)}, 3, limits),
            "0:5 1:20 2:1 run 3")
      << "the older first";
  limits.max_rows_beside = 100;
  EXPECT_EQ(Plan({Drafting(51, 50, 300, 4), {90, 0, 300}}, 1, limits), "0:1 1:25 run 2");
}

TEST(Scheduler, DraftsPastTheLastTokenAreUseless) {
  // 51 tokens: one more is drawn from the newest token's row, one from each draft's.
  EXPECT_EQ(Plan({Drafting(51, 50, 55, 8)}, 1, Roomy()), "0:4 run 1");
  EXPECT_EQ(Plan({Drafting(51, 50, 52, 8)}, 1, Roomy()), "0:1 run 1");
}

TEST(Scheduler, DraftsTakeOnlyBlocksThatNobodyNeeds) {
  SchedulerLimits limits = Roomy();
  limits.n_full_blocks = 4;
  EXPECT_EQ(Plan({Drafting(63, 62, 128, 9), {33, 31, 128}}, 2, limits), "0:2 1:2 run 2")
      << "to the end of its block";
  limits.n_full_blocks = 5;
  EXPECT_EQ(Plan({Drafting(63, 62, 128, 9), {33, 31, 128}}, 2, limits), "0:10 1:2 run 2");
  // The youngest waits for a block, and drafts do not take what it might have next.
  limits.n_full_blocks = 4;
  EXPECT_EQ(Plan({Drafting(62, 61, 128, 9), {65, 64, 128}}, 2, limits), "0:3 run 2");
  // The youngest has no rows since the one before it prefills; its next one begins a block.
  const std::vector<SequenceState> states = {Drafting(63, 62, 128, 9), {90, 0, 128}, {90, 32, 128}};
  limits.n_full_blocks = 5;
  EXPECT_EQ(Plan(states, 3, limits), "0:2 1:20 run 3");
  limits.n_full_blocks = 6;
  EXPECT_EQ(Plan(states, 3, limits), "0:10 1:20 run 3");
  limits = Roomy();
  limits.window = 8;
  limits.n_sliding_blocks = 2;
  EXPECT_EQ(Plan({Drafting(63, 62, 128, 9), {20, 19, 128}}, 2, limits), "0:2 1:1 run 2");
  limits.n_sliding_blocks = 3;
  EXPECT_EQ(Plan({Drafting(63, 62, 128, 9), {20, 19, 128}}, 2, limits), "0:10 1:1 run 2");
}

/// A plan with drafts is the plan without and rows besides; how many.
int CheckDrafts(const StepPlan& plain, const StepPlan& plan,
                const std::vector<SequenceState>& sequences) {
  EXPECT_EQ(plan.n_running, plain.n_running);
  EXPECT_EQ(plan.n_preempted, plain.n_preempted);
  EXPECT_EQ(plan.rows.size(), plain.rows.size());
  int n_drafts_all = 0;
  for (size_t n = 0; n < std::min(plan.rows.size(), plain.rows.size()); ++n) {
    EXPECT_EQ(plan.rows[n].sequence, plain.rows[n].sequence);
    const SequenceState& sequence = sequences[static_cast<size_t>(plan.rows[n].sequence)];
    const int n_drafts = plan.rows[n].n_rows - plain.rows[n].n_rows;
    EXPECT_GE(n_drafts, 0);
    EXPECT_LE(n_drafts, sequence.n_drafts);
    EXPECT_TRUE(n_drafts == 0 || sequence.n_tokens - sequence.n_computed == 1);
    EXPECT_TRUE(n_drafts == 0 || sequence.n_tokens + n_drafts < sequence.n_most);
    n_drafts_all += n_drafts;
  }
  return n_drafts_all;
}

/// Random loads until all are done: the sums are right in every step, the oldest always moves, and
/// nothing hangs.
TEST(Scheduler, RandomLoadsFinishInsideTheirLimits) {
  std::mt19937 random(13);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int n_drafts_all = 0;
  for (int round = 0; round < 300; ++round) {
    SchedulerLimits limits{.max_rows = 1 + below(80), .max_rows_beside = 1 + below(30)};
    limits.max_sequences = 1 + below(std::min(limits.max_rows, 6));
    limits.window = below(2) == 0 ? 0 : 1 + below(100);
    limits.n_sliding_blocks = 1 + below(12);
    limits.n_full_blocks = 1 + below(20);
    const int n_context = LargestContext(limits, 400);
    std::vector<SequenceState> sequences;
    int n_running = 0;
    int n_to_come = 12;
    std::deque<std::vector<RowSpan>> all_spans;
    int longest_span = 1;
    for (int step = 0; n_to_come > 0 || !sequences.empty(); ++step) {
      ASSERT_LT(step, 100000);
      if (n_to_come > 0 && (sequences.empty() || below(10) == 0)) {
        const int n_prompt = 1 + below(n_context - 1);
        std::vector<RowSpan>& spans = all_spans.emplace_back();
        for (int begin = below(40); begin < n_prompt && below(4) > 0; begin += below(30)) {
          const int end = std::min(n_prompt, begin + 1 + below(120));
          const int n_seen = FirstVisible(begin, limits.window) / kBlockPositions;
          if (limits.window == 0 || BlocksFor(end) - n_seen <= limits.n_sliding_blocks) {
            spans.push_back({begin, end});
            longest_span = std::max(longest_span, end - begin);
          }
          begin = end;
        }
        sequences.push_back({n_prompt, 0, n_prompt + 1 + below(n_context - n_prompt), spans});
        --n_to_come;
      }
      for (size_t index = static_cast<size_t>(n_running); index < sequences.size(); ++index) {
        // A beginning of it was found computed, or not (any more).
        sequences[index].n_computed =
            below(2) == 0 ? 0
                          : OutsideSpans(sequences[index].spans, below(sequences[index].n_tokens));
      }
      std::vector<SequenceState> drafting = sequences;
      for (size_t index = 0; index < static_cast<size_t>(n_running); ++index) {
        drafting[index].n_drafts = below(3) == 0 ? 0 : below(20);
      }
      const StepPlan plan = PlanStep(drafting, n_running, limits);
      n_drafts_all += CheckDrafts(PlanStep(sequences, n_running, limits), plan, drafting);
      for (int n = 0; n < plan.n_preempted; ++n) {
        sequences[static_cast<size_t>(plan.n_running + n)].n_computed = 0;
      }
      ASSERT_LE(plan.n_running, limits.max_sequences);
      std::vector<int> n_rows(sequences.size());
      int n_rows_all = 0;
      for (const StepPlan::Rows& rows : plan.rows) {
        ASSERT_LT(rows.sequence, plan.n_running);
        ASSERT_GE(rows.n_rows, 1);
        n_rows[static_cast<size_t>(rows.sequence)] += rows.n_rows;
        n_rows_all += rows.n_rows;
      }
      ASSERT_LE(n_rows_all, limits.max_rows + longest_span - 1);
      ASSERT_GE(n_rows[0], 1) << "the oldest moves";
      int n_full = 0;
      int n_sliding = 0;
      for (size_t index = 0; index < sequences.size(); ++index) {
        SequenceState& sequence = sequences[index];
        if (static_cast<int>(index) >= plan.n_running) {
          continue;
        }
        const int n_after = sequence.n_computed + n_rows[index];
        n_full += BlocksFor(n_after);
        n_sliding +=
            BlocksFor(n_after) - FirstVisible(sequence.n_computed, limits.window) / kBlockPositions;
        ASSERT_EQ(OutsideSpans(sequence.spans, n_after), n_after);
        // Of the drafts some are right.
        const int n_drafts = std::max(0, n_after - sequence.n_tokens);
        const int n_accepted = n_drafts == 0 ? 0 : below(n_drafts + 1);
        sequence.n_tokens += n_accepted;
        sequence.n_computed = n_after - n_drafts + n_accepted;
        ASSERT_LE(sequence.n_computed, sequence.n_tokens);
        if (sequence.n_computed == sequence.n_tokens) {
          ++sequence.n_tokens;
        }
      }
      ASSERT_LE(n_full, limits.n_full_blocks);
      ASSERT_TRUE(limits.window == 0 || n_sliding <= limits.n_sliding_blocks);
      n_running = plan.n_running;
      for (size_t index = sequences.size(); index-- > 0;) {
        if (sequences[index].n_tokens >= sequences[index].n_most) {
          sequences.erase(sequences.begin() + static_cast<long>(index));
          n_running -= static_cast<int>(index) < n_running ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(n_drafts_all, 10000);
}

}  // namespace
}  // namespace facet
