// SPDX-License-Identifier: Apache-2.0
// Through a core, since what a guess is worth shows in steps: who may guess, when, and what becomes
// of it. That guesses change no reply is in draft_test.cc.
#include "engine/speculator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/engine_core_testing.h"

namespace facet {
namespace {

using testing::DraftInfo;
using testing::EchoLogits;
using testing::EchoOf;
using testing::FakeRunner;
using testing::kVocab;
using testing::Machine;
using testing::MakeRequest;
using testing::MediaInfo;
using testing::Options;
using testing::Reply;

/// A machine whose drafter says what EchoLogits likes.
struct EchoMachine : Machine {
  explicit EchoMachine(const EngineOptions& options, const RunnerInfo& info = DraftInfo(),
                       FakeRunner::Script script = EchoLogits)
      : Machine(std::move(script), info, options) {
    runner.propose = [](std::span<const int32_t> history, int n) {
      std::vector<int32_t> drafts;
      int32_t token = history.back();
      for (int k = 0; k < n; ++k) {
        token = EchoOf(token, kVocab);
        drafts.push_back(token);
      }
      return drafts;
    };
  }

  RequestStats Play(const Request& request) {
    Add(request);
    while (core.has_work()) {
      Step();
    }
    return replies[request.id].finished->stats;
  }
};

EngineOptions DraftOptions(SpecMode mode, int max_drafts = 4) {
  EngineOptions options = Options();
  options.spec = mode;
  options.max_drafts = max_drafts;
  return options;
}

Request Greedy(uint64_t id, int n_prompt, int max_tokens) {
  Request request = MakeRequest(id, n_prompt, max_tokens);
  request.sampling.temperature = 0;
  request.stops_on_repetition = false;
  return request;
}

TEST(Speculator, AnAcceptedDraftSavesAStep) {
  EchoMachine machine(DraftOptions(SpecMode::kMtp));
  const RequestStats stats = machine.Play(Greedy(1, 20, 100));
  EXPECT_EQ(stats.n_generated, 100);
  EXPECT_GT(stats.n_accepted, 50);
  EXPECT_EQ(machine.core.counters().n_steps, stats.n_generated - stats.n_accepted);
  EXPECT_EQ(machine.core.counters().n_rows,
            20 + stats.n_generated - 1 - stats.n_accepted + stats.n_drafted);
  EXPECT_LE(stats.n_drafted, 4 * stats.n_draft_rounds);
  machine.ExpectClean();
}

TEST(Speculator, EachSequenceHasItsOwnDrafts) {
  EchoMachine machine(DraftOptions(SpecMode::kMtp));
  for (uint64_t id = 1; id <= 4; ++id) {
    machine.Add(Greedy(id, 20 + static_cast<int>(id), 100));
  }
  machine.StepUntilIdle();
  for (uint64_t id = 1; id <= 4; ++id) {
    const RequestStats& stats = machine.replies[id].finished->stats;
    EXPECT_GT(stats.n_accepted, 50) << id;
    EXPECT_GT(stats.n_accepted, stats.n_drafted / 2) << id;
  }
}

TEST(Speculator, WhatStandsBehindTheEndIsNeitherToldNorKept) {
  int n_ended_by_guess = 0;
  for (uint64_t id = 1; id <= 20; ++id) {
    EngineOptions options = DraftOptions(SpecMode::kMtp, 8);
    options.reuses_prefixes = true;
    EchoMachine machine(options);
    Request request = Greedy(id, 30, 60);
    request.stop = {"ovn"};  // echoed: 13, 14, 21, 30, 13, ...: "n", "o", "v", "", "n"
    const RequestStats stats = machine.Play(request);
    const Reply& reply = machine.replies[id];
    EXPECT_EQ(reply.text.find("ovn"), std::string::npos);
    size_t n_kept = 0;
    for (const PrefixRecord& record : machine.core.prefix_cache()->tree().Export()) {
      n_kept += record.units.size();
    }
    EXPECT_EQ(n_kept, static_cast<size_t>(30 + stats.n_generated - 1)) << "all but the last token";
    // A step brings a token and those accepted; a guess that ends the reply brings itself alone.
    const int n_alone = stats.n_generated - stats.n_accepted;
    const bool ended_by_guess = n_alone < machine.core.counters().n_steps;
    EXPECT_TRUE(!ended_by_guess || reply.finished->reason == FinishReason::kStopString);
    n_ended_by_guess += ended_by_guess ? 1 : 0;
    machine.ExpectClean();
  }
  EXPECT_GT(n_ended_by_guess, 2);
}

TEST(Speculator, UnsoundLogitsCountWhereTheyAreDrawnFrom) {
  for (size_t length = 30; length < 60; ++length) {
    const auto play = [length](SpecMode mode) {
      EchoMachine machine(DraftOptions(mode, 8), DraftInfo(),
                          [length](std::span<const int32_t> history, std::span<float> logits) {
                            EchoLogits(history, logits);
                            if (history.size() == length) {
                              logits[3] = std::numeric_limits<float>::quiet_NaN();
                            }
                          });
      machine.Play(Greedy(1, 20, 100));
      machine.ExpectClean();
      return machine.replies[1];
    };
    const Reply reply = play(SpecMode::kMtp);
    EXPECT_EQ(reply.finished->error, "logits: nan at token 3, wanted finite numbers");
    EXPECT_GT(reply.finished->stats.n_drafted, 0);
    EXPECT_EQ(reply, play(SpecMode::kOff));
  }
}

TEST(Speculator, OnlyWhoMayGuessDoes) {
  const auto n_drafted = [](SpecMode mode, SpecMode asked, bool has_drafter, int max_drafts = 4) {
    EchoMachine machine(DraftOptions(mode, max_drafts), has_drafter ? DraftInfo() : MediaInfo());
    int n_asked = 0;
    machine.runner.before_draft = [&n_asked](std::span<const DraftTask>) {
      ++n_asked;
      return Status();
    };
    Request request = Greedy(1, 20, 100);
    request.spec = asked;
    const int n = machine.Play(request).n_drafted;
    return std::tuple(n > 0, n_asked > 0);
  };
  const std::tuple none(false, false);
  const std::tuple by_text(true, false);
  const std::tuple by_model(true, true);
  using enum SpecMode;
  EXPECT_EQ(n_drafted(kOff, kAuto, true), none);
  EXPECT_EQ(n_drafted(kAuto, kOff, true), none);
  EXPECT_EQ(n_drafted(kNgram, kMtp, true), none);
  EXPECT_EQ(n_drafted(kMtp, kNgram, true), none);
  EXPECT_EQ(n_drafted(kAuto, kAuto, true, 0), none);
  EXPECT_EQ(n_drafted(kMtp, kAuto, false), none);
  EXPECT_EQ(n_drafted(kNgram, kAuto, true), by_text);
  EXPECT_EQ(n_drafted(kAuto, kNgram, true), by_text);
  EXPECT_EQ(n_drafted(kAuto, kAuto, false), by_text);
  EXPECT_EQ(n_drafted(kAuto, kMtp, true), by_model);
  EXPECT_EQ(n_drafted(kMtp, kAuto, true), by_model);
}

TEST(Speculator, AFailingDrafterEndsNoRequest) {
  EngineOptions options = DraftOptions(SpecMode::kMtp);
  std::vector<std::string> errors;
  options.on_step = [&errors](const StepReport& report) {
    if (!report.draft_error.empty()) {
      errors.push_back(report.draft_error);
    }
  };
  EchoMachine machine(options);
  int n_asked = 0;
  machine.runner.before_draft = [&n_asked](std::span<const DraftTask>) -> Status {
    ++n_asked;
    return Refuse("device", "lost");
  };
  EXPECT_EQ(machine.Play(Greedy(1, 20, 50)).n_drafted, 0);
  EXPECT_EQ(machine.Play(Greedy(2, 20, 50)).n_drafted, 0);
  EXPECT_EQ(machine.replies[1].finished->reason, FinishReason::kMaxTokens);
  EXPECT_EQ(machine.replies[1].tokens.size(), 50U);
  EXPECT_EQ(errors, (std::vector<std::string>{"device: lost"}));
  EXPECT_EQ(n_asked, 1);
  machine.ExpectClean();
}

TEST(Speculator, TheDrafterIsNotAskedWithoutAHiddenRow) {
  EngineOptions options = DraftOptions(SpecMode::kMtp);
  options.reuses_prefixes = true;
  EchoMachine machine(options);
  std::vector<int> places;
  machine.runner.before_draft = [&places](std::span<const DraftTask> tasks) {
    places.push_back(tasks[0].pos);
    return Status();
  };
  machine.Play(Greedy(1, 64, 20));
  ASSERT_FALSE(places.empty());
  places.clear();
  Request again = Greedy(1, 64, 20);
  again.id = 2;
  EXPECT_EQ(machine.Play(again).n_cached, 63);
  ASSERT_FALSE(places.empty());
  EXPECT_GE(places[0], 64) << "its first row is no one's guess";
  machine.ExpectClean();
}

TEST(Speculator, NothingIsGuessedPastAnEnd) {
  EchoMachine machine(DraftOptions(SpecMode::kMtp, kMaxDrafts));
  machine.runner.before_run = [&machine](const Batch& batch) {
    machine.now_s += 1;
    for (const Row& row : batch.rows) {
      EXPECT_TRUE(row.pos < 20 || row.token != 30) << "the row of an end token";
      EXPECT_LT(row.pos, 59) << "the last token of all needs no row";
    }
    return Status();
  };
  EXPECT_EQ(machine.Play(Greedy(1, 20, 40)).n_generated, 40);
  Request ending = Greedy(2, 20, 40);
  ending.prompt.back() = 13;  // echoed: 14, 21, 30
  ending.end_tokens = {30};
  const RequestStats stats = machine.Play(ending);
  EXPECT_EQ(machine.replies[2].finished->reason, FinishReason::kEndToken);
  EXPECT_EQ(stats.n_generated, 3);
  EXPECT_EQ(stats.n_drafted, 1);
  EXPECT_EQ(stats.n_accepted, 1);
  machine.ExpectClean();
}

constexpr int32_t kEnd = 31;  ///< of a reply, which never says it

/// Seconds of a step by its rows, so that a further row is cheap, and of the drafter by its
/// guesses.
void SetSeconds(double row_s, double draft_s, EchoMachine* machine) {
  machine->runner.before_run = [machine, row_s](const Batch& batch) {
    machine->now_s += 1 + row_s * static_cast<double>(batch.rows.size());
    return Status();
  };
  machine->runner.before_draft = [machine, draft_s](std::span<const DraftTask> tasks) {
    for (const DraftTask& task : tasks) {
      machine->now_s += draft_s * task.n_drafts;
    }
    return Status();
  };
}

/// Such guesses have no row; the drafter's time is spent on them all the same.
TEST(Speculator, GuessesOfTheEndAreJudgedByWhatIsDrawn) {
  EchoMachine machine(DraftOptions(SpecMode::kMtp, 8), DraftInfo(), EchoLogits);
  SetSeconds(0.05, 0.1, &machine);
  int n_asked = 0;
  const auto charge = machine.runner.before_draft;
  machine.runner.before_draft = [&n_asked, charge](std::span<const DraftTask> tasks) {
    ++n_asked;
    return charge(tasks);
  };
  const auto echo = machine.runner.propose;
  // Right guesses teach what rows cost; then nothing but ends is guessed.
  machine.Play(Greedy(1, 20, 100));
  EXPECT_GT(machine.replies[1].finished->stats.n_accepted, 50);
  machine.runner.propose = [](std::span<const int32_t>, int n) {
    return std::vector<int32_t>(static_cast<size_t>(n), kEnd);
  };
  Request request = Greedy(2, 20, 200);
  request.end_tokens = {kEnd};
  request.suppressed_tokens = {kEnd};
  for (request.id = 2; request.id <= 4; ++request.id) {
    n_asked = 0;
    const RequestStats stats = machine.Play(request);
    EXPECT_EQ(stats.n_generated, 200);
    EXPECT_EQ(stats.n_drafted, 0);
    EXPECT_GT(n_asked, 0);
    EXPECT_LT(n_asked, request.id == 2 ? 100 : 40) << "of 199 steps";
  }
  // One right guess before each wrong end.
  machine.runner.propose = [&echo](std::span<const int32_t> history, int n) {
    std::vector<int32_t> drafts = echo(history, n);
    std::fill(drafts.begin() + 1, drafts.end(), kEnd);
    return drafts;
  };
  request.id = 5;
  EXPECT_GT(machine.Play(request).n_accepted, 0);
  machine.ExpectClean();
}

TEST(Speculator, ObservesEachGuessThatSomethingWasDrawnFor) {
  FakeRunner runner(DraftInfo(), EchoLogits);
  Speculator speculator(&runner, SpecMode::kMtp, 8, [] { return 0.0; });
  const auto observe = [&](std::vector<int32_t> drafts, int32_t end_guess,
                           const std::vector<int32_t>& drawn, bool has_ended) {
    DraftState state;
    state.choice = {DraftSource::kModel, 8};
    state.drafts = std::move(drafts);
    state.end_guess = end_guess;
    const int n_accepted = speculator.Observe(drawn, has_ended, &state);
    EXPECT_TRUE(state.drafts.empty());
    EXPECT_EQ(state.end_guess, -1);
    return std::pair(n_accepted, state.record.Chance(DraftSource::kModel, 0.5));
  };
  const auto wanted = [](int n_accepted, int n_judged, int n_right) {
    DraftRecord record;
    record.Add(DraftSource::kModel, n_judged, n_right);
    return std::pair(n_accepted, record.Chance(DraftSource::kModel, 0.5));
  };
  EXPECT_EQ(observe({}, -1, {5}, false), wanted(0, 0, 0));
  EXPECT_EQ(observe({}, 30, {5}, false), wanted(0, 1, 0)) << "no row, and wrong";
  EXPECT_EQ(observe({}, 30, {30}, true), wanted(0, 1, 1)) << "no row, and right";
  EXPECT_EQ(observe({}, 30, {}, true), wanted(0, 0, 0)) << "nothing was drawn";
  EXPECT_EQ(observe({5}, 30, {5, 6}, false), wanted(1, 2, 1)) << "one right, one wrong";
  EXPECT_EQ(observe({5}, 30, {5, 30}, true), wanted(1, 2, 2));
  EXPECT_EQ(observe({5}, 30, {5}, true), wanted(1, 1, 1)) << "the end came before it";
  EXPECT_EQ(observe({5}, 30, {6}, false), wanted(0, 1, 0));
  EXPECT_EQ(observe({5, 6}, -1, {5, 7}, false), wanted(1, 2, 1));
}

}  // namespace
}  // namespace facet
