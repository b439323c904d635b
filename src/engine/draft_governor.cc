// SPDX-License-Identifier: Apache-2.0
#include "engine/draft_governor.h"

#include <algorithm>

#include "base/check.h"

namespace facet {
namespace {

constexpr double kUnknownChance = 0.5;  ///< of a source that was never asked
constexpr double kUnknownGuesses = 4;
constexpr double kPriorGuesses = 12;  ///< guesses that a prior counts as
constexpr double kAllMemory = 200;    ///< guesses of all sequences that make the prior
constexpr double kLeastGain = 1e-3;   ///< tokens; what brings less is not considered

/// Rounds of a source, of one draft, two and three, before anything is decided on it.
constexpr int kFirstRounds = 3;
constexpr int kLongestProbe = 4;
constexpr int kFirstWait = 32;  ///< steps between probes of a source that doesn't pay
constexpr int kLongestWait = 512;
constexpr double kWaitShare =
    0.002;  ///< of its time, that a sequence's probes cost at the longest wait
/// A gain of less than this part of a step's time is checked by a step without drafts now and then.
constexpr double kDoubtful = 0.3;
constexpr int kPlainWait = 16;
constexpr double kProbeShare = 0.01;  ///< of the time, what probes may cost
constexpr double kProbeSteps = 4;     ///< that are saved up for probes at most
/// What is known from before a wait counts so much beside what the probe says.
constexpr double kStale = 0.75;

constexpr double kMargin = 1.015;  ///< a gain below this may be one of measuring
constexpr double kLeastSeconds = 1e-9;

}  // namespace

void DraftRecord::Add(DraftSource source, int n_drafted, int n_accepted) {
  FACET_CHECK(0 <= n_accepted && n_accepted <= n_drafted);
  Counts& counts = of(source);
  const int n_wrong = n_accepted < n_drafted ? 1 : 0;
  for (int n = 0; n < n_accepted + n_wrong; ++n) {
    counts.n_right *= 1 - 1 / memory_;
    counts.n_wrong *= 1 - 1 / memory_;
    (n < n_accepted ? counts.n_right : counts.n_wrong) += 1;
  }
}

double DraftRecord::Chance(DraftSource source, double prior) const {
  return Chance(source, prior, kPriorGuesses);
}

double DraftRecord::Chance(DraftSource source, double prior, double n_prior) const {
  const Counts& counts = of(source);
  return (counts.n_right + n_prior * prior) / (counts.n_right + counts.n_wrong + n_prior);
}

DraftGovernor::DraftGovernor() : all_(kAllMemory) {
  first_round_step_.fill(-1);
  longest_wait_.fill(kLongestWait);
}

double DraftGovernor::Plan::per_draft_s(DraftSource source) const {
  const auto mean = [](const std::vector<double>& seconds) {
    const size_t n = std::min<size_t>(4, seconds.size() - 1);
    return n == 0 ? 0 : seconds[n] / static_cast<double>(n);
  };
  const double pass_s = mean(passes_s) / static_cast<double>(n_sharing);
  return mean(more_s) + (source == DraftSource::kModel ? pass_s : 0);
}

double DraftGovernor::ChanceOf(const DraftOffer& offer, DraftSource source) const {
  return offer.record->Chance(source, all_.Chance(source, kUnknownChance, kUnknownGuesses));
}

int DraftGovernor::MostOf(const DraftOffer& offer, DraftSource source) const {
  const int n_known = 2 * n_deepest_[static_cast<size_t>(source)] + 1;
  return std::min(source == DraftSource::kModel ? offer.n_model : offer.n_match, n_known);
}

DraftGovernor::Plan DraftGovernor::MakePlan(size_t n_offers, const DraftRoom& room) const {
  const auto n_rows = static_cast<int>(n_offers);
  Plan plan;
  plan.probe_s = probe_s_;
  plan.is_measured = room.is_measured;
  plan.plain_s = run_s_.Estimate(n_rows, 0).front();
  plan.more_s = run_s_.Estimate(n_rows + room.n_other_rows, room.n_most);
  const double beside_s = plan.more_s.front();
  for (double& seconds : plan.more_s) {
    seconds -= beside_s;
  }
  plan.passes_s.assign(static_cast<size_t>(room.n_most) + 1, 0);
  if (!pass_s_.empty()) {
    const std::vector<double> passes_s = pass_s_.Estimate(1, room.n_most - 1);
    std::copy(passes_s.begin(), passes_s.end(), plan.passes_s.begin() + 1);
  }
  plan.share_s = plan.plain_s / n_rows;
  plan.rate = 1 / plan.share_s;
  return plan;
}

double DraftGovernor::WorthOf(const DraftOffer& offer, const DraftChoice& choice,
                              const Plan& plan) const {
  const double chance = ChanceOf(offer, choice.source);
  const double cost_s = plan.per_draft_s(choice.source);
  double gain = 1;
  double worth = 0;
  for (int n = 0; n < choice.n_drafts; ++n) {
    gain *= chance;
    worth += gain / plan.rate - cost_s;
  }
  return worth;
}

DraftChoice DraftGovernor::BetterSourceOf(const DraftOffer& offer, const Plan& plan) const {
  DraftChoice better;
  double most_worth = 0;
  for (const DraftSource source : {offer.match, DraftSource::kModel}) {
    if (n_first_rounds_[static_cast<size_t>(source)] < kFirstRounds) {
      continue;
    }
    const int n_most = MostOf(offer, source);
    for (int n = 1; n <= n_most; ++n) {
      const double worth = WorthOf(offer, {source, n}, plan);
      if (worth > most_worth || (n == 1 && better.n_drafts == 0)) {
        most_worth = std::max(worth, most_worth);
        better = {source, n_most};
      }
    }
  }
  return better;
}

void DraftGovernor::CutToBest(std::span<const DraftOffer> offers, Plan* plan,
                              std::vector<DraftChoice>* choices) const {
  struct Draft {
    double gain = 0;
    double per_second = 0;
    size_t offer = 0;
    size_t n_passes = 0;  ///< that it needs
  };
  std::vector<Draft> drafts;
  for (size_t at = 0; at < offers.size(); ++at) {
    DraftChoice& choice = (*choices)[at];
    const double chance = ChanceOf(offers[at], choice.source);
    const double cost_s = std::max(plan->per_draft_s(choice.source), kLeastSeconds);
    const bool is_model = choice.source == DraftSource::kModel;
    double gain = chance;
    for (int n = 1; n <= choice.n_drafts && gain >= kLeastGain; ++n, gain *= chance) {
      drafts.push_back({gain, gain / cost_s, at, is_model ? static_cast<size_t>(n) : 0});
    }
    choice.n_drafts = 0;
  }
  std::stable_sort(drafts.begin(), drafts.end(),
                   [](const Draft& a, const Draft& b) { return a.per_second > b.per_second; });
  drafts.resize(std::min(drafts.size(), plan->more_s.size() - 1));

  plan->rate = 1 / plan->share_s;
  const double least_rate = kMargin * plan->rate;
  double n_tokens = static_cast<double>(offers.size());
  size_t n_passes = 0;
  size_t n_best = 0;
  for (size_t n = 1; n <= drafts.size(); ++n) {
    const Draft& draft = drafts[n - 1];
    n_tokens += draft.gain;
    n_passes = std::max(n_passes, draft.n_passes);
    const double rate = n_tokens / (plan->plain_s + plan->more_s[n] + plan->passes_s[n_passes]);
    if (rate > std::max(plan->rate, least_rate)) {
      plan->rate = rate;
      n_best = n;
    }
  }
  for (size_t n = 0; n < n_best; ++n) {
    ++(*choices)[drafts[n].offer].n_drafts;
  }
  const auto n_asking = std::count_if(choices->begin(), choices->end(), [](const DraftChoice& c) {
    return c.source == DraftSource::kModel && c.n_drafts > 0;
  });
  plan->n_sharing = static_cast<size_t>(std::max<std::ptrdiff_t>(1, n_asking));
}

DraftChoice DraftGovernor::ProbeOf(const DraftOffer& offer, const DraftChoice& choice,
                                   DraftSource source, Plan* plan) {
  const auto at = static_cast<size_t>(source);
  const int n_most = MostOf(offer, source);
  if (n_most == 0 || (choice.n_drafts > 0 && choice.source == source)) {
    return {};
  }
  if (n_first_rounds_[at] < kFirstRounds) {
    // One sequence in a step, and not where nothing can be learnt.
    if (first_round_step_[at] == n_steps_ || !plan->is_measured) {
      return {};
    }
    first_round_step_[at] = n_steps_;
    return {source, std::min(n_most, n_first_rounds_[at] + 1), true};
  }
  const DraftRecord::Counts& counts = offer.record->of(source);
  DraftChoice probe = {source, std::min(n_most, counts.n_probe), true};
  probe.loss_s = std::max(0.0, WorthOf(offer, choice, *plan) - WorthOf(offer, probe, *plan));
  if (counts.next_probe > n_steps_ || probe.loss_s > plan->probe_s) {
    return {};
  }
  plan->probe_s -= probe.loss_s;
  longest_wait_[at] = static_cast<int>(
      std::clamp<double>(probe.loss_s / (kWaitShare * plan->share_s), kFirstWait, kLongestWait));
  return probe;
}

void DraftGovernor::Probe(std::span<const DraftOffer> offers, Plan* plan,
                          std::vector<DraftChoice>* choices) {
  auto n_left = static_cast<int>(plan->more_s.size()) - 1;
  for (const DraftChoice& choice : *choices) {
    n_left -= choice.n_drafts;
  }
  for (size_t at = 0; at < offers.size(); ++at) {
    DraftChoice& choice = (*choices)[at];
    n_left += choice.n_drafts;
    for (const DraftSource source : {offers[at].match, DraftSource::kModel}) {
      const DraftChoice probe =
          n_left == 0 ? DraftChoice() : ProbeOf(offers[at], choice, source, plan);
      if (probe.n_drafts > 0) {
        choice = probe;
        choice.n_drafts = std::min(probe.n_drafts, n_left);
        break;
      }
    }
    n_left -= choice.n_drafts;
  }
}

bool DraftGovernor::MeasuresPlain(size_t n_offers, const Plan& plan) {
  const double n_tokens = static_cast<double>(n_offers);
  const double loss_s = plan.plain_s - n_tokens / plan.rate;
  const bool is_doubtful = loss_s > 0 && loss_s < kDoubtful * plan.plain_s;
  if (!is_doubtful || !plan.is_measured || n_steps_ < next_plain_ || loss_s > probe_s_) {
    return false;
  }
  next_plain_ = n_steps_ + kPlainWait;
  probe_s_ -= loss_s;
  return true;
}

std::vector<DraftChoice> DraftGovernor::Choose(std::span<const DraftOffer> offers,
                                               const DraftRoom& room) {
  std::vector<DraftChoice> choices(offers.size());
  int n_offered = 0;
  for (const DraftOffer& offer : offers) {
    n_offered += std::max(offer.n_model, offer.n_match);
  }
  // What is beside the offers may be rows that are never measured.
  const int n_known = 2 * run_s_.n_largest() - static_cast<int>(offers.size());
  DraftRoom known_room = room;
  known_room.n_most = std::min({room.n_most, n_offered, std::max(1, n_known)});
  if (known_room.n_most <= 0 || run_s_.empty()) {
    return choices;
  }
  Plan plan = MakePlan(offers.size(), known_room);
  plan.n_sharing = offers.size();
  // What a source is worth depends on the rate that is reached, so sources are chosen anew at it.
  for (int n_pass = 0; n_pass < 2; ++n_pass) {
    for (size_t at = 0; at < offers.size(); ++at) {
      choices[at] = BetterSourceOf(offers[at], plan);
    }
    CutToBest(offers, &plan, &choices);
  }
  if (MeasuresPlain(offers.size(), plan)) {
    return std::vector<DraftChoice>(offers.size());
  }
  Probe(offers, &plan, &choices);
  return choices;
}

void DraftGovernor::ObserveStep(int n_rows, double run_s, int n_passes, double draft_s) {
  ++n_steps_;
  if (n_rows > 0) {
    run_s_.Add(n_rows, std::max(run_s, kLeastSeconds));
  }
  if (n_passes > 0) {
    pass_s_.Add(n_passes, draft_s);
  }
  probe_s_ = std::min(probe_s_ + kProbeShare * run_s, kProbeSteps * run_s);
}

void DraftGovernor::ObserveDrafts(const DraftChoice& made, int n_accepted, DraftRecord* record) {
  if (made.n_drafts == 0) {
    return;
  }
  DraftRecord::Counts& counts = record->of(made.source);
  if (made.is_probe) {
    probe_s_ -= made.loss_s;
    counts.n_right *= kStale;
    counts.n_wrong *= kStale;
  }
  int& n_first_rounds = n_first_rounds_[static_cast<size_t>(made.source)];
  n_first_rounds = std::min(n_first_rounds + 1, kFirstRounds);
  record->Add(made.source, made.n_drafts, n_accepted);
  all_.Add(made.source, made.n_drafts, n_accepted);
  int& n_deepest = n_deepest_[static_cast<size_t>(made.source)];
  n_deepest = std::max(n_deepest, made.n_drafts);
  if (n_accepted == made.n_drafts) {
    counts.n_wait = 0;
    counts.n_probe = std::min(2 * counts.n_probe, kLongestProbe);
    counts.next_probe = n_steps_;
    return;
  }
  counts.n_probe = 1;
  counts.n_wait = made.is_probe ? std::clamp(2 * counts.n_wait, kFirstWait,
                                             longest_wait_[static_cast<size_t>(made.source)])
                                : kFirstWait;
  counts.next_probe = n_steps_ + counts.n_wait;
}

}  // namespace facet
