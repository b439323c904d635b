// SPDX-License-Identifier: Apache-2.0
// The governor on simulated machines: it is told noisy seconds with pauses among them, and is
// judged by the true mean ones.
#include "engine/draft_governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

namespace facet {
namespace {

/// Seconds of a step: `first_s` + `row_s` for each row after the first; the drafter's: `draft_s`
/// each.
struct Machine {
  double first_s = 0;
  double row_s = 0;
  double draft_s = 0;

  [[nodiscard]] double run_s(int n_rows) const { return first_s + row_s * (n_rows - 1); }
};

constexpr Machine kE2b = {0.040, 0.003, 0.0015};  ///< reads 1 GB of weights for any rows
constexpr Machine kE2bFast = {0.040, 0.0015, 0.001};
constexpr Machine kMoe = {0.060, 0.015, 0.002};      ///< each row brings experts of its own
constexpr Machine kLinear = {0.010, 0.009, 0.0005};  ///< computing bounds it, not reading
constexpr Machine kDearDrafter = {0.040, 0.003, 0.040};

struct Work {
  Machine machine;
  int n_sequences = 1;
  int n_tokens = 1000;     ///< of each sequence, at least
  int n_reply_tokens = 0;  ///< a new sequence takes the place after so many; 0: never
  int n_other_rows = 0;    ///< every fourth step
  double noise = 0.05;     ///< relative deviation of the seconds
  double pauses = 0.01;    ///< chance that a step takes ten times as long
  uint32_t seed = 1;
  /// Chances that a guess is right, by tokens of the sequence so far.
  std::function<double(int n_said)> model = [](int) { return 0.0; };
  std::function<double(int n_said)> match = {};  ///< empty: nothing matches
};

struct Outcome {
  double n_tokens = 0;
  double seconds = 0;
  int n_drafted = 0;
  int n_last_drafted = 0;  ///< in the last tenth of the steps

  [[nodiscard]] double rate() const { return n_tokens / seconds; }
};

using Chooser = std::function<std::vector<DraftChoice>(std::span<const DraftOffer>, int n_other)>;

class Simulation {
 public:
  explicit Simulation(Work work)
      : work_(std::move(work)),
        random_(work_.seed),
        n_said_(static_cast<size_t>(work_.n_sequences), 0),
        records_(static_cast<size_t>(work_.n_sequences)) {}

  /// With `governor`, or with a fixed choice where that is null.
  Outcome Run(DraftGovernor* governor, const DraftChoice& fixed) {
    std::vector<int> drafted;
    while (outcome_.n_tokens < work_.n_tokens * work_.n_sequences) {
      const int n_before = outcome_.n_drafted;
      Step(governor, fixed);
      drafted.push_back(outcome_.n_drafted - n_before);
    }
    for (size_t n = drafted.size() - drafted.size() / 10; n < drafted.size(); ++n) {
      outcome_.n_last_drafted += drafted[n];
    }
    return outcome_;
  }

 private:
  double Random() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  double Noisy(double seconds) {
    const double noise = std::normal_distribution<double>(1, work_.noise)(random_);
    return seconds * std::max(0.5, noise) * (Random() < work_.pauses ? 10 : 1);
  }

  void Step(DraftGovernor* governor, const DraftChoice& fixed) {
    const int n_other = n_steps_++ % 4 == 0 ? work_.n_other_rows : 0;
    std::vector<DraftOffer> offers;
    for (const DraftRecord& record : records_) {
      DraftOffer offer = {&record, 16, 0, DraftSource::kLongMatch};
      if (work_.match) {
        offer.n_match = 16;
      }
      offers.push_back(offer);
    }
    std::vector<DraftChoice> choices(records_.size(), fixed);
    if (governor != nullptr) {
      choices = governor->Choose(offers, n_other, 512);
    }
    int n_rows = work_.n_sequences + n_other;
    int n_model = 0;
    for (const DraftChoice& choice : choices) {
      n_rows += choice.n_drafts;
      n_model += choice.source == DraftSource::kModel ? choice.n_drafts : 0;
    }
    const double run_s = work_.machine.run_s(n_rows);
    const double draft_s = work_.machine.draft_s * n_model;
    outcome_.seconds += run_s + draft_s;
    outcome_.n_drafted += n_rows - work_.n_sequences - n_other;
    for (size_t at = 0; at < choices.size(); ++at) {
      Verify(choices[at], governor, &n_said_[at], &records_[at]);
    }
    if (governor != nullptr) {
      governor->ObserveStep(n_rows, Noisy(run_s), n_model, Noisy(draft_s));
    }
  }

  void Verify(const DraftChoice& choice, DraftGovernor* governor, int* n_said,
              DraftRecord* record) {
    const auto& chance = choice.source == DraftSource::kModel ? work_.model : work_.match;
    int n_accepted = 0;
    while (n_accepted < choice.n_drafts && Random() < chance(*n_said + n_accepted)) {
      ++n_accepted;
    }
    if (governor != nullptr) {
      governor->ObserveDrafts(choice, n_accepted, record);
    }
    *n_said += 1 + n_accepted;
    outcome_.n_tokens += 1 + n_accepted;
    if (work_.n_reply_tokens > 0 && *n_said >= work_.n_reply_tokens) {
      *n_said = 0;
      *record = DraftRecord();
    }
  }

  Work work_;
  std::mt19937 random_;
  std::vector<int> n_said_;
  std::vector<DraftRecord> records_;
  int n_steps_ = 0;
  Outcome outcome_;
};

struct Comparison {
  double to_plain = 0;  ///< tokens per second, as a multiple of those without drafts
  double to_best = 0;   ///< of those with the best number of drafts in hindsight, none included
  int k_best = 0;
  Outcome outcome;
};

/// Means over `n_seeds` runs.
Comparison Compare(Work work, uint32_t n_seeds = 8) {
  Comparison mean;
  std::array<double, 17> fixed{};
  double governed = 0;
  for (uint32_t seed = 1; seed <= n_seeds; ++seed) {
    work.seed = seed;
    DraftGovernor governor;
    mean.outcome = Simulation(work).Run(&governor, {});
    governed += 1 / mean.outcome.rate();
    for (int k = 0; k <= 16; ++k) {
      fixed[static_cast<size_t>(k)] +=
          1 / Simulation(work).Run(nullptr, {DraftSource::kModel, k}).rate();
    }
  }
  const auto best = std::min_element(fixed.begin(), fixed.end());
  mean.to_plain = fixed[0] / governed;
  mean.to_best = *best / governed;
  mean.k_best = static_cast<int>(best - fixed.begin());
  return mean;
}

TEST(DraftGovernor, ALosingDrafterCostsLittle) {
  for (const Machine& machine : {kE2b, kE2bFast, kMoe, kLinear, kDearDrafter}) {
    for (const int n_reply_tokens : {0, 200}) {
      Work work;
      work.machine = machine;
      work.n_reply_tokens = n_reply_tokens;
      const Comparison comparison = Compare(work, 2);
      EXPECT_GE(comparison.to_plain, 0.97) << machine.first_s << ' ' << machine.row_s;
    }
  }
}

TEST(DraftGovernor, AWinningDrafterGainsWhatItCan) {
  for (const double chance : {0.3, 0.5, 0.7, 0.9, 1.0}) {
    Work work;
    work.machine = kE2b;
    work.model = [chance](int) { return chance; };
    EXPECT_GE(Compare(work, 2).to_best, 0.95) << chance;
  }
}

}  // namespace
}  // namespace facet
