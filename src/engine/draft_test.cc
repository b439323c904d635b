// SPDX-License-Identifier: Apache-2.0
// Drafting changes no reply: streams with it equal streams without, event for event, whatever is
// guessed, and what it leaves behind in blocks and in the prefix tree is the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/engine_core_testing.h"

namespace facet {
namespace {

using testing::AddRandomMedia;
using testing::DraftInfo;
using testing::EchoLogits;
using testing::FakeRunner;
using testing::HashLogits;
using testing::kVocab;
using testing::Machine;
using testing::Options;
using testing::RandomRequest;
using testing::Reply;
using testing::TokenBytes;

/// Hears what streams say in a run without drafts, to the last token, and foretells it to one with
/// them.
class Oracle {
 public:
  FakeRunner::Script Listen(FakeRunner::Script script) {
    return [this, script = std::move(script)](std::span<const int32_t> history,
                                              std::span<float> logits) {
      asked_.push_back(HashOf(history));
      script(history, logits);
    };
  }

  /// EngineOptions::token_bytes: asked for each token that is drawn, in the order of the logits.
  std::function<std::string_view(int32_t)> Hear() {
    return [this](int32_t token) {
      next_[asked_.front()] = token;
      asked_.pop_front();
      return TokenBytes(token);
    };
  }

  /// Each of `n` tokens is right with a chance of `p_right`, given that all before it were.
  [[nodiscard]] std::vector<int32_t> Foretell(std::span<const int32_t> history, int n,
                                              double p_right, std::mt19937* random) const {
    std::vector<int32_t> text(history.begin(), history.end());
    std::vector<int32_t> drafts;
    for (int k = 0; k < n; ++k) {
      const auto next = next_.find(HashOf(text));
      const int32_t right = next == next_.end() ? 0 : next->second;
      const bool is_right = static_cast<double>((*random)() % 1000U) < p_right * 1000;
      drafts.push_back(is_right ? right : (right + 1) % kVocab);
      text.push_back(drafts.back());
    }
    return drafts;
  }

 private:
  static uint64_t HashOf(std::span<const int32_t> history) {
    uint64_t hash = history.size();
    for (const int32_t token : history) {
      hash = (hash ^ static_cast<uint32_t>(token)) * 0xD6E8FEB86659FD93U;
      hash ^= hash >> 32U;
    }
    return hash;
  }

  std::deque<uint64_t> asked_;
  std::unordered_map<uint64_t, int32_t> next_;
};

/// Who guesses, and how well.
struct Guessing {
  const char* name;
  SpecMode mode;
  double p_right;  ///< of the drafter
  int max_drafts;
  int fails_at = -1;  ///< call of the drafter
};

/// What is asked of an engine, and when.
struct Load {
  struct Arrival {
    int step;
    Request request;
  };
  struct Cancel {
    int step;
    uint64_t id;
  };
  RunnerInfo info;
  EngineOptions options;
  FakeRunner::Script script;
  std::vector<Arrival> arrivals;
  std::vector<Cancel> cancels;
};

/// What drafting did.
struct Sums {
  int64_t n_drafted = 0;
  int64_t n_accepted = 0;
  int64_t n_preempted = 0;
  int64_t n_cached = 0;
  int n_errors = 0;
  int most_at_once = 0;  ///< sequences that had drafts in one step
};

Load MakeLoad(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Load load;
  load.info = DraftInfo(300, 10 + below(24));
  load.info.sliding_window = below(3) == 0 ? 0 : 1 + below(100);
  load.info.n_sliding_blocks = 6 + below(12);
  load.options = Options();
  load.options.max_rows = 8 + below(90);
  load.options.max_rows_beside = 1 + below(40);
  load.options.max_sequences = 1 + below(8);
  load.options.reuses_prefixes = below(2) == 0;
  load.script = below(3) == 0 ? HashLogits : EchoLogits;
  const Machine machine(HashLogits, load.info, load.options);
  const RunnerInfo& info = machine.core.info();
  int step = 0;
  for (uint64_t id = 1; id <= 12; ++id, step += below(4)) {
    Request request = RandomRequest(id, random, info.n_context);
    request.sampling.temperature = static_cast<float>(below(3)) * 0.4F;
    if (below(3) == 0) {
      AddRandomMedia(info, random, &request);
    }
    if (below(3) == 0) {
      request.n_top_logprobs = below(4);
    }
    if (below(4) == 0) {
      request.thought = {
          .open = 30, .close = 31, .starts_open = below(2) == 0, .max_tokens = below(20)};
    }
    if (below(8) == 0) {
      request.spec = static_cast<SpecMode>(below(4));
    }
    request.reuses_prefix = below(8) != 0;
    if (id > 1 && request.media.empty() && below(3) == 0) {
      request.prompt = load.arrivals.front().request.prompt;
    }
    if (below(10) == 0) {
      load.cancels.push_back({step + below(30), id});
    }
    load.arrivals.push_back({step, std::move(request)});
  }
  return load;
}

std::map<uint64_t, Reply> Play(const Load& load, Machine& machine) {
  size_t n_arrived = 0;
  for (int step = 0; n_arrived < load.arrivals.size() || machine.core.has_work(); ++step) {
    while (n_arrived < load.arrivals.size() && load.arrivals[n_arrived].step <= step) {
      machine.Add(load.arrivals[n_arrived++].request);
    }
    for (const Load::Cancel& cancel : load.cancels) {
      if (cancel.step == step) {
        machine.core.Cancel(cancel.id);
      }
    }
    machine.Step();
    EXPECT_LT(step, 100000) << "no end";
  }
  machine.ExpectClean();
  return std::move(machine.replies);
}

/// The load with drafts.
std::map<uint64_t, Reply> PlayDrafting(Load load, const Guessing& guessing, const Oracle& oracle,
                                       Sums* sums) {
  load.options.spec = guessing.mode;
  load.options.max_drafts = guessing.max_drafts;
  Sums reported;
  load.options.on_step = [&reported](const StepReport& report) {
    reported.n_drafted += report.n_drafted;
    reported.n_accepted += report.n_accepted;
    reported.n_errors += report.draft_error.empty() ? 0 : 1;
  };
  Machine machine(load.script, load.info, load.options);
  std::mt19937 random(1);
  machine.runner.propose = [&](std::span<const int32_t> history, int n) {
    return oracle.Foretell(history, n, guessing.p_right, &random);
  };
  int n_calls = 0;
  machine.runner.before_draft = [&](std::span<const DraftTask> tasks) -> Status {
    machine.now_s += 0.01 * static_cast<double>(tasks.size());
    sums->most_at_once = std::max(sums->most_at_once, static_cast<int>(tasks.size()));
    return n_calls++ == guessing.fails_at ? Status(Refuse("drafter", "lost")) : Status();
  };
  machine.runner.before_run = [&machine](const Batch& batch) {
    machine.now_s += 1 + 0.01 * static_cast<double>(batch.rows.size());
    return Status();
  };
  std::map<uint64_t, Reply> replies = Play(load, machine);
  Sums counted;
  for (const auto& [id, reply] : replies) {
    const RequestStats& stats = reply.finished->stats;
    EXPECT_LE(stats.n_accepted, stats.n_drafted);
    EXPECT_LE(stats.n_draft_rounds, stats.n_drafted);
    counted.n_drafted += stats.n_drafted;
    counted.n_accepted += stats.n_accepted;
    sums->n_cached += stats.n_cached;
  }
  EXPECT_EQ(counted.n_drafted, reported.n_drafted);
  EXPECT_EQ(counted.n_accepted, reported.n_accepted);
  EXPECT_EQ(reported.n_errors, n_calls > guessing.fails_at && guessing.fails_at >= 0 ? 1 : 0);
  EXPECT_TRUE(reported.n_errors == 0 || n_calls == guessing.fails_at + 1) << "asked again";
  sums->n_drafted += reported.n_drafted;
  sums->n_accepted += reported.n_accepted;
  sums->n_errors += reported.n_errors;
  sums->n_preempted += machine.core.counters().n_preempted;
  return replies;
}

void ExpectSame(const Reply& plain, const Reply& drafting) {
  const auto is_cancelled = [](const Reply& reply) {
    return reply.finished->reason == FinishReason::kCancelled;
  };
  if (is_cancelled(plain) || is_cancelled(drafting)) {
    // Each was cancelled somewhere else; a cancel releases what was held for a stop text.
    const size_t n_common = std::min(plain.text.size(), drafting.text.size());
    EXPECT_EQ(plain.text.substr(0, n_common), drafting.text.substr(0, n_common));
    return;
  }
  EXPECT_EQ(plain, drafting);
}

Sums PlayLoads(const Guessing& guessing, unsigned first_seed, unsigned n_loads) {
  Sums sums;
  for (unsigned seed = first_seed; seed < first_seed + n_loads; ++seed) {
    const Load load = MakeLoad(seed);
    Oracle oracle;
    EngineOptions options = load.options;
    options.token_bytes = oracle.Hear();
    Machine machine(oracle.Listen(load.script), load.info, options);
    std::map<uint64_t, Reply> plain = Play(load, machine);
    std::map<uint64_t, Reply> drafting = PlayDrafting(load, guessing, oracle, &sums);
    for (const auto& [id, reply] : plain) {
      SCOPED_TRACE(std::string(guessing.name) + ", seed " + std::to_string(seed) + ", request " +
                   std::to_string(id));
      EXPECT_EQ(reply.finished->stats.n_drafted, 0);
      ExpectSame(reply, drafting[id]);
    }
  }
  return sums;
}

TEST(Drafting, StreamsEqualThoseWithout) {
  const Guessing all[] = {
      {"right", SpecMode::kMtp, 1.0, 16},      {"random", SpecMode::kMtp, 0.6, 8},
      {"wrong", SpecMode::kMtp, 0.1, 4},       {"few", SpecMode::kMtp, 0.8, 1},
      {"failing", SpecMode::kMtp, 0.8, 5, 12}, {"repetition", SpecMode::kNgram, 0.0, 6},
      {"both", SpecMode::kAuto, 0.7, 8}};
  constexpr unsigned kLoads = 8;
  unsigned first_seed = 1;
  int most_at_once = 0;
  int64_t n_preempted = 0;
  int64_t n_cached = 0;
  for (const Guessing& guessing : all) {
    const Sums sums = PlayLoads(guessing, first_seed, kLoads);
    first_seed += kLoads;
    EXPECT_GT(sums.n_drafted, 50) << guessing.name;
    EXPECT_GT(sums.n_accepted, 10) << guessing.name;
    EXPECT_GT(sums.n_drafted - sums.n_accepted, 20) << guessing.name;
    EXPECT_EQ(sums.n_errors > 0, guessing.fails_at >= 0) << guessing.name;
    most_at_once = std::max(most_at_once, sums.most_at_once);
    n_preempted += sums.n_preempted;
    n_cached += sums.n_cached;
  }
  EXPECT_GE(most_at_once, 5);
  EXPECT_GT(n_preempted, 30);
  EXPECT_GT(n_cached, 500);
}

/// Blocks of a tree by what they were computed from, with the numbers in them.
std::map<std::vector<PrefixUnit>, std::string> ContentOf(Machine& machine) {
  const std::vector<PrefixRecord> records = machine.core.prefix_cache()->tree().Export();
  std::vector<std::vector<PrefixUnit>> paths;
  std::map<std::vector<PrefixUnit>, std::string> content;
  for (const PrefixRecord& record : records) {
    std::vector<PrefixUnit>& path = paths.emplace_back();
    if (record.parent >= 0) {
      path = paths[static_cast<size_t>(record.parent)];
    }
    path.insert(path.end(), record.units.begin(), record.units.end());
    std::string bytes;
    const std::pair<KvGroup, BlockId> blocks[] = {{KvGroup::kSliding, record.sliding},
                                                  {KvGroup::kFull, record.full}};
    for (const auto& [group, block] : blocks) {
      bytes += block == kNoBlock ? "none " : "held ";
      if (block != kNoBlock) {
        const std::span<const std::byte> memory = machine.runner.block(group, block);
        const size_t n_bytes = memory.size() / kBlockPositions * record.units.size();
        bytes.append(reinterpret_cast<const char*>(memory.data()), n_bytes);
      }
    }
    content[path] = bytes;
  }
  return content;
}

/// One conversation after the other, in pools with room for all: what is left of them and found
/// again, and the numbers in the blocks, are the same as without drafts.
TEST(Drafting, WhatIsLeftInBlocksAndTreeIsTheSame) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  EngineOptions options = Options();
  options.reuses_prefixes = true;
  Oracle oracle;
  options.token_bytes = oracle.Hear();
  Machine plain(oracle.Listen(EchoLogits), DraftInfo(1000, 2000), options);
  options.token_bytes = TokenBytes;
  options.spec = SpecMode::kAuto;
  options.max_drafts = kMaxDrafts;
  Machine drafting(EchoLogits, DraftInfo(1000, 2000), options);
  std::mt19937 guesses(3);
  drafting.runner.propose = [&](std::span<const int32_t> history, int n) {
    return oracle.Foretell(history, n, 0.7, &guesses);
  };
  std::vector<int32_t> said;
  int n_cached = 0;
  Sums sums;
  for (uint64_t id = 1; id <= 25; ++id) {
    Request request = RandomRequest(id, random, 200);
    if (below(3) != 0) {
      said.resize(std::min(said.size(), static_cast<size_t>(300 + below(300))));
      request.prompt.insert(request.prompt.begin(), said.begin(), said.end());
    }
    for (Machine* machine : {&plain, &drafting}) {
      machine->Add(request);
      while (machine->core.has_work()) {
        machine->Step();
      }
    }
    const Reply& reply = drafting.replies[id];
    EXPECT_EQ(plain.replies[id], reply) << id;
    EXPECT_EQ(plain.replies[id].finished->stats.n_cached, reply.finished->stats.n_cached) << id;
    n_cached += reply.finished->stats.n_cached;
    sums.n_drafted += reply.finished->stats.n_drafted;
    sums.n_accepted += reply.finished->stats.n_accepted;
    said = request.prompt;
    said.insert(said.end(), reply.tokens.begin(), reply.tokens.end());
  }
  const auto content = ContentOf(plain);
  EXPECT_GT(content.size(), 50U);
  EXPECT_TRUE(content == ContentOf(drafting));
  EXPECT_EQ(plain.core.full_pool().n_free(), drafting.core.full_pool().n_free());
  EXPECT_EQ(plain.core.sliding_pool().n_free(), drafting.core.sliding_pool().n_free());
  EXPECT_GT(n_cached, 1000);
  EXPECT_GT(sums.n_accepted, 300);
  EXPECT_GT(sums.n_drafted - sums.n_accepted, 100);
  drafting.ExpectClean();
  plain.ExpectClean();
}

}  // namespace
}  // namespace facet
