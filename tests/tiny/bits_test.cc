// SPDX-License-Identifier: Apache-2.0
// The numbers contract: the logits of a row are a function of that row's own history and nothing
// else. Drawn prompts, run by drawn programs (app/bits_program.h: chunks, neighbours of every kind,
// drafts, shared beginnings, blocks in any order) in every setting, give the bits that the scalar
// set gives on one thread, one row at a time, unpacked and in fresh blocks.
//
// A case is a function of its seed and checkpoint. What fails is made as short as it gets and
// printed with the seed. FACET_BITS_SECONDS=N goes on with other cases for N seconds, from the seed
// FACET_BITS_SEED=N or a new one each time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>

#include "app/bits_program.h"
#include "app/bits_run.h"
#include "support/testing.h"
#include "tiny/driver.h"
#include "tiny/mixed_types.h"

namespace facet::testing {
namespace {

using bits::Dice;
using bits::Program;
using bits::Prompt;
using bits::PromptLogits;
using bits::Settings;

constexpr KvType kKvTypes[] = {KvType::kF16, KvType::kQ8_0, KvType::kBf16, KvType::kF32};
constexpr int kMaxTries = 300;  // of shrinking

template <typename T>
T ValueOrDie(Result<T> result) {
  if (!result.ok()) {
    fmt::print(stderr, "{}\n", result.error().Message());
    std::abort();
  }
  return *std::move(result);
}

std::unique_ptr<Runner> MakeRunnerOrDie(const Checkpoint& checkpoint, const Settings& settings) {
  return ValueOrDie(MakeRunner(checkpoint, bits::ToRunnerOptions(settings)));
}

/// Every set, packed and not, on 1 to 3 threads.
std::vector<Settings> DrawSettings(KvType kv_type, Dice* dice) {
  std::vector<Settings> all;
  for (const Isa isa : SupportedIsas()) {
    for (const bool is_packed : {false, true}) {
      all.push_back({isa, dice->Between(1, 3), is_packed, kv_type});
    }
  }
  return all;
}

/// A checkpoint of testdata, or one that is made of it.
struct Subject {
  std::string name;
  int rotation = -1;  ///< of MakeMixedTypes, or -1: the file itself

  [[nodiscard]] std::string Text() const {
    return rotation < 0 ? name : fmt::format("{} with mixed types {}", name, rotation);
  }
};

std::vector<Subject> ShortList() {
  std::vector<Subject> subjects;
  for (const std::string& name : TinyHfNames()) {
    subjects.push_back({"text/" + name});
  }
  for (const std::string& name : TinyGgufNames()) {
    subjects.push_back({"text/gguf/" + name + ".gguf"});
  }
  for (const int rotation : {0, 13}) {
    subjects.push_back({"dense-k256-Q4_K_M", rotation});
  }
  for (const std::string base : {"etype-sharing-Q4_0", "moe-keqv-Q4_0", "dense-keqv-Q4_0"}) {
    subjects.push_back({base, 0});
  }
  return subjects;
}

Checkpoint Open(const Subject& subject) {
  return OpenOrDie(subject.rotation < 0 ? TestdataPath(subject.name)
                                        : MakeMixedTypes(subject.name, subject.rotation));
}

/// Prompts and what they give alone.
class Case {
 public:
  Case(const Checkpoint& checkpoint, KvType kv_type, uint64_t seed)
      : checkpoint_(checkpoint), dice_(seed), kv_type_(kv_type) {
    const Config& config = checkpoint.config();
    prompts_ = bits::DrawPrompts(
        {.n_vocab = config.n_vocab, .n_embd = config.n_embd, .n_positions = 64, .has_soft = true},
        &dice_);
    const auto plain = MakeRunnerOrDie(checkpoint, {.kv_type = kv_type});
    for (const Prompt& prompt : prompts_) {
      alone_.push_back(prompt.is_noise ? PromptLogits()
                                       : ValueOrDie(bits::RunAlone(plain.get(), prompt)));
    }
  }

  /// Runs `n_programs` programs in each setting; the text of the first failure, or "".
  std::string Run(int n_programs) {
    for (const Settings& one : DrawSettings(kv_type_, &dice_)) {
      const auto runner = MakeRunnerOrDie(checkpoint_, one);
      for (int i = 0; i < n_programs; ++i) {
        const Program program = bits::DrawProgram(prompts_, &dice_);
        const bits::Outcome outcome = Try(runner.get(), program);
        n_compared_ += outcome.n_compared;
        if (outcome.difference.has_value()) {
          return Explain(runner.get(), one, program);
        }
      }
    }
    return "";
  }

  [[nodiscard]] int64_t n_compared() const { return n_compared_; }
  /// Equal bits then mean that no row caught what is not finite from its neighbours.
  [[nodiscard]] bool IsFinite() const {
    return std::all_of(alone_.begin(), alone_.end(), [](const PromptLogits& rows) {
      return std::all_of(rows.begin(), rows.end(), [](const std::vector<float>& row) {
        return std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); });
      });
    });
  }

 private:
  bits::Outcome Try(Runner* runner, const Program& program) const {
    return ValueOrDie(bits::RunAndCompare(runner, prompts_, alone_, program));
  }

  [[nodiscard]] std::string Explain(Runner* runner, const Settings& settings,
                                    const Program& program) const {
    const Program least = bits::Shrink(program, kMaxTries, [&](const Program& candidate) {
      return Try(runner, candidate).difference.has_value();
    });
    std::string text = fmt::format("{}\n{}", bits::ToText(settings), bits::ToText(least));
    const auto difference = Try(runner, least).difference;
    text += difference ? bits::ToText(*difference) : "not on every run: a race or stale memory";
    for (const Settings& simpler : Simpler(settings)) {
      const auto other = MakeRunnerOrDie(checkpoint_, simpler);
      text += fmt::format("\n{} {}", bits::ToText(simpler),
                          Try(other.get(), least).difference ? "differs too" : "is equal");
    }
    return text;
  }

  static std::vector<Settings> Simpler(const Settings& settings) {
    std::vector<Settings> simpler(3, settings);
    simpler[0].n_threads = 1;
    simpler[1].is_packed = false;
    simpler[2].isa = Isa::kScalar;
    simpler.erase(std::remove(simpler.begin(), simpler.end(), settings), simpler.end());
    return simpler;
  }

  const Checkpoint& checkpoint_;
  Dice dice_;
  KvType kv_type_;
  std::vector<Prompt> prompts_;
  std::vector<PromptLogits> alone_;
  int64_t n_compared_ = 0;
};

std::optional<uint64_t> NumberFrom(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) {
    return std::nullopt;
  }
  return std::strtoull(text, nullptr, 10);
}

class BitsTest : public ::testing::TestWithParam<size_t> {};

/// Neighbours in the list have all KV types between them.
TEST_P(BitsTest, AnyProgramInAnySettingGivesTheSameBits) {
  constexpr uint64_t kSeed = 20261130;
  const Subject subject = ShortList()[GetParam()];
  const Checkpoint checkpoint = Open(subject);
  Case drawn(checkpoint, kKvTypes[GetParam() % std::size(kKvTypes)], kSeed + GetParam());
  EXPECT_TRUE(drawn.IsFinite());
  EXPECT_EQ(drawn.Run(1), "") << subject.Text();
  EXPECT_GT(drawn.n_compared(), 0);
}

std::string NameOfSubject(const ::testing::TestParamInfo<size_t>& info) {
  std::string name = ShortList()[info.param].Text();
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, BitsTest, ::testing::Range(size_t{0}, ShortList().size()),
                         NameOfSubject);

/// A subject of the list, or a mixture of types that is not on it.
Subject DrawSubject(Dice* dice) {
  const std::vector<Subject> list = ShortList();
  Subject subject = list[static_cast<size_t>(dice->Between(0, static_cast<int>(list.size()) - 1))];
  if (subject.rotation >= 0) {
    subject.rotation = dice->Between(0, 25);
  }
  return subject;
}

TEST(BitsAtLength, AnyCheckpointProgramAndSetting) {
  const auto seconds = NumberFrom("FACET_BITS_SECONDS");
  if (!seconds.has_value()) {
    GTEST_SKIP() << "the long form: FACET_BITS_SECONDS=N";
  }
  const auto start = std::chrono::steady_clock::now();
  const uint64_t first = NumberFrom("FACET_BITS_SEED").value_or(std::random_device()());
  int64_t n_compared = 0;
  uint64_t n_cases = 0;
  while (std::chrono::steady_clock::now() - start < std::chrono::seconds(*seconds)) {
    const uint64_t seed = first + n_cases++;
    Dice dice(seed);
    const Subject subject = DrawSubject(&dice);
    const KvType kv_type = kKvTypes[dice.Between(0, 3)];
    const Checkpoint checkpoint = Open(subject);
    Case drawn(checkpoint, kv_type, seed);
    EXPECT_TRUE(drawn.IsFinite()) << subject.Text() << ", seed " << seed;
    ASSERT_EQ(drawn.Run(4), "") << subject.Text() << ", FACET_BITS_SEED=" << seed;
    n_compared += drawn.n_compared();
  }
  fmt::print("seeds {} to {}: {} rows compared\n", first, first + n_cases - 1, n_compared);
}

}  // namespace
}  // namespace facet::testing
