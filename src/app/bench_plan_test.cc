// SPDX-License-Identifier: Apache-2.0
#include "app/bench_plan.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

std::vector<std::string> NamesOf(const std::vector<BenchCase>& cases) {
  std::vector<std::string> names;
  names.reserve(cases.size());
  for (const BenchCase& bench : cases) {
    names.push_back(NameOf(bench));
  }
  return names;
}

BenchPlan PlanOrDie(const Options& options, int n_context = 8192) {
  Result<BenchPlan> plan = PlanBench(options, n_context);
  EXPECT_TRUE(plan.ok()) << plan.error().Message();
  return plan.ok() ? *std::move(plan) : BenchPlan();
}

std::string ErrorOf(const Options& options, int n_context = 8192) {
  const Result<BenchPlan> plan = PlanBench(options, n_context);
  return plan.ok() ? "" : plan.error().Message();
}

using Names = std::vector<std::string>;

TEST(BenchPlan, HasDefaults) {
  const BenchPlan plan = PlanOrDie({});
  EXPECT_EQ(NamesOf(plan.cases),
            (Names{"prefill 128", "prefill 512", "prefill 2048", "decode 32", "decode 32 at 512",
                   "decode 32 at 4096", "decode 4 x 32", "decode 8 x 32", "decode 16 x 32"}));
  EXPECT_EQ(plan.n_repetitions, 3);
  EXPECT_EQ(plan.n_context, 4096 + 32);
  EXPECT_TRUE(plan.left_out.empty());
}

TEST(BenchPlan, QuickIsLess) {
  Options options;
  options.quick = true;
  EXPECT_EQ(NamesOf(PlanOrDie(options).cases), (Names{"prefill 128", "decode 8", "decode 4 x 8"}));
  options.bench_prompts = "7";
  options.repetitions = 9;
  const BenchPlan plan = PlanOrDie(options);
  EXPECT_EQ(NamesOf(plan.cases), (Names{"prefill 7", "decode 8", "decode 4 x 8"}));
  EXPECT_EQ(plan.n_repetitions, 9);
}

TEST(BenchPlan, TakesLists) {
  Options options;
  options.bench_prompts = "0";
  options.bench_gens = "4,16";
  options.bench_depths = "100,200";
  options.bench_parallel = "1,2";
  const BenchPlan plan = PlanOrDie(options);
  EXPECT_EQ(NamesOf(plan.cases),
            (Names{"decode 4 at 100", "decode 16 at 100", "decode 4 at 200", "decode 16 at 200",
                   "decode 2 x 4 at 100", "decode 2 x 16 at 100"}));
  EXPECT_EQ(plan.n_context, 216);
  EXPECT_EQ(plan.cases.back().n_tokens(), 32);
  EXPECT_EQ(plan.cases.back().n_positions(), 116);
}

TEST(BenchPlan, LeavesOutDefaultsThatTheModelCannotHold) {
  const BenchPlan plan = PlanOrDie({}, 512);
  EXPECT_EQ(NamesOf(plan.left_out),
            (Names{"prefill 2048", "decode 32 at 512", "decode 32 at 4096"}));
  EXPECT_EQ(plan.n_context, 512);
}

TEST(BenchPlan, RefusesWhatWasAskedForAndCannotBeHeld) {
  Options options;
  options.bench_depths = "500";
  EXPECT_EQ(ErrorOf(options, 512),
            "--n-depth: decode 32 at 500: 532 positions, wanted at most the 512 of the model");
  options.bench_prompts = "513";
  EXPECT_EQ(ErrorOf(options, 512),
            "--n-prompt: prefill 513: 513 positions, wanted at most the 512 of the model");
}

TEST(BenchPlan, RefusesWhatIsNoList) {
  const auto error_of = [](const std::string& text) {
    Options options;
    options.bench_prompts = text;
    return ErrorOf(options);
  };
  const std::string wanted = ", wanted whole numbers from 0 to 1048576, with commas between";
  EXPECT_EQ(error_of("x"), "--n-prompt: \"x\"" + wanted);
  EXPECT_EQ(error_of("1,,2"), "--n-prompt: \"\"" + wanted);
  EXPECT_EQ(error_of("1,"), "--n-prompt: \"\"" + wanted);
  EXPECT_EQ(error_of("-1"), "--n-prompt: \"-1\"" + wanted);
  EXPECT_EQ(error_of("1 2"), "--n-prompt: \"1 2\"" + wanted);
  EXPECT_EQ(error_of("99999999999"), "--n-prompt: \"99999999999\"" + wanted);
  std::string many = "1";
  for (int i = 0; i < 64; ++i) {
    many += ",1";
  }
  EXPECT_EQ(error_of(many), "--n-prompt: 65 numbers, wanted at most 64");
  Options options;
  options.bench_parallel = "0";
  EXPECT_EQ(ErrorOf(options),
            "--parallel: \"0\", wanted whole numbers from 1 to 256, with commas between");
}

TEST(BenchPlan, RefusesNothing) {
  Options options;
  options.bench_prompts = "0";
  options.bench_gens = "0";
  EXPECT_EQ(
      ErrorOf(options),
      "facet bench: nothing to measure, wanted --n-prompt or --n-gen that the model's context "
      "holds, or --drafting");
}

TEST(PlanBench, DraftingIsStepsOfOneAndFourSequences) {
  Options options;
  options.quick = true;
  options.bench_depths = "7";
  options.drafting = true;
  const auto plan = PlanBench(options, 1000);
  ASSERT_TRUE(plan.ok()) << plan.error().Message();
  ASSERT_EQ(plan->verify_cases.size(), 32U);
  const BenchCase& last = plan->verify_cases.back();
  EXPECT_EQ(last.n_gen, 32);
  EXPECT_EQ(last.n_depth, 7);
  EXPECT_EQ(last.n_sequences, 4);
  EXPECT_EQ(NameOf(last), "verify 4 x 16 rows at 7");
  options.bench_prompts = "0";
  options.bench_gens = "0";
  EXPECT_TRUE(PlanBench(options, 1000)->cases.empty());
  EXPECT_EQ(PlanBench(options, 38).error().Message(),
            "--n-depth: verify 1 x 16 rows at 7: 39 positions, wanted at most the 38 of the model");
  EXPECT_EQ(PlanBench(options, 6).error().Message(),
            "--n-depth: verify 1 x 16 rows at 7: 39 positions, wanted at most the 6 of the model");
}

}  // namespace
}  // namespace facet
