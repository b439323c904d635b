// SPDX-License-Identifier: Apache-2.0
#include "app/report.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

TEST(SpeedText, TellsRatesAndBytes) {
  RequestStats stats;
  stats.n_prompt = 100;
  stats.n_generated = 11;
  stats.prefill_s = 0.5;
  stats.decode_s = 2;
  EXPECT_EQ(SpeedText(stats, 1e9),
            "prompt    100 tokens in 0.500 s, 200.0 tokens/s\n"
            "reply     11 tokens in 2.000 s, 5.0 tokens/s, 5.00 GB/s of weights");
}

TEST(SpeedText, CountsWhatWasComputed) {
  RequestStats stats;
  stats.n_prompt = 100;
  stats.n_cached = 80;
  stats.n_generated = 11;
  stats.prefill_s = 0.5;
  stats.decode_s = 2;
  EXPECT_EQ(SpeedText(stats, 1e9),
            "prompt    100 tokens, 80 of them computed before, in 0.500 s, 40.0 tokens/s\n"
            "reply     11 tokens in 2.000 s, 5.0 tokens/s, 5.00 GB/s of weights");
}

TEST(SpeedText, TellsDraftsAndEncoders) {
  RequestStats stats;
  stats.n_prompt = 100;
  stats.n_generated = 11;
  stats.n_draft_rounds = 4;
  stats.n_drafted = 16;
  stats.n_accepted = 6;
  stats.prefill_s = 0.5;
  stats.encode_s = 0.125;
  stats.decode_s = 2;
  EXPECT_EQ(SpeedText(stats, 1e9),
            "prompt    100 tokens in 0.500 s (0.125 s in encoders), 200.0 tokens/s\n"
            "reply     11 tokens in 2.000 s, 5.0 tokens/s, 2.00 GB/s of weights\n"
            "drafts    4 rounds, 16 drafted, 6 accepted (37.5%), 2.50 tokens a round");
}

TEST(SpeedText, TellsOfOneRound) {
  RequestStats stats;
  stats.n_draft_rounds = 1;
  stats.n_drafted = 4;
  stats.n_accepted = 4;
  EXPECT_TRUE(
      SpeedText(stats, 1e9)
          .ends_with("\ndrafts    1 round, 4 drafted, 4 accepted (100.0%), 5.00 tokens a round"));
}

TEST(SpeedText, HasNoRateWithoutTime) {
  RequestStats stats;
  stats.n_prompt = 1;
  stats.n_generated = 1;
  EXPECT_EQ(SpeedText(stats, 1e9),
            "prompt    1 tokens in 0.000 s, 0.0 tokens/s\n"
            "reply     1 tokens in 0.000 s, 0.0 tokens/s, 0 B/s of weights");
}

}  // namespace
}  // namespace facet
