// SPDX-License-Identifier: Apache-2.0
// With a model whose logits are a hash of what a row can see through its blocks: any wrong block,
// token or position changes them, and faults can be built in.
#include "app/bits_run.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "base/check.h"
#include "base/random.h"
#include "kv/plan.h"

namespace facet::bits {
namespace {

constexpr int kVocab = 5;
constexpr int kWindow = 16;
constexpr int kRoom = kMaxPositions + kMaxDraft;

class HistoryRunner final : public Runner {
 public:
  /// Changes the hash of row `row`.
  using Fault = std::function<void(const Batch& batch, size_t row, uint64_t* hash)>;

  explicit HistoryRunner(Fault fault = {}) : fault_(std::move(fault)) {
    const RunnerOptions options = ToRunnerOptions({});
    const auto plan = PlanKvPools({.n_sliding_layers = 1,
                                   .sliding_bytes_per_block = 1,
                                   .n_full_layers = 1,
                                   .full_bytes_per_block = 1,
                                   .window = kWindow,
                                   .n_context = options.n_context,
                                   .n_sequences = options.n_sequences,
                                   .max_rows = options.max_rows});
    FACET_CHECK(plan.ok());
    info_ = {.n_vocab = kVocab,
             .n_context = options.n_context,
             .sliding_window = kWindow,
             .n_sliding_blocks = plan->sliding.n_blocks,
             .n_full_blocks = plan->full.n_blocks};
    sliding_.resize(static_cast<size_t>(info_.n_sliding_blocks) * kBlockPositions);
    full_.resize(static_cast<size_t>(info_.n_full_blocks) * kBlockPositions);
  }

  [[nodiscard]] const RunnerInfo& info() const override { return info_; }

  Result<std::vector<float>> Encode(std::span<const MediaItem* const> /*items*/) override {
    return Refuse("media", "not for this runner");
  }
  [[nodiscard]] std::span<const float> hidden() const override { return {}; }
  Result<std::vector<int32_t>> Draft(std::span<const DraftTask> /*tasks*/) override {
    return Refuse("drafts", "not for this runner");
  }
  std::span<std::byte> block(KvGroup group, BlockId id) override {
    auto& slots = group == KvGroup::kFull ? full_ : sliding_;
    return std::as_writable_bytes(
        std::span(slots).subspan(static_cast<size_t>(id) * kBlockPositions, kBlockPositions));
  }

  Result<std::span<const float>> Run(const Batch& batch) override {
    for (const Row& row : batch.rows) {
      const SequenceBlocks& blocks = batch.sequences[static_cast<size_t>(row.sequence)];
      const uint64_t value =
          row.soft_row >= 0
              ? std::bit_cast<uint32_t>(batch.soft[static_cast<size_t>(row.soft_row * 3)])
              : static_cast<uint64_t>(row.token);
      *At(blocks.sliding, row.pos, &sliding_) = value;
      *At(blocks.full, row.pos, &full_) = value;
    }
    logits_.clear();
    for (size_t r = 0; r < batch.rows.size(); ++r) {
      if (batch.rows[r].wants_logits) {
        AddLogits(batch, r);
      }
    }
    return std::span<const float>(logits_);
  }

  /// What is stored for a position of a row's sequence, by full blocks.
  uint64_t Stored(const Batch& batch, size_t row, int pos) {
    return *At(batch.sequences[static_cast<size_t>(batch.rows[row].sequence)].full, pos, &full_);
  }

 private:
  static uint64_t* At(std::span<const BlockId> blocks, int pos, std::vector<uint64_t>* memory) {
    const auto index = static_cast<size_t>(pos / kBlockPositions);
    FACET_CHECK(index < blocks.size() && blocks[index] != kNoBlock);
    return &(*memory)[static_cast<size_t>(blocks[index] * kBlockPositions + pos % kBlockPositions)];
  }

  void AddLogits(const Batch& batch, size_t r) {
    const Row& row = batch.rows[r];
    const SequenceBlocks& blocks = batch.sequences[static_cast<size_t>(row.sequence)];
    uint64_t hash = 0;
    for (int pos = 0; pos <= row.pos; ++pos) {
      hash = RandomBits(hash, *At(blocks.full, pos, &full_));
      if (pos > row.pos - kWindow) {
        hash = RandomBits(hash, *At(blocks.sliding, pos, &sliding_));
      }
    }
    if (fault_) {
      fault_(batch, r, &hash);
    }
    for (int i = 0; i < kVocab; ++i) {
      logits_.push_back(static_cast<float>(RandomBits(hash, static_cast<uint64_t>(i)) % 1000));
    }
  }

  Fault fault_;
  RunnerInfo info_;
  std::vector<uint64_t> sliding_;
  std::vector<uint64_t> full_;
  std::vector<float> logits_;
};

/// A drawn case, with what its prompts give alone.
struct Drawn {
  explicit Drawn(uint64_t seed) {
    Dice dice(seed);
    prompts =
        DrawPrompts({.n_vocab = kVocab, .n_embd = 3, .n_positions = 90, .has_soft = true}, &dice);
    HistoryRunner runner;
    for (const Prompt& prompt : prompts) {
      alone.push_back(prompt.is_noise ? PromptLogits() : *RunAlone(&runner, prompt));
      EXPECT_EQ(alone.back().size(),
                static_cast<size_t>(prompt.is_noise ? 0 : prompt.n_positions()));
    }
    program = DrawProgram(prompts, &dice);
  }
  std::vector<Prompt> prompts;
  std::vector<PromptLogits> alone;
  Program program;
};

TEST(BitsRun, EveryProgramGivesWhatItsPromptsGiveAlone) {
  HistoryRunner runner;
  int64_t n_compared = 0;
  int64_t n_taken = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Drawn drawn(seed);
    const auto outcome = RunAndCompare(&runner, drawn.prompts, drawn.alone, drawn.program);
    ASSERT_TRUE(outcome.ok());
    n_compared += outcome->n_compared;
    n_taken += outcome->n_taken;
    ASSERT_FALSE(outcome->difference.has_value())
        << seed << "\n"
        << ToText(drawn.program) << ToText(*outcome->difference);
  }
  EXPECT_GT(n_compared, 5'000);
  EXPECT_GT(n_taken, 32 * 75);
}

/// How many of 60 drawn programs show the fault; the shortest form of the first.
int CountFound(HistoryRunner* runner, std::string* shortest) {
  int n_found = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Drawn drawn(seed);
    const auto fails = [&](const Program& program) {
      const auto outcome = RunAndCompare(runner, drawn.prompts, drawn.alone, program);
      return outcome.ok() && outcome->difference.has_value();
    };
    if (fails(drawn.program)) {
      *shortest = n_found == 0 ? ToText(Shrink(drawn.program, 1000, fails)) : *shortest;
      ++n_found;
    }
  }
  return n_found;
}

TEST(BitsRun, FindsWhatDependsOnTheNumberOfRows) {
  HistoryRunner runner(
      [](const Batch& batch, size_t, uint64_t* hash) { *hash += batch.rows.size() == 3 ? 1 : 0; });
  std::string shortest;
  EXPECT_GT(CountFound(&runner, &shortest), 10);
  EXPECT_NE(shortest.find("blocks in order\nsequence "), std::string::npos);
  EXPECT_NE(shortest.find("batch 0:"), std::string::npos);
  EXPECT_EQ(shortest.find("batch 1:"), std::string::npos) << shortest;
}

TEST(BitsRun, FindsWhatDependsOnANeighbour) {
  HistoryRunner runner([](const Batch& batch, size_t, uint64_t* hash) {
    *hash += batch.sequences.size() > 4 ? 1 : 0;
  });
  std::string shortest;
  EXPECT_GT(CountFound(&runner, &shortest), 2);
}

TEST(BitsRun, FindsAReadBehindTheEnd) {
  HistoryRunner* reader = nullptr;
  HistoryRunner runner([&reader](const Batch& batch, size_t row, uint64_t* hash) {
    const int next = batch.rows[row].pos + 1;
    const bool is_there = next % kBlockPositions != 0 && next < kRoom;
    *hash += is_there && reader->Stored(batch, row, next) == 3 ? 1 : 0;
  });
  reader = &runner;
  std::string shortest;
  EXPECT_GT(CountFound(&runner, &shortest), 30) << "leftovers of drafts and of former owners";
}

TEST(BitsRun, ComputesABeginningAlone) {
  HistoryRunner runner;
  const Prompt prompt = {.tokens = {1, 2, 3, 4}, .span_end = {-1, -1, -1, -1}};
  const auto whole = RunAlone(&runner, prompt);
  const auto beginning = RunAlone(&runner, prompt, 2);
  ASSERT_EQ(whole->size(), 4U);
  ASSERT_EQ(beginning->size(), 2U);
  EXPECT_EQ((*beginning)[1], (*whole)[1]);
  EXPECT_NE((*whole)[2], (*whole)[3]);
}

TEST(BitsRun, TellsWhatDiffers) {
  EXPECT_EQ(ToText(Settings{Isa::kAvx2, 1, true, KvType::kQ8_0}),
            "avx2, 1 thread, packed, KV q8_0");
  EXPECT_EQ(ToText(Settings{}), "scalar, 1 thread, unpacked, KV f32");
  const Difference difference = {.batch = 3,
                                 .sequence = 1,
                                 .pos = 40,
                                 .n_rows = 17,
                                 .token = 7,
                                 .n_tokens = 2,
                                 .found = 1.5F,
                                 .wanted = -2.0F};
  EXPECT_EQ(ToText(difference),
            "batch 3 of 17 rows, sequence 1, position 40: logit of token 7 is 1.5 (0x3fc00000), "
            "wanted -2 (0xc0000000); 2 of the row's logits differ");
}

}  // namespace
}  // namespace facet::bits
