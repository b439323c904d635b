// SPDX-License-Identifier: Apache-2.0
// On the scripted runner, which counts every batch that is not what the engine would have made.
#include "app/bench_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "convert/shapes.h"
#include "engine/fake_runner.h"

namespace facet {
namespace {

using testing::FakeRunner;

Config ConfigOrDie(const char* shape) {
  const Result<ShapeRequest> request = ParseShape(shape);
  Result<Config> config = ConfigOfShape(*request);
  EXPECT_TRUE(config.ok());
  return *std::move(config);
}

RunnerOptions FitOrDie(const Config& config, const std::vector<BenchCase>& cases) {
  Result<RunnerOptions> fitted = FitRunner(config, {}, cases);
  EXPECT_TRUE(fitted.ok());
  return *std::move(fitted);
}

KvPoolPlan PlanOrDie(const Config& config, const RunnerOptions& options) {
  const Result<KvPoolPlan> plan = PlanKv(config, options);
  EXPECT_TRUE(plan.ok());
  return *plan;
}

/// What a batch was.
struct Seen {
  size_t n_rows;
  size_t n_wanted;
  bool wants_last;
  int first_pos;
  bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* out) {
  *out << "{" << seen.n_rows << " rows, " << seen.n_wanted << " wanted, "
       << (seen.wants_last ? "the last one" : "not the last one") << ", from " << seen.first_pos
       << "}";
}

/// A bench on a runner with just the memory that was planned for the cases.
struct Bench {
  explicit Bench(const std::vector<BenchCase>& cases) {
    const Config config = ConfigOrDie("e2b");
    const RunnerOptions fitted = FitOrDie(config, cases);
    const KvPoolPlan plan = PlanOrDie(config, fitted);
    const RunnerInfo info = {.n_vocab = 8,
                             .n_context = fitted.n_context,
                             .sliding_window = config.sliding_window,
                             .n_sliding_blocks = plan.sliding.n_blocks,
                             .n_full_blocks = plan.full.n_blocks,
                             .n_embd = 1,
                             .drafts = true};
    auto fake = std::make_unique<FakeRunner>(info, testing::HashLogits);
    runner = fake.get();
    runner->before_run = [this](const Batch& batch) {
      const auto n_wanted = std::count_if(batch.rows.begin(), batch.rows.end(),
                                          [](const Row& row) { return row.wants_logits; });
      seen.push_back({batch.rows.size(), static_cast<size_t>(n_wanted),
                      batch.rows.back().wants_logits, batch.rows[0].pos});
      return Status();
    };
    bench = std::make_unique<BenchRunner>(
        std::move(fake),
        BenchHooks{.is_interrupted = [this] { return seen.size() >= n_before_interrupt; },
                   .on_progress =
                       [this](int repetition, int n_done, int n_total) {
                         progress.push_back({repetition, n_done, n_total});
                       }});
  }

  std::vector<double> MeasureOrDie(const BenchCase& wanted, int n_repetitions) {
    Result<std::vector<double>> seconds = bench->Measure(wanted, n_repetitions);
    EXPECT_TRUE(seconds.ok()) << seconds.error().Message();
    EXPECT_EQ(runner->faults(), std::vector<std::string>());
    return seconds.ok() ? *std::move(seconds) : std::vector<double>();
  }

  FakeRunner* runner = nullptr;
  std::vector<Seen> seen;
  std::vector<std::vector<int>> progress;
  size_t n_before_interrupt = SIZE_MAX;
  std::unique_ptr<BenchRunner> bench;
};

TEST(BenchRun, PrefillIsTheChunksOfALonePromptWithOneRowOfLogits) {
  const BenchCase prompt = {.n_prompt = 1100};
  Bench bench({prompt});
  EXPECT_EQ(bench.MeasureOrDie(prompt, 2).size(), 2U);
  const std::vector<Seen> once = {{512, 0, false, 0}, {512, 0, false, 512}, {76, 1, true, 1024}};
  std::vector<Seen> all = {{512, 1, true, 0}};  // the warm-up
  all.insert(all.end(), once.begin(), once.end());
  all.insert(all.end(), once.begin(), once.end());
  EXPECT_EQ(bench.seen, all);
}

TEST(BenchRun, DecodeBeginsEachTimeAtTheSameDepth) {
  const BenchCase decode = {.n_gen = 2, .n_depth = 600};
  Bench bench({decode});
  EXPECT_EQ(bench.MeasureOrDie(decode, 2).size(), 2U);
  const std::vector<Seen> all = {
      {512, 0, false, 0}, {88, 0, false, 512}, {1, 1, true, 600},  // the warm-up
      {1, 1, true, 600},  {1, 1, true, 601},   {1, 1, true, 600}, {1, 1, true, 601}};
  EXPECT_EQ(bench.seen, all);
}

TEST(BenchRun, SeveralSequencesShareABatch) {
  const BenchCase decode = {.n_gen = 2, .n_depth = 3, .n_sequences = 4};
  Bench bench({decode});
  EXPECT_EQ(bench.MeasureOrDie(decode, 1).size(), 1U);
  std::vector<Seen> all(4, {3, 0, false, 0});
  all.insert(all.end(), {{4, 4, true, 3}, {4, 4, true, 3}, {4, 4, true, 4}});
  EXPECT_EQ(bench.seen, all);
  EXPECT_EQ(bench.progress.front(), (std::vector<int>{0, 3, 16}));
  EXPECT_EQ(bench.progress.back(), (std::vector<int>{1, 8, 8}));
}

TEST(BenchRun, PlannedMemoryIsEnoughForEveryCaseInAnyOrder) {
  const std::vector<BenchCase> cases = {{.n_gen = 70, .n_depth = 900},
                                        {.n_prompt = 1500},
                                        {.n_gen = 33, .n_depth = 530, .n_sequences = 5},
                                        {.n_gen = 40, .n_sequences = 9},
                                        {.n_gen = 600, .n_depth = 1, .n_sequences = 2}};
  Bench bench(cases);
  for (const BenchCase& wanted : cases) {
    EXPECT_EQ(bench.MeasureOrDie(wanted, 2).size(), 2U) << NameOf(wanted);
  }
}

TEST(BenchRun, VerifiedRowsAreStepsOfSeveralRows) {
  const BenchCase verify = {.n_gen = 6, .n_depth = 40, .n_sequences = 2, .n_rows = 3};
  Bench bench({verify});
  EXPECT_EQ(bench.MeasureOrDie(verify, 1).size(), 1U);
  const std::vector<Seen> all = {
      {40, 0, false, 0}, {40, 0, false, 0}, {6, 6, true, 40}, {6, 6, true, 40}, {6, 6, true, 43}};
  EXPECT_EQ(bench.seen, all);
}

TEST(BenchRun, DraftsFollowOneTokenOfEachSequence) {
  const BenchCase verify = {.n_gen = 32, .n_depth = 40, .n_sequences = 2, .n_rows = 16};
  Bench bench({verify});
  std::vector<std::vector<int>> calls;  // positions, then drafts
  bench.runner->propose = [](std::span<const int32_t>, int n) {
    return std::vector<int32_t>(static_cast<size_t>(n), 1);
  };
  bench.runner->before_draft = [&calls](std::span<const DraftTask> tasks) {
    std::vector<int>& call = calls.emplace_back();
    for (const DraftTask& task : tasks) {
      EXPECT_EQ(task.hidden.size(), 1U);
      call.insert(call.end(), {task.pos, task.n_drafts});
    }
    return Status();
  };
  const auto seconds = bench.bench->MeasureDrafts(verify, 5, 2);
  ASSERT_TRUE(seconds.ok()) << seconds.error().Message();
  EXPECT_EQ(seconds->size(), 2U);
  EXPECT_EQ(calls, (std::vector<std::vector<int>>(3, {41, 5, 41, 5})));
  EXPECT_EQ(bench.runner->faults(), std::vector<std::string>());
}

TEST(BenchRun, CasesOfTheSameDepthAndSequencesShareTheirPreparation) {
  const BenchCase two = {.n_gen = 4, .n_depth = 600, .n_sequences = 2, .n_rows = 2};
  const BenchCase three = {.n_gen = 6, .n_depth = 600, .n_sequences = 2, .n_rows = 3};
  Bench bench({two, three});
  bench.runner->propose = [](std::span<const int32_t>, int n) {
    return std::vector<int32_t>(static_cast<size_t>(n), 1);
  };
  EXPECT_EQ(bench.MeasureOrDie(two, 1).size(), 1U);
  ASSERT_TRUE(bench.bench->MeasureDrafts(two, 2, 1).ok());
  bench.seen.clear();
  EXPECT_EQ(bench.MeasureOrDie(three, 1).size(), 1U);
  EXPECT_EQ(bench.seen,
            (std::vector<Seen>{{6, 6, true, 600}, {6, 6, true, 600}, {6, 6, true, 603}}));
}

TEST(BenchRun, RepeatsWhatIsShort) {
  const BenchCase decode = {.n_gen = 1, .n_depth = 3};
  Bench bench({decode});
  const auto seconds = bench.bench->Measure(decode, 2, 0.002);
  ASSERT_TRUE(seconds.ok());
  ASSERT_EQ(seconds->size(), 2U);
  EXPECT_LT(seconds->at(0), 0.002) << "of one";
  EXPECT_GT(bench.seen.size(), 2U + 2U);
  for (size_t i = 1; i < bench.seen.size(); ++i) {
    EXPECT_EQ(bench.seen[i], (Seen{1, 1, true, 3}));
  }
}

TEST(BenchRun, AnInterruptKeepsWholeRepetitions) {
  const BenchCase decode = {.n_gen = 3};
  for (const auto& [n_batches, n_whole] :
       std::vector<std::pair<size_t, size_t>>{{0, 0}, {1, 0}, {3, 0}, {4, 1}, {6, 1}, {7, 2}}) {
    Bench bench({decode});
    bench.n_before_interrupt = n_batches;
    EXPECT_EQ(bench.MeasureOrDie(decode, 5).size(), n_whole) << n_batches;
    EXPECT_EQ(bench.seen.size(), n_batches);
    EXPECT_TRUE(bench.MeasureOrDie(decode, 5).empty());
  }
}

TEST(BenchRun, GivesTheErrorOfTheRunner) {
  const BenchCase decode = {.n_gen = 3};
  Bench bench({decode});
  bench.runner->before_run = [](const Batch&) -> Status { return Refuse("here", "a fault"); };
  const auto seconds = bench.bench->Measure(decode, 1);
  ASSERT_FALSE(seconds.ok());
  EXPECT_EQ(seconds.error().Message(), "here: a fault");
}

TEST(FitRunner, TakesNoMoreThanTheCasesNeed) {
  const Config config = ConfigOrDie("12b");
  const std::vector<BenchCase> cases = {{.n_gen = 32, .n_depth = 4096},
                                        {.n_gen = 32, .n_sequences = 16}};
  const RunnerOptions fitted = FitOrDie(config, cases);
  EXPECT_EQ(fitted.n_context, 4128);
  EXPECT_EQ(fitted.n_sequences, 1);
  EXPECT_EQ(PlanOrDie(config, fitted).full.n_blocks, 129);
  EXPECT_EQ(FitOrDie(config, {{.n_gen = 32, .n_depth = 480, .n_sequences = 16}}).n_sequences, 16);
}

TEST(FitRunner, RefusesWhatThePlanRefuses) {
  RunnerOptions options;
  const Config config = ConfigOrDie("e2b");
  const std::vector<BenchCase> cases = {{.n_prompt = config.n_context + 1}};
  EXPECT_FALSE(FitRunner(config, options, cases).ok());
}

}  // namespace
}  // namespace facet
