// SPDX-License-Identifier: Apache-2.0
// The numbers contract: the logits of a row are a function of that row's own history and nothing
// else. Random prompts, cut into random chunks, mixed with other sequences, on 1 or 2 threads, on
// every instruction set of this machine, in every KV type: always the same bits as the sequence
// alone in one piece on one thread with the scalar kernels.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "support/testing.h"
#include "tiny/driver.h"

namespace facet::testing {
namespace {

struct Prompt {
  std::vector<int32_t> tokens;
  std::vector<int> span_type;
  std::vector<float> soft;
};

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int Between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  float Normal() { return std::normal_distribution<float>()(engine_); }

 private:
  std::mt19937 engine_;
};

/// Text with, now and then, an image of some soft rows.
Prompt RandomPrompt(Dice* dice, int n_vocab, int n_embd) {
  Prompt prompt;
  const int n = dice->Between(1, 90);
  while (static_cast<int>(prompt.tokens.size()) < n) {
    if (dice->Between(0, 30) == 0) {
      const int n_soft = dice->Between(2, 25);
      for (int i = 0; i < n_soft; ++i) {
        prompt.tokens.push_back(19);
        prompt.span_type.push_back(1);
        for (int k = 0; k < n_embd; ++k) {
          prompt.soft.push_back(dice->Normal());
        }
      }
    }
    prompt.tokens.push_back(dice->Between(0, n_vocab - 1));
    prompt.span_type.push_back(0);
  }
  return prompt;
}

std::vector<std::vector<float>> Alone(const Checkpoint& checkpoint, const Prompt& prompt,
                                      KvType kv_type) {
  Driver driver(checkpoint, {Isa::kScalar, 1, kv_type, 256});
  const int s = driver.Add(prompt.tokens, prompt.span_type, prompt.soft);
  return driver.Run({{s, driver.n_left(s), true}});
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Runs all prompts to their ends in random chunks and mixes; checks every row that gave logits.
void CheckMixed(const Checkpoint& checkpoint, const std::vector<Prompt>& prompts,
                const std::vector<std::vector<std::vector<float>>>& alone,
                const DriverOptions& options, Dice* dice) {
  Driver driver(checkpoint, options);
  std::vector<size_t> n_done(prompts.size(), 0);
  for (const Prompt& prompt : prompts) {
    driver.Add(prompt.tokens, prompt.span_type, prompt.soft);
  }
  for (bool is_left = true; is_left;) {
    std::vector<Part> parts;
    is_left = false;
    for (int s = 0; s < static_cast<int>(prompts.size()); ++s) {
      const bool takes_part = dice->Between(0, 3) != 0;
      is_left = is_left || driver.n_left(s) > 0;
      if (driver.n_left(s) > 0 && takes_part) {
        const int n = driver.ChunkEnd(s, dice->Between(1, dice->Between(0, 1) == 0 ? 3 : 60));
        parts.push_back({s, n, dice->Between(0, 1) == 0});
      }
    }
    if (parts.empty()) {
      continue;
    }
    const auto logits = driver.Run(parts);
    size_t at = 0;
    for (const Part& part : parts) {
      const auto s = static_cast<size_t>(part.sequence);
      for (int i = 0; i < part.n_rows; ++i, ++n_done[s]) {
        if (part.wants_all_logits || i + 1 == part.n_rows) {
          ASSERT_TRUE(SameBits(logits[at], alone[s][n_done[s]]))
              << "sequence " << s << " row " << n_done[s];
          ++at;
        }
      }
    }
    ASSERT_EQ(at, logits.size());
  }
}

std::vector<std::string> AllCheckpoints() {
  std::vector<std::string> paths;
  for (const std::string& name : TinyHfNames()) {
    paths.push_back("text/" + name);
  }
  for (const std::string& name : TinyGgufNames()) {
    paths.push_back("text/gguf/" + name + ".gguf");
  }
  return paths;
}

class BitsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BitsTest, AnyChunkingMixThreadsAndInstructionSet) {
  const Checkpoint checkpoint = OpenOrDie(TestdataPath(GetParam()));
  Dice dice(20261130);
  int n_rounds = 0;
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kQ8_0}) {
    std::vector<Prompt> prompts;
    std::vector<std::vector<std::vector<float>>> alone;
    for (int i = 0; i < 3; ++i) {
      prompts.push_back(
          RandomPrompt(&dice, checkpoint.config().n_vocab, checkpoint.config().n_embd));
      alone.push_back(Alone(checkpoint, prompts.back(), kv_type));
    }
    for (const Isa isa : SupportedIsas()) {
      for (const int n_threads : {1, 2}) {
        SCOPED_TRACE(std::string(NameOf(kv_type)).append(" ").append(NameOf(isa)));
        CheckMixed(checkpoint, prompts, alone, {isa, n_threads, kv_type, 256}, &dice);
        ++n_rounds;
        if (HasFatalFailure()) {
          return;
        }
      }
    }
  }
  EXPECT_EQ(n_rounds, 8 * static_cast<int>(SupportedIsas().size()));
}

INSTANTIATE_TEST_SUITE_P(Tiny, BitsTest, ::testing::ValuesIn(AllCheckpoints()),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name) {
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace facet::testing
