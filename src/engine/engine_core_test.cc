// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "engine/engine_core_testing.h"

namespace facet {
namespace {

using testing::AddRandomMedia;
using testing::HashLogits;
using testing::Info;
using testing::kVocab;
using testing::Machine;
using testing::MakeItem;
using testing::MakeRequest;
using testing::MediaInfo;
using testing::Options;
using testing::RandomRequest;
using testing::Reply;
using testing::Say;
using testing::Solo;

TEST(EngineCore, EveryEndOfAReply) {
  const auto play = [](const std::vector<int32_t>& reply,
                       const std::function<void(Request&)>& change) {
    Machine machine(Say(3, reply), Info(400));
    Request request = MakeRequest(1, 3, -1);
    request.sampling.temperature = 0;
    request.end_tokens = {39};
    change(request);
    machine.Add(request);
    machine.StepUntilIdle();
    return machine.replies[1];
  };
  const Reply end = play({0, 1, 39}, [](Request&) {});
  EXPECT_EQ(end.text, "ab");
  EXPECT_EQ(end.tokens, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(end.finished->reason, FinishReason::kEndToken);
  EXPECT_EQ(end.finished->token, 39);
  EXPECT_EQ(end.finished->stats.n_generated, 3);
  EXPECT_EQ(end.finished->stats.n_prompt, 3);

  const Reply stop = play({0, 18, 19, 14, 15, 1}, [](Request& r) { r.stop = {"zz", "stop"}; });
  EXPECT_EQ(stop.text, "a");
  EXPECT_EQ(stop.tokens, (std::vector<int32_t>{0}));
  EXPECT_EQ(stop.finished->reason, FinishReason::kStopString);
  EXPECT_EQ(stop.finished->token, -1);
  EXPECT_EQ(stop.finished->stats.n_generated, 5);

  const Reply held = play({0, 18, 19, 39}, [](Request& r) { r.stop = {"stop"}; });
  EXPECT_EQ(held.text, "ast") << "what was held belongs to the reply after all";
  EXPECT_EQ(held.finished->reason, FinishReason::kEndToken);

  const Reply limit = play({0, 1, 2, 3}, [](Request& r) { r.max_tokens = 2; });
  EXPECT_EQ(limit.text, "ab");
  EXPECT_EQ(limit.finished->reason, FinishReason::kMaxTokens);

  std::vector<int32_t> counting;
  for (int32_t n = 0; n < 500; ++n) {
    counting.push_back(n * n % 37 % 26);
  }
  counting[70] = 25;  // no cycle
  counting[170] = 24;
  counting[270] = 23;
  const Reply full = play(counting, [](Request& r) { r.stops_on_repetition = false; });
  EXPECT_EQ(full.finished->reason, FinishReason::kContext);
  EXPECT_EQ(full.finished->stats.n_generated, 397);

  const Reply loop = play({5}, [](Request&) {});
  EXPECT_EQ(loop.finished->reason, FinishReason::kRepetition);
  EXPECT_EQ(loop.finished->stats.n_generated, 256);
  EXPECT_EQ(loop.text, std::string(256, 'f'));

  const Reply suppressed = play({7}, [](Request& r) {
    r.suppressed_tokens = {7};
    r.max_tokens = 1;
  });
  EXPECT_EQ(suppressed.text, "a") << "the runner-up, lowest id";
}

TEST(EngineCore, RefusesWhatCanNeverFit) {
  Machine machine(HashLogits, Info(2000, 10));  // 320 positions of blocks
  EXPECT_EQ(machine.core.info().n_context, 320);
  EXPECT_EQ(machine.core.Add(MakeRequest(1, 320, 1), 0).error().Message(),
            "prompt: 320 tokens, wanted at most 319 (a context of 320 with room for a reply)");
  machine.Add(MakeRequest(1, 319, -1));
  EXPECT_EQ(machine.core.Add(MakeRequest(1, 3, 1), 0).error().Message(),
            "id: 1, which is running, wanted an unused one");
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[1].finished->reason, FinishReason::kContext);
  machine.Add(MakeRequest(2, 300, -1));
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[2].finished->stats.n_generated, 20);
}

TEST(EngineCore, OnlyTheLastRowOfAPromptWantsLogits) {
  Machine machine(HashLogits);
  std::vector<std::string> steps;
  machine.runner.before_run = [&](const Batch& batch) {
    const auto n_wanted = std::count_if(batch.rows.begin(), batch.rows.end(),
                                        [](const Row& row) { return row.wants_logits; });
    steps.push_back(std::to_string(batch.rows.size()) + "/" + std::to_string(n_wanted));
    return Status();
  };
  machine.Add(MakeRequest(1, 130, 3));
  machine.StepUntilIdle();
  EXPECT_EQ(steps, (std::vector<std::string>{"64/0", "64/0", "2/1", "1/1", "1/1"}));
  EXPECT_EQ(machine.core.counters().n_steps, 5);
  EXPECT_EQ(machine.core.counters().n_rows, 132);
}

TEST(EngineCore, TimesAreReported) {
  Machine machine(HashLogits);
  machine.now_s = 10;
  ASSERT_TRUE(machine.core.Add(MakeRequest(1, 100, 4), 7.5).ok());
  machine.StepUntilIdle();
  const RequestStats& stats = machine.replies[1].finished->stats;
  EXPECT_EQ(stats.queue_s, 2.5);
  EXPECT_EQ(stats.prefill_s, 2);
  EXPECT_EQ(stats.decode_s, 3);
}

TEST(EngineCore, AStreamMovesWhileANewcomerIsPrefilled) {
  Machine machine(HashLogits);
  machine.Add(MakeRequest(1, 5, 100));
  machine.Step();
  machine.Add(MakeRequest(2, 160, 5));
  for (size_t n = 2; n <= 11; ++n) {
    machine.Step();
    EXPECT_EQ(machine.replies[1].tokens.size(), n) << "a token in every step";
  }
  EXPECT_EQ(machine.replies[2].tokens.size(), 1U) << "160 rows in steps of 16";
  machine.StepUntilIdle();
}

TEST(EngineCore, CancellingFreesAtOnce) {
  Machine machine(HashLogits);
  machine.Add(MakeRequest(1, 100, -1));
  machine.Add(MakeRequest(2, 100, -1));
  for (int n = 0; n < 10; ++n) {
    machine.Step();
  }
  const int n_free = machine.core.full_pool().n_free();
  machine.core.Cancel(1);
  machine.core.Cancel(77);  // unknown: nothing happens
  EXPECT_GT(machine.core.full_pool().n_free(), n_free);
  EXPECT_EQ(machine.core.n_running(), 1);
  machine.Step();
  EXPECT_EQ(machine.replies[1].finished->reason, FinishReason::kCancelled);
  EXPECT_FALSE(machine.replies[2].finished);
  machine.core.CancelAll();
  EXPECT_TRUE(machine.core.has_work()) << "the end is still to be told";
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[2].finished->reason, FinishReason::kCancelled);
}

TEST(EngineCore, CancellingReleasesWhatWasHeld) {
  Machine machine(Say(3, {0, 18, 19}));
  Request request = MakeRequest(1, 3, -1);
  request.sampling.temperature = 0;
  request.stop = {"stop"};
  machine.Add(request);
  for (int n = 0; n < 3; ++n) {
    machine.Step();
  }
  EXPECT_EQ(machine.replies[1].text, "a");
  machine.core.Cancel(1);
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[1].text, "ast");
}

TEST(EngineCore, UnsoundLogitsEndOneRequestAndNoOther) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const Request sick = MakeRequest(1, 10, 20);
    const Request healthy = MakeRequest(2, 11, 20);
    Machine machine([&](std::span<const int32_t> history, std::span<float> logits) {
      HashLogits(history, logits);
      if (history.size() == 14 && history[0] == sick.prompt[0]) {
        logits[3] = bad;
      }
    });
    machine.Add(sick);
    machine.Add(healthy);
    machine.StepUntilIdle();
    const Event& finished = *machine.replies[1].finished;
    EXPECT_EQ(finished.reason, FinishReason::kError);
    EXPECT_EQ(finished.error, bad > 0 ? "logits: inf at token 3, wanted finite numbers"
                                      : "logits: nan at token 3, wanted finite numbers");
    EXPECT_EQ(finished.stats.n_generated, 4);
    EXPECT_EQ(machine.replies[2], Solo(healthy));
  }
}

TEST(EngineCore, ARefusedBatchEndsItsSequences) {
  Machine machine(HashLogits);
  machine.Add(MakeRequest(1, 10, 20));
  int n_runs = 0;
  machine.runner.before_run = [&](const Batch&) -> Status {
    return ++n_runs == 3 ? Status(Refuse("device", "lost")) : Status();
  };
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[1].finished->reason, FinishReason::kError);
  EXPECT_EQ(machine.replies[1].finished->error, "device: lost");
  machine.Add(MakeRequest(2, 10, 20));
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[2], Solo(MakeRequest(2, 10, 20)));
}

TEST(EngineCore, PreemptionGivesTheSameOutput) {
  Machine machine(HashLogits, Info(2000, 12));
  std::vector<Request> requests;
  for (uint64_t id = 1; id <= 4; ++id) {
    requests.push_back(MakeRequest(id, 20, 200));
    requests.back().sampling.frequency_penalty = 0.5F;
    machine.Add(requests.back());
  }
  machine.StepUntilIdle();
  EXPECT_GT(machine.core.counters().n_preempted, 0);
  for (const Request& request : requests) {
    EXPECT_EQ(machine.replies[request.id], Solo(request)) << request.id;
  }
}

TEST(EngineCore, TwelveParallelRequestsEqualTheirSoloRuns) {
  const int n_prompts[] = {3, 17, 32, 33, 64, 100, 200, 333, 512, 777, 1000, 1500};
  Machine machine(HashLogits, Info(2000, 130));
  std::vector<Request> requests;
  for (const int n_prompt : n_prompts) {
    Request request = MakeRequest(requests.size() + 1, n_prompt, 60);
    if (requests.size() % 3 == 1) {
      request.end_tokens = {1, 2, 3};  // ends early
    }
    if (requests.size() % 4 == 2) {
      request.sampling.temperature = 0;
    }
    request.sampling.repetition_penalty = requests.size() % 2 == 0 ? 1.0F : 1.2F;
    requests.push_back(request);
    machine.Add(request);
  }
  while (machine.replies[5].tokens.size() < 10) {
    machine.Step();
  }
  machine.core.Cancel(5);
  machine.StepUntilIdle();
  for (const Request& request : requests) {
    const Reply& reply = machine.replies[request.id];
    const Reply solo = Solo(request);
    if (request.id == 5) {
      EXPECT_EQ(reply.finished->reason, FinishReason::kCancelled);
      EXPECT_EQ(reply.tokens, std::vector<int32_t>(solo.tokens.begin(), solo.tokens.begin() + 10));
      continue;
    }
    EXPECT_EQ(reply, solo) << request.id;
  }
}

/// Arrivals, lengths, pools, limits and cancels at random.
void PlayRandomLoad(unsigned seed, int64_t& n_preempted) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  EngineOptions options = Options();
  options.max_rows = 1 + below(90);
  options.max_rows_beside = 1 + below(40);
  options.max_sequences = 1 + below(8);
  RunnerInfo info = MediaInfo(300, 6 + below(12));
  info.sliding_window = below(3) == 0 ? 0 : 1 + below(100);
  info.n_sliding_blocks = 4 + below(10);
  Machine machine(HashLogits, info, options);
  std::map<uint64_t, Request> requests;
  std::map<uint64_t, bool> cancelled;
  uint64_t next_id = 1;
  for (int step = 0; next_id <= 15 || machine.core.has_work(); ++step) {
    ASSERT_LT(step, 100000) << "no end";
    if (next_id <= 15 && below(3) == 0) {
      Request request = RandomRequest(next_id, random, machine.core.info().n_context);
      if (below(2) == 0) {
        AddRandomMedia(machine.core.info(), random, &request);
      }
      machine.Add(request);
      requests.emplace(next_id++, std::move(request));
    }
    if (!requests.empty() && below(60) == 0) {
      const auto id = 1 + static_cast<uint64_t>(below(static_cast<int>(requests.size())));
      cancelled[id] = cancelled[id] || !machine.replies[id].finished;
      machine.core.Cancel(id);
    }
    machine.Step();
    ASSERT_LE(machine.core.n_running(), options.max_sequences);
  }
  machine.ExpectClean();
  n_preempted += machine.core.counters().n_preempted;
  for (const auto& [id, request] : requests) {
    Machine alone(HashLogits, info, options);
    alone.Add(request);
    alone.StepUntilIdle();
    const Reply& reply = machine.replies[id];
    const Reply& solo = alone.replies[id];
    if (!cancelled[id]) {
      EXPECT_EQ(reply, solo) << "seed " << seed << " request " << id;
      continue;
    }
    EXPECT_EQ(reply.finished->reason, FinishReason::kCancelled);
    ASSERT_LE(reply.finished->stats.n_generated, solo.finished->stats.n_generated);
    // What was held for a stop text is released by a cancel, so that either may be the longer.
    const size_t n_common = std::min(solo.text.size(), reply.text.size());
    EXPECT_EQ(reply.text.substr(0, n_common), solo.text.substr(0, n_common));
  }
}

Request MediaRequest(uint64_t id) {
  Request request = MakeRequest(id, 400, 20);
  request.media = {{10, MakeItem(1, 100)},
                   {110, MakeItem(2, 30)},
                   {150, MakeItem(3, 200, MediaKind::kAudio)},
                   {390, MakeItem(4, 9)}};
  return request;
}

TEST(EngineCore, MediaAreEncodedWhenTheirRowsAreDueAndOnce) {
  Machine machine(HashLogits, MediaInfo());
  std::vector<std::string> chunks;
  machine.runner.before_run = [&](const Batch& batch) {
    chunks.push_back(std::to_string(batch.rows.size()) + " rows, " +
                     std::to_string(batch.soft.size()) + " soft");
    return Status();
  };
  machine.Add(MediaRequest(1));
  machine.StepUntilIdle();
  // At most 64 rows a step. Pictures are taken whole, sound is cut.
  ASSERT_GE(chunks.size(), 8U);
  chunks.resize(8);
  EXPECT_EQ(chunks,
            (std::vector<std::string>{"10 rows, 0 soft", "100 rows, 100 soft", "64 rows, 54 soft",
                                      "64 rows, 64 soft", "64 rows, 64 soft", "64 rows, 48 soft",
                                      "34 rows, 9 soft", "1 rows, 0 soft"}));
  ASSERT_EQ(machine.runner.encoded().size(), 3U);
  EXPECT_EQ(machine.runner.encoded()[1].size(), 2U) << "what is due together is encoded together";
  EXPECT_EQ(machine.replies[1], Solo(MediaRequest(1)));
  machine.Add(MediaRequest(2));
  machine.StepUntilIdle();
  EXPECT_EQ(machine.runner.encoded().size(), 3U) << "remembered";
  Request other = MediaRequest(3);
  other.media[3].item = MakeItem(5, 9);
  Request same_but_media = other;
  same_but_media.media = MediaRequest(3).media;
  EXPECT_NE(Solo(other).tokens, Solo(same_but_media).tokens) << "the test sees pictures";
}

TEST(EngineCore, AnItemThatCannotBeEncodedEndsItsRequestAlone) {
  Machine machine(HashLogits, MediaInfo());
  const MediaItemPtr bad = MakeItem(9, 12);
  machine.runner.before_encode = [&](std::span<const MediaItem* const> items) -> Status {
    for (const MediaItem* item : items) {
      if (item == bad.get()) {
        return Refuse("picture", "too wide", "narrower");
      }
    }
    return {};
  };
  Request spoiled = MakeRequest(1, 40, 5);
  spoiled.media = {{3, bad}};
  Request fine = MakeRequest(2, 40, 5);
  fine.media = {{3, MakeItem(1, 12)}};
  machine.Add(spoiled);
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[1].finished->reason, FinishReason::kError);
  EXPECT_EQ(machine.replies[1].finished->error, "picture: too wide, wanted narrower");
  spoiled.id = 3;
  machine.Add(spoiled);
  machine.Add(fine);
  machine.StepUntilIdle();
  EXPECT_EQ(machine.replies[3].finished->reason, FinishReason::kError);
  EXPECT_EQ(machine.replies[2], Solo(fine));
}

TEST(EngineCore, RandomLoadsEqualTheirSoloRuns) {
  int64_t n_preempted = 0;
  for (unsigned seed = 1; seed <= 120; ++seed) {
    PlayRandomLoad(seed, n_preempted);
  }
  EXPECT_GT(n_preempted, 50);
}

TEST(EngineCore, ThoughtsEndWhereTheirBudgetIsSpent) {
  constexpr int32_t kOpen = 30;
  constexpr int32_t kClose = 31;
  const auto play = [&](const std::vector<int32_t>& reply, int budget, bool starts_open) {
    Machine machine(Say(3, reply));
    Request request = MakeRequest(1, 3, static_cast<int>(reply.size()));
    request.sampling.temperature = 0;
    request.thought = {
        .open = kOpen, .close = kClose, .starts_open = starts_open, .max_tokens = budget};
    machine.Add(request);
    machine.StepUntilIdle();
    return machine.replies[1];
  };
  const std::vector<int32_t> script = {kOpen, 0, 1, 2, kClose, 3, 4};
  const Reply free = play(script, -1, false);
  EXPECT_EQ(free.tokens, script);
  EXPECT_EQ(free.finished->stats.n_thought, 3);
  EXPECT_FALSE(free.finished->stats.thought_was_cut);
  const Reply exact = play(script, 3, false);
  EXPECT_EQ(exact.tokens, script) << "it ended by itself";
  EXPECT_FALSE(exact.finished->stats.thought_was_cut);
  const Reply cut = play(script, 2, false);
  EXPECT_EQ(cut.tokens, (std::vector<int32_t>{kOpen, 0, 1, kClose, kClose, 3, 4}))
      << "the script goes on as if nothing were";
  EXPECT_EQ(cut.finished->stats.n_thought, 2);
  EXPECT_TRUE(cut.finished->stats.thought_was_cut);
  const Reply open = play({0, 1, 2, 3}, 1, true);
  EXPECT_EQ(open.tokens, (std::vector<int32_t>{0, kClose, 2, 3}));
  const Reply none = play({kOpen, 1, kOpen, 3}, 0, false);
  EXPECT_EQ(none.tokens, (std::vector<int32_t>{kOpen, kClose, 0, 3})) << "no other thought begins";
}

TEST(EngineCore, LogprobsComeWithTheTokensThatAreReleased) {
  Machine machine(Say(3, {0, 18, 19, 1, 2}));
  Request request = MakeRequest(1, 3, 5);
  request.sampling.temperature = 0;
  request.stop = {"stop"};
  request.n_top_logprobs = 2;
  machine.Add(request);
  std::vector<Event> events;
  while (machine.core.has_work()) {
    for (Event& event : machine.core.Step()) {
      if (event.kind == Event::Kind::kToken) {
        events.push_back(std::move(event));
      }
    }
  }
  ASSERT_EQ(events.size(), 5U);
  for (const Event& event : events) {
    EXPECT_EQ(event.logprob.token, event.token);
    ASSERT_EQ(event.top_logprobs.size(), 2U);
    EXPECT_EQ(event.top_logprobs[0].token, event.token);
    EXPECT_NEAR(event.logprob.logprob, 0, 1e-6);
    EXPECT_NEAR(event.top_logprobs[1].logprob, -20, 1e-4);
  }
}

TEST(EngineCore, WhoWaitsTooLongIsTold) {
  EngineOptions options = Options();
  options.max_sequences = 1;
  options.max_queue_s = 10;
  Machine machine(HashLogits, Info(), options);
  machine.Add(MakeRequest(1, 5, 30));
  machine.Add(MakeRequest(2, 5, 30));
  machine.now_s = 0.5;
  while (!machine.replies[2].finished) {
    machine.Step();
  }
  EXPECT_EQ(machine.replies[2].finished->reason, FinishReason::kQueueTimeout);
  EXPECT_FALSE(machine.replies[1].finished) << "which has run for longer than that";
  EXPECT_EQ(machine.replies[1].tokens.size(), 11U);
  machine.StepUntilIdle();
}

TEST(EngineCore, EachStepIsReported) {
  EngineOptions options = Options();
  std::vector<StepReport> reports;
  options.on_step = [&](const StepReport& report) { reports.push_back(report); };
  Machine machine(HashLogits, Info(), options);
  machine.Add(MakeRequest(1, 5, 3));
  machine.Step();
  machine.Add(MakeRequest(2, 40, 3));
  machine.StepUntilIdle();
  ASSERT_GE(reports.size(), 3U);
  EXPECT_EQ(reports[0].n_rows, 5);
  EXPECT_EQ(reports[0].n_generating, 1);
  EXPECT_EQ(reports[0].n_full_blocks_held, 1);
  EXPECT_EQ(reports[0].run_s, 1);
  EXPECT_EQ(reports[1].n_rows, 17);
  EXPECT_EQ(reports[1].n_running, 2);
  EXPECT_EQ(reports.back().n_running, 0);
  EXPECT_EQ(reports.back().n_full_blocks_held, 0);
}

TEST(EngineCore, OlderRequestsFinishFirst) {
  Machine machine(HashLogits, Info(2000, 8));
  std::vector<uint64_t> order;
  for (uint64_t id = 1; id <= 6; ++id) {
    machine.Add(MakeRequest(id, 90, 100));
  }
  while (machine.core.has_work()) {
    for (const Event& event : machine.core.Step()) {
      if (event.kind == Event::Kind::kFinished) {
        order.push_back(event.request_id);
      }
    }
  }
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), 6U);
}

}  // namespace
}  // namespace facet
