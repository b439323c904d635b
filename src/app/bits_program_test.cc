// SPDX-License-Identifier: Apache-2.0
#include "app/bits_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace facet::bits {
namespace {

constexpr PromptChoice kChoice = {.n_vocab = 50, .n_embd = 3, .n_positions = 80, .has_soft = true};

TEST(BitsDice, IsTheSameEverywhere) {
  Dice dice(7);
  std::vector<int> drawn;
  for (int i = 0; i < 6; ++i) {
    drawn.push_back(dice.Between(-2, 2));
  }
  Dice again(7);
  for (const int value : drawn) {
    EXPECT_EQ(again.Between(-2, 2), value);
    EXPECT_TRUE(value >= -2 && value <= 2);
  }
  EXPECT_EQ(Dice(1).Between(5, 5), 5);
}

void CheckPrompt(const Prompt& prompt) {
  const int n = prompt.n_positions();
  ASSERT_GE(n, 1);
  ASSERT_LE(n, kMaxPositions);
  ASSERT_EQ(prompt.span_end.size(), prompt.tokens.size());
  ptrdiff_t n_soft = 0;
  for (int pos = 0; pos < n; ++pos) {
    const auto at = static_cast<size_t>(pos);
    EXPECT_TRUE(prompt.tokens[at] >= 0 && prompt.tokens[at] < kChoice.n_vocab);
    n_soft += prompt.span_end[at] >= 0 ? 1 : 0;
    if (prompt.span_end[at] >= 0) {
      ASSERT_TRUE(prompt.span_end[at] > pos && prompt.span_end[at] <= n);
      EXPECT_EQ(prompt.span_end[static_cast<size_t>(prompt.span_end[at] - 1)], prompt.span_end[at]);
    }
  }
  EXPECT_EQ(prompt.soft.size(), static_cast<size_t>(n_soft * prompt.n_embd));
}

TEST(BitsPrompts, AreOfEveryKind) {
  int n_wild = 0;
  int n_spans = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    const std::vector<Prompt> prompts = DrawPrompts(kChoice, &dice);
    ASSERT_EQ(prompts.size(), 6U);
    for (size_t i = 0; i < prompts.size(); ++i) {
      CheckPrompt(prompts[i]);
      EXPECT_EQ(prompts[i].is_noise, i >= 3);
    }
    EXPECT_GE(prompts[0].n_positions(), 40);
    EXPECT_LE(prompts[0].n_positions(), 80);
    EXPECT_EQ(prompts[0].tokens[5], prompts[1].tokens[5]) << "a common beginning";
    n_spans += prompts[0].n_embd > 0 ? 1 : 0;
    n_wild += std::count_if(prompts[5].soft.begin(), prompts[5].soft.end(),
                            [](float x) { return std::isnan(x); }) > 0
                  ? 1
                  : 0;
  }
  EXPECT_GT(n_spans, 100);
  EXPECT_EQ(n_wild, 200);
}

TEST(BitsPrompts, AreTextWhereNothingElseIsAllowed) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Dice dice(seed);
    const auto prompts = DrawPrompts(
        {.n_vocab = 2, .n_embd = 3, .n_positions = static_cast<int>(seed % 5) + 1}, &dice);
    ASSERT_EQ(prompts.size(), 5U);
    for (const Prompt& prompt : prompts) {
      EXPECT_TRUE(prompt.soft.empty());
      EXPECT_LE(prompt.n_positions(), static_cast<int>(seed % 5) + 1);
    }
  }
}

TEST(BitsPrompts, KnowWhereNoBatchMayBegin) {
  const Prompt prompt = {.tokens = {1, 2, 2, 3, 3, 1}, .span_end = {-1, 3, 3, 5, 5, -1}};
  std::vector<int> inside;
  for (int pos = 0; pos <= 6; ++pos) {
    if (prompt.IsInsideSpan(pos)) {
      inside.push_back(pos);
    }
  }
  EXPECT_EQ(inside, (std::vector<int>{2, 4}));
}

TEST(BitsPrograms, HoldEverything) {
  int n_drafts = 0;
  int n_back = 0;
  int n_donors = 0;
  int n_noise = 0;
  int n_mixed = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    const std::vector<Prompt> prompts = DrawPrompts(kChoice, &dice);
    const Program program = DrawProgram(prompts, &dice);
    ASSERT_EQ(program.prompts.size(), program.donors.size());
    ASSERT_LE(program.prompts.size(), static_cast<size_t>(kMaxSequences));
    EXPECT_FALSE(prompts[static_cast<size_t>(program.prompts[0])].is_noise);
    for (size_t s = 0; s < program.donors.size(); ++s) {
      EXPECT_LT(program.donors[s], static_cast<int>(s));
      n_donors += program.donors[s] >= 0 ? 1 : 0;
      n_noise += prompts[static_cast<size_t>(program.prompts[s])].is_noise ? 1 : 0;
    }
    for (const std::vector<Part>& parts : program.batches) {
      n_mixed += parts.size() > 2 ? 1 : 0;
      for (const Part& part : parts) {
        n_drafts += part.is_draft ? 1 : 0;
        n_back += part.n_back > 0 ? 1 : 0;
      }
    }
    EXPECT_EQ(program.batches.back().size(), program.prompts.size());
  }
  for (const int n : {n_drafts, n_back, n_donors, n_noise, n_mixed}) {
    EXPECT_GT(n, 60);
  }
}

TEST(BitsPrograms, ShrinkToWhatIsNeeded) {
  // Fails where a draft of at least 3 rows runs beside another sequence.
  const auto fails = [](const Program& program) {
    return std::any_of(program.batches.begin(), program.batches.end(), [](const auto& parts) {
      return parts.size() > 1 && std::any_of(parts.begin(), parts.end(), [](const Part& part) {
               return part.is_draft && part.n_rows >= 3;
             });
    });
  };
  int n_failed = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Dice dice(seed);
    const std::vector<Prompt> prompts = DrawPrompts(kChoice, &dice);
    const Program program = DrawProgram(prompts, &dice);
    if (!fails(program)) {
      continue;
    }
    ++n_failed;
    const Program least = Shrink(program, 1000, fails);
    ASSERT_EQ(least.batches.size(), 1U);
    ASSERT_EQ(least.batches[0].size(), 2U);
    EXPECT_EQ(least.batches[0][0].n_rows + least.batches[0][1].n_rows, 4);
    EXPECT_FALSE(least.is_scattered);
  }
  EXPECT_GT(n_failed, 20);
}

TEST(BitsPrograms, ShrinkStopsInTime) {
  Dice dice(3);
  const std::vector<Prompt> prompts = DrawPrompts(kChoice, &dice);
  int n_tries = 0;
  const Program program = DrawProgram(prompts, &dice);
  const Program least = Shrink(program, 5, [&n_tries](const Program&) {
    ++n_tries;
    return false;
  });
  EXPECT_EQ(n_tries, 5);
  EXPECT_EQ(least, program);
}

TEST(BitsPrograms, CanBeRead) {
  const Program program = {
      .prompts = {0, 1, 4},
      .donors = {-1, 0, -1},
      .is_scattered = true,
      .batches = {{{.sequence = 0, .n_rows = 40, .wanted = WantedLogits::kNone}},
                  {{.sequence = 1, .n_rows = 3, .is_draft = true},
                   {.sequence = 0, .wanted = WantedLogits::kAll, .n_back = 2}}}};
  EXPECT_EQ(ToText(program),
            "blocks in drawn order\n"
            "sequence 0: prompt 0\n"
            "sequence 1: prompt 1, begins with blocks of 0\n"
            "batch 0: 0 x 40 no logits\n"
            "batch 1: 1 x 3 draft, 0 x 1 after 2 back all logits\n");
}

}  // namespace
}  // namespace facet::bits
