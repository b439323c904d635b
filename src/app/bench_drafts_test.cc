// SPDX-License-Identifier: Apache-2.0
#include "app/bench_drafts.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

const DraftCosts kCosts = {
    .n_sequences = 1, .n_depth = 512, .verify_s = {0.1, 0.11, 0.12, 0.13}, .draft_s = {0.01, 0.02}};

TEST(GainOf, ComparesARoundWithPlainSteps) {
  const DraftGain one = GainOf(kCosts, 1);
  EXPECT_DOUBLE_EQ(one.break_even, 0.2);  // 0.12 s for 1 + a tokens, 0.1 s for one
  EXPECT_DOUBLE_EQ(one.speed_up, 0.2 / 0.12);
  const DraftGain two = GainOf(kCosts, 2);
  EXPECT_NEAR(two.break_even, 0.2, 1e-12);
  EXPECT_NEAR(two.speed_up, 0.3 / 0.14, 1e-12);
  DraftCosts without = kCosts;
  without.draft_s.clear();
  EXPECT_NEAR(GainOf(without, 3).break_even, 0.1, 1e-12);
}

TEST(DraftTable, HasARowForEachStep) {
  EXPECT_EQ(
      DraftTable(kCosts, {}),
      "\n1 sequence at 512            verify  of one row       draft  break-even  all "
      "accepted\n"
      "1 row                     100.00 ms        1.00\n"
      "2 rows, 1 draft           110.00 ms        1.10    10.00 ms       20.0%         1.67x\n"
      "3 rows, 2 drafts          120.00 ms        1.20    20.00 ms       20.0%         2.14x\n"
      "4 rows, 3 drafts          130.00 ms        1.30\n");
  DraftCosts without = kCosts;
  without.n_sequences = 4;
  without.draft_s.clear();
  const std::string table = DraftTable(without, {});
  EXPECT_TRUE(table.starts_with("\n4 sequences at 512 ")) << table;
  EXPECT_TRUE(table.ends_with(
      "4 rows, 3 drafts          130.00 ms        1.30           -       10.0%         3.08x\n"))
      << table;
}

TEST(DraftTable, NeverGainsOrAlwaysDoes) {
  const DraftCosts costs = {.verify_s = {0.1, 0.25, 0.09}, .draft_s = {}};
  const std::string table = DraftTable(costs, {});
  EXPECT_NE(table.find("       never         0.80x\n"), std::string::npos) << table;
  EXPECT_NE(table.find("          0%         3.33x\n"), std::string::npos) << table;
}

TEST(DraftJson, HasTheFigures) {
  const Json json = DraftJson(std::span(&kCosts, 1));
  const Json& costs = json.items().at(0);
  EXPECT_EQ(costs["parallel"].as_int(), 1);
  EXPECT_EQ(costs["n_depth"].as_int(), 512);
  EXPECT_EQ(costs["verify_seconds"].Dump(), "[0.1,0.11,0.12,0.13]");
  EXPECT_EQ(costs["draft_seconds"].Dump(), "[0.01,0.02]");
  ASSERT_EQ(costs["gains"].items().size(), 2U);
  const Json& gain = costs["gains"].items()[1];
  EXPECT_EQ(gain["drafts"].as_int(), 2);
  EXPECT_NEAR(gain["break_even_acceptance"].as_double(), 0.2, 1e-12);
  EXPECT_NEAR(gain["speed_up_all_accepted"].as_double(), 0.3 / 0.14, 1e-12);
}

}  // namespace
}  // namespace facet
