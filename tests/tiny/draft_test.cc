// SPDX-License-Identifier: Apache-2.0
// Guessing ahead changes no reply: tokens, bits of their log probabilities and endings equal those
// without it, with real models and drafters of both heads, under the best instruction set and the
// least vector one of this processor, for one to eight sequences at once. engine/draft_test.cc has
// more kinds of requests, over a runner without a model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compute/cpu.h"
#include "engine/engine_core.h"
#include "kv/plan.h"
#include "model/model.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

struct Case {
  std::string target;
  std::string drafter;  ///< empty: none fits
  std::string prompts;  ///< goldens, in testdata; empty: none
  SpecMode spec;
  Isa isa;
};

/// All that a user sees of a request.
struct Reply {
  std::vector<std::pair<int32_t, uint32_t>> tokens;  ///< with the bits of the log probability
  FinishReason reason = FinishReason::kError;
  bool operator==(const Reply&) const = default;
};

struct Machine {
  Machine(const Checkpoint& target, const DrafterCheckpoint* drafter, const Case& c,
          SpecMode spec) {
    RunnerOptions options;
    options.n_context = 200;
    options.n_sequences = 2;  // of eight some are preempted
    options.n_threads = 1;
    options.isa = c.isa;
    options.drafter = drafter;
    auto made = MakeRunner(target, options);
    EXPECT_TRUE(made.ok()) << made.error().Message();
    runner = *std::move(made);
    EngineOptions engine;
    engine.max_rows = 48;
    engine.max_rows_beside = 20;
    engine.max_sequences = 8;
    engine.reuses_prefixes = true;
    engine.spec = spec;
    engine.max_drafts = 6;
    engine.token_bytes = [](int32_t token) {
      return std::string_view("abcd").substr(static_cast<size_t>(token) % 4, 1);
    };
    engine.on_step = [this](const StepReport& report) {
      n_preempted += report.n_preempted;
      n_drafted += report.n_drafted;
      n_accepted += report.n_accepted;
    };
    // A step takes the same time whatever its rows: guessing always pays.
    core = std::make_unique<EngineCore>(runner.get(), engine, [this] { return now_s += 0.001; });
  }

  std::map<uint64_t, Reply> Answer(const std::vector<Request>& requests) {
    for (const Request& request : requests) {
      const Status status = core->Add(request, 0);
      EXPECT_TRUE(status.ok()) << status.error().Message();
    }
    std::map<uint64_t, Reply> replies;
    while (core->has_work()) {
      for (const Event& event : core->Step()) {
        Reply& reply = replies[event.request_id];
        if (event.kind == Event::Kind::kToken) {
          reply.tokens.emplace_back(event.token, std::bit_cast<uint32_t>(event.logprob.logprob));
        } else {
          EXPECT_NE(event.reason, FinishReason::kError) << event.error;
          reply.reason = event.reason;
        }
      }
    }
    return replies;
  }

  double now_s = 0;
  int n_preempted = 0;
  int n_drafted = 0;
  int n_accepted = 0;
  std::unique_ptr<Runner> runner;
  std::unique_ptr<EngineCore> core;
};

/// Some begin with `prompts`, after which the drafter is right at times.
std::vector<Request> RandomRequests(const std::vector<std::vector<int32_t>>& prompts,
                                    const Checkpoint& target, int n_requests, uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Request> requests;
  for (int n = 0; n < n_requests; ++n) {
    Request request;
    request.id = static_cast<uint64_t>(n) + 1;
    if (!prompts.empty() && below(3) != 0) {
      request.prompt = prompts[static_cast<size_t>(below(static_cast<int>(prompts.size())))];
    }
    const int n_prompt = request.prompt.empty() ? 4 + below(120) : 0;
    for (int i = 0; i < n_prompt; ++i) {
      // Repetition, for guesses from the text itself.
      const bool repeats = i > 20 && below(8) != 0;
      request.prompt.push_back(repeats ? request.prompt[static_cast<size_t>(i) - 9]
                                       : below(target.config().n_vocab));
    }
    request.max_tokens = n_requests < 8 ? 5 + below(60) : 100;  // more than there is room for
    request.sampling.temperature = 0;
    request.sampling.seed = seed + request.id;
    request.stops_on_repetition = n_requests < 8 && below(2) == 0;
    if (below(2) == 0) {  // else the drafters of the fixtures are hardly ever right
      request.max_tokens = below(2) == 0 ? -1 : request.max_tokens;
      request.sampling.temperature = below(3) == 0 ? 0.0F : 0.9F;
      request.sampling.top_k = 1 + below(30);
      request.sampling.repetition_penalty = below(3) == 0 ? 1.2F : 1.0F;
      request.sampling.frequency_penalty = below(3) == 0 ? 0.3F : 0.0F;
      request.end_tokens = {below(target.config().n_vocab), below(target.config().n_vocab)};
    }
    if (below(6) == 0) {
      request.stop = {"abcabc", "dd"};
    }
    if (below(4) == 0) {
      request.sampling.logit_bias = {{below(target.config().n_vocab), 9.0F}};
    }
    request.n_top_logprobs = 0;
    requests.push_back(std::move(request));
  }
  return requests;
}

/// Prompts of goldens that leave room for a reply.
std::vector<std::vector<int32_t>> PromptsIn(const std::string& file) {
  std::vector<std::vector<int32_t>> prompts;
  if (file.empty()) {
    return prompts;
  }
  const Json goldens = JsonOrDie(TestdataPath(file));
  for (const Json& golden : goldens["cases"].items()) {
    if (golden["files"].is_null() && golden["ids"].items().size() < 100) {
      std::vector<int32_t>& prompt = prompts.emplace_back();
      for (const Json& id : golden["ids"].items()) {
        prompt.push_back(static_cast<int32_t>(id.as_int()));
      }
    }
  }
  return prompts;
}

class Drafts : public ::testing::TestWithParam<Case> {};

TEST_P(Drafts, ChangeNoReply) {
  const Case& c = GetParam();
  const auto target = Checkpoint::Open(SourcePath(c.target));
  ASSERT_TRUE(target.ok()) << target.error().Message();
  std::optional<DrafterCheckpoint> drafter;
  if (!c.drafter.empty()) {
    auto opened = DrafterCheckpoint::Open(SourcePath(c.drafter));
    ASSERT_TRUE(opened.ok()) << opened.error().Message();
    drafter = *std::move(opened);
  }
  int n_preempted = 0;
  int n_drafted = 0;
  int n_accepted = 0;
#ifdef __SANITIZE_ADDRESS__
  constexpr std::array kCounts = {1, 8};  // each takes ten times as long
#else
  constexpr std::array kCounts = {1, 2, 4, 8};
#endif
  for (const int n_requests : kCounts) {
    const std::vector<Request> requests = RandomRequests(PromptsIn(c.prompts), *target, n_requests,
                                                         static_cast<uint64_t>(n_requests));
    Machine plain(*target, nullptr, c, SpecMode::kOff);
    Machine ahead(*target, drafter ? &*drafter : nullptr, c, c.spec);
    EXPECT_EQ(ahead.Answer(requests), plain.Answer(requests)) << n_requests << " at once";
    EXPECT_EQ(plain.n_drafted, 0);
    n_preempted += ahead.n_preempted;
    n_drafted += ahead.n_drafted;
    n_accepted += ahead.n_accepted;
  }
  EXPECT_GT(n_preempted, 0);
  EXPECT_GT(n_drafted, 20);
  EXPECT_GT(n_accepted, 4);
  EXPECT_LT(n_accepted, n_drafted);
}

struct Pair {
  std::string target;
  std::string drafter;
  std::string prompts;
};

/// Greedy, four guesses a round, as the reference counts them (models/recipe of the tiny model):
/// also past the end of the reply.
class Rounds {
 public:
  Rounds(Runner* runner, std::vector<int32_t> prompt) : runner_(runner), known_(std::move(prompt)) {
    for (BlockId id = 0; id < BlocksFor(runner_->info().n_context); ++id) {
      blocks_.push_back(id);
    }
    for (size_t pos = 0; pos < known_.size(); ++pos) {
      rows_.push_back({.pos = static_cast<int32_t>(pos),
                       .token = known_[pos],
                       .wants_logits = pos + 1 == known_.size()});
    }
    known_.push_back(Run().front());
    hidden_.assign(runner_->hidden().begin(), runner_->hidden().end());
  }

  /// How many of the next guesses were right.
  int Next() {
    constexpr int kDrafts = 4;
    const auto pos = static_cast<int32_t>(known_.size()) - 1;
    const DraftTask task = {known_.back(), pos, hidden_, blocks(), kDrafts};
    const auto drafts = runner_->Draft({&task, 1});
    EXPECT_TRUE(drafts.ok()) << drafts.error().Message();
    rows_ = {{.pos = pos, .token = known_.back(), .wants_logits = true}};
    for (const int32_t draft : *drafts) {
      rows_.push_back({.pos = rows_.back().pos + 1, .token = draft, .wants_logits = true});
    }
    const std::vector<int32_t> choices = Run();
    size_t n_right = 0;
    while (n_right < kDrafts && (*drafts)[n_right] == choices[n_right]) {
      ++n_right;
    }
    known_.insert(known_.end(), choices.begin(),
                  choices.begin() + static_cast<std::ptrdiff_t>(n_right) + 1);
    const auto n_embd = static_cast<size_t>(runner_->info().n_embd);
    const auto row = runner_->hidden().subspan(n_right * n_embd, n_embd);
    hidden_.assign(row.begin(), row.end());
    return static_cast<int>(n_right);
  }

  [[nodiscard]] const std::vector<int32_t>& known() const { return known_; }

 private:
  [[nodiscard]] SequenceBlocks blocks() const { return {blocks_, blocks_}; }

  /// The best token after each row that wants logits.
  std::vector<int32_t> Run() {
    const auto logits = runner_->Run({.rows = rows_, .sequences = {blocks()}, .soft = {}});
    EXPECT_TRUE(logits.ok()) << logits.error().Message();
    const auto n_vocab = static_cast<size_t>(runner_->info().n_vocab);
    std::vector<int32_t> best;
    for (size_t at = 0; at < logits->size(); at += n_vocab) {
      const auto row = logits->subspan(at, n_vocab);
      best.push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
    }
    return best;
  }

  Runner* runner_;
  std::vector<int32_t> known_;
  std::vector<BlockId> blocks_;  // of both groups: position p lies in block p / 32
  std::vector<Row> rows_;
  std::vector<float> hidden_;
};

TEST(TinyDrafter, IsRightWhereTheReferenceIs) {
  const auto target = Checkpoint::Open(SourcePath("models/tiny/facet-tiny.gguf"));
  const auto drafter = DrafterCheckpoint::Open(TestdataPath("tiny-assistant"));
  ASSERT_TRUE(target.ok() && drafter.ok());
  RunnerOptions options;
  options.n_context = 512;
  options.n_sequences = 8;  // so that the sliding group, too, has a block for every position
  options.kv_type = KvType::kF32;
  options.drafter = &*drafter;
  const auto runner = MakeRunner(*target, options);
  ASSERT_TRUE(runner.ok()) << runner.error().Message();
  ASSERT_GE((*runner)->info().n_sliding_blocks, BlocksFor(options.n_context));
  const Json goldens = JsonOrDie(TestdataPath("tiny-hf/goldens.json"));
  int n_cases = 0;
  for (const Json& golden : goldens["cases"].items()) {
    if (golden["drafts_accepted_of_4"].is_null()) {
      continue;
    }
    std::vector<int32_t> prompt;
    for (const Json& id : golden["ids"].items()) {
      prompt.push_back(static_cast<int32_t>(id.as_int()));
    }
    Rounds rounds(runner->get(), prompt);
    for (const Json& n_right : golden["drafts_accepted_of_4"].items()) {
      EXPECT_EQ(rounds.Next(), n_right.as_int()) << golden["name"].as_string();
    }
    size_t pos = prompt.size();
    for (const Json& id : golden["output_ids"].items()) {
      EXPECT_EQ(rounds.known().at(pos++), id.as_int()) << golden["name"].as_string();
    }
    ++n_cases;
  }
  EXPECT_EQ(n_cases, 47);
}

std::vector<Case> Cases() {
  const std::vector<Pair> pairs = {
      {"models/tiny/facet-tiny.gguf", "models/tiny/facet-tiny-drafter.gguf",
       "tiny-hf/goldens.json"},
      {"testdata/tiny-gguf/facet-tiny-q8_0.gguf",
       "testdata/tiny-gguf/facet-tiny-assistant-q8_0.gguf", "tiny-hf/goldens.json"},
      {"testdata/text/etype-sharing", "testdata/text/etype-sharing-assistant",
       "text/etype-sharing-assistant/cases.json"},
      {"testdata/text/dense-keqv", "testdata/text/dense-keqv-assistant",
       "text/dense-keqv-assistant/cases.json"},
  };
  std::vector<Case> cases;
  const std::vector<Isa> supported = SupportedIsas();
  std::vector<Isa> isas = {supported.back()};
  if (supported.size() > 2) {  // the scalar kernels are slow
    isas.push_back(supported[1]);
  }
  for (const Isa isa : isas) {
    for (const auto& [target, drafter, prompts] : pairs) {
      cases.push_back({target, drafter, prompts, SpecMode::kMtp, isa});
      cases.push_back({target, drafter, prompts, SpecMode::kAuto, isa});
    }
    cases.push_back({pairs[0].target, "", "", SpecMode::kNgram, isa});
    cases.push_back(
        {"testdata/text/gguf/moe-keqv-Q4_0.gguf", "", pairs[2].prompts, SpecMode::kNgram, isa});
  }
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  static constexpr std::array<std::string_view, 4> kSpecs = {"off", "ngram", "mtp", "auto"};
  std::string name = std::filesystem::path(info.param.target).stem();
  name += fmt::format("_{}_{}", kSpecs[static_cast<size_t>(info.param.spec)],
                      facet::NameOf(info.param.isa));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Drafts, ::testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace facet::testing
