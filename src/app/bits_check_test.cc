// SPDX-License-Identifier: Apache-2.0
#include "app/bits_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/embedded_model.h"

namespace facet::bits {
namespace {

size_t CountPacked(const std::vector<Settings>& all) {
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [](const Settings& one) { return one.is_packed; }));
}

TEST(BitsSettings, BeginWithThatOfTheUserAndHoldAll) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Dice dice(seed);
    const std::vector<Settings> all = SettingsToCheck({.kv_type = KvType::kQ8_0}, true, &dice);
    EXPECT_EQ(all[0], (Settings{BestIsa(), DefaultThreads(), true, KvType::kQ8_0}));
    EXPECT_EQ(CountPacked(all), all.size() / 2);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(std::count(all.begin(), all.end(), all[i]), 1);
    }
    const size_t n_isas = std::max<size_t>(SupportedIsas().size() - 1, 1);
    EXPECT_GE(all.size(), n_isas * 3 * 2);
  }
}

TEST(BitsSettings, AreRestricted) {
  Dice dice(1);
  const auto all = SettingsToCheck({.n_threads = 5, .isa = Isa::kScalar}, false, &dice);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0], (Settings{Isa::kScalar, 5, false, KvType::kF16}));
}

class BitsCheckTest : public ::testing::Test {
 protected:
  BitsCheckTest() : checkpoint_(Checkpoint::FromGgufBytes(EmbeddedModel(), "tiny")) {}
  CheckReport Check(const CheckOptions& options) {
    Result<CheckReport> report = CheckBits(*checkpoint_, options);
    EXPECT_TRUE(report.ok());
    return report.ok() ? *std::move(report) : CheckReport();
  }
  Result<Checkpoint> checkpoint_;
};

/// No time at all: the reference, the scalar set and one setting.
TEST_F(BitsCheckTest, AlwaysComparesSomething) {
  std::vector<std::string> told;
  const CheckReport report = Check(
      {.seed = 1, .seconds = 0, .n_threads = 1, .on_progress = [&told](std::string_view what) {
         told.emplace_back(what);
       }});
  EXPECT_FALSE(report.finding.has_value());
  EXPECT_EQ(report.reference, (Settings{BestIsa(), 1, false, KvType::kF16}));
  EXPECT_EQ(report.n_positions.size(), 3U);
  const bool has_scalar = BestIsa() != Isa::kScalar;
  ASSERT_EQ(report.checked.size(), has_scalar ? 2U : 1U);
  EXPECT_EQ(report.checked.back().n_programs, 1);
  EXPECT_GT(report.n_compared(), 0);
  EXPECT_GT(report.n_left_out, 0U);
  EXPECT_EQ(told.front(), "reference");
}

TEST_F(BitsCheckTest, CountsWhatTheTimeDidNotSufficeFor) {
  Dice dice(1);
  const CheckOptions options = {.seed = 2, .seconds = 1, .n_threads = 2};
  const CheckReport report = Check(options);
  EXPECT_FALSE(report.finding.has_value());
  EXPECT_FALSE(report.is_too_large_to_pack);
  const size_t n_scalar = BestIsa() != Isa::kScalar ? 1 : 0;
  EXPECT_EQ(report.checked.size() + report.n_left_out,
            n_scalar + SettingsToCheck(options, true, &dice).size());
}

TEST_F(BitsCheckTest, PacksNothingThatDoesNotFit) {
  const CheckReport report =
      Check({.seed = 3, .seconds = 0, .n_threads = 1, .isa = BestIsa(), .memory_bytes = 1'000'000});
  EXPECT_TRUE(report.is_too_large_to_pack);
  EXPECT_EQ(report.n_left_out, 0U) << "unpacked is the only setting";
  EXPECT_FALSE(report.checked.back().settings.is_packed);
}

TEST_F(BitsCheckTest, DrawsTheSameFromOneSeed) {
  const CheckOptions options = {.seed = 4, .seconds = 0, .n_threads = 1};
  const CheckReport first = Check(options);
  const CheckReport second = Check(options);
  EXPECT_EQ(first.n_positions, second.n_positions);
  EXPECT_EQ(first.checked.back().settings, second.checked.back().settings);
  EXPECT_EQ(first.checked.back().n_compared, second.checked.back().n_compared);
}

}  // namespace
}  // namespace facet::bits
