// SPDX-License-Identifier: Apache-2.0
// How many tokens to guess ahead, of each sequence in each step. A guess pays when the chance that
// it is accepted, per second that its row takes, is above the tokens per second that the step has
// without it. Chances come from what became of earlier guesses, seconds from earlier steps; both
// are forgotten slowly. Where nothing pays the governor stops asking and probes now and then, ever
// more rarely, out of a budget of time. It decides about time only: replies are the same
// whatever it says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/cost_curve.h"

namespace facet {

/// Where a guess comes from; each has chances of its own.
enum class DraftSource {
  kModel,       ///< the drafter
  kShortMatch,  ///< NgramIndex, fewer than kLongMatchTokens tokens agree
  kLongMatch
};
inline constexpr size_t kDraftSources = 3;
inline constexpr int kLongMatchTokens = 5;

/// What became of guesses, recent ones counting most, and when a source that doesn't pay is probed
/// again.
class DraftRecord {
 public:
  /// The last `memory` guesses count, more or less.
  explicit DraftRecord(double memory = 32) : memory_(memory) {}

  /// Of `n_drafted` guesses in a row the first `n_accepted` were right.
  void Add(DraftSource source, int n_drafted, int n_accepted);
  /// The chance that a guess is right when all before it were; `prior` where little is known.
  [[nodiscard]] double Chance(DraftSource source, double prior) const;
  /// The same, `prior` counting as much as `n_prior` guesses.
  [[nodiscard]] double Chance(DraftSource source, double prior, double n_prior) const;

 private:
  friend class DraftGovernor;

  struct Counts {
    double n_right = 0;
    double n_wrong = 0;
    int n_wait = 0;          ///< steps between the last two probes while it didn't pay
    int n_probe = 1;         ///< drafts of the next probe
    int64_t next_probe = 0;  ///< step of the governor's
  };
  Counts& of(DraftSource source) { return counts_[static_cast<size_t>(source)]; }
  [[nodiscard]] const Counts& of(DraftSource source) const {
    return counts_[static_cast<size_t>(source)];
  }

  std::array<Counts, kDraftSources> counts_;
  double memory_;
};

/// What a sequence could have guessed.
struct DraftOffer {
  const DraftRecord* record = nullptr;
  int n_model = 0;  ///< by the drafter; 0: it cannot be asked
  int n_match = 0;  ///< by the text's own repetition
  DraftSource match = DraftSource::kShortMatch;
};

struct DraftChoice {
  DraftSource source = DraftSource::kModel;
  int n_drafts = 0;
  bool is_probe = false;  ///< it is not expected to pay: made to learn
  double loss_s = 0;      ///< of a probe: what it is expected to cost
};

/// What is known of a step before its drafts are chosen.
struct DraftRoom {
  int n_other_rows = 0;     ///< beside the offers' own rows, one each
  int n_most = 0;           ///< drafts in all
  bool is_measured = true;  ///< ObserveStep will be told its rows
};

/// Of one engine. Not for several threads; knows no clock.
class DraftGovernor {
 public:
  DraftGovernor();

  /// One choice for each offer.
  [[nodiscard]] std::vector<DraftChoice> Choose(std::span<const DraftOffer> offers,
                                                const DraftRoom& room);

  /// A step ran. It had `n_rows` rows, each of which was wanted for its logits; 0: there were
  /// others, and its seconds do not tell what such rows take. The drafter was asked `n_passes`
  /// times in `draft_s` seconds: as often as the most drafts of one sequence, each time for all at
  /// once.
  void ObserveStep(int n_rows, double run_s, int n_passes, double draft_s);
  /// A sequence's guesses came to a verdict: goes into its record and into the prior of those to
  /// come, and a probe is paid for. `made` is the choice, with as many drafts as were judged. To be
  /// called for each choice whose guesses were made: what is not heard of is chosen again.
  void ObserveDrafts(const DraftChoice& made, int n_accepted, DraftRecord* record);

 private:
  /// What a step could cost and bring.
  struct Plan {
    double plain_s = 0;            ///< of one row of each offer and nothing else
    double share_s = 0;            ///< of plain_s, of one offer
    std::vector<double> more_s;    ///< [drafts]: added by so many rows of drafts
    std::vector<double> passes_s;  ///< [passes]: the drafter's own seconds
    size_t n_sharing = 1;          ///< offers that share a pass
    double rate = 0;               ///< tokens per second of the best that was found
    double probe_s = 0;            ///< what probes of this step may still cost
    bool is_measured = true;

    [[nodiscard]] double per_draft_s(DraftSource source) const;
  };

  [[nodiscard]] Plan MakePlan(size_t n_offers, const DraftRoom& room) const;
  [[nodiscard]] double ChanceOf(const DraftOffer& offer, DraftSource source) const;
  [[nodiscard]] int MostOf(const DraftOffer& offer, DraftSource source) const;
  /// The source of an offer that brings more at `rate`, with all the drafts that it may have.
  [[nodiscard]] DraftChoice BetterSourceOf(const DraftOffer& offer, const Plan& plan) const;
  /// Cuts the choices to what has the best rate, which is set.
  void CutToBest(std::span<const DraftOffer> offers, Plan* plan,
                 std::vector<DraftChoice>* choices) const;
  /// What to try of `source` in place of `choice`; no drafts: nothing now.
  [[nodiscard]] DraftChoice ProbeOf(const DraftOffer& offer, const DraftChoice& choice,
                                    DraftSource source, Plan* plan);
  /// Puts probes in place of choices where they are due.
  void Probe(std::span<const DraftOffer> offers, Plan* plan, std::vector<DraftChoice>* choices);
  /// Whether this step should have no drafts, so that what they gain is measured.
  [[nodiscard]] bool MeasuresPlain(size_t n_offers, const Plan& plan);
  /// Seconds' worth of `choice` at the plan's rate, beyond having no drafts.
  [[nodiscard]] double WorthOf(const DraftOffer& offer, const DraftChoice& choice,
                               const Plan& plan) const;

  CostCurve run_s_;                                  ///< of the rows of a step
  CostCurve pass_s_;                                 ///< of the drafter's passes in a step
  DraftRecord all_;                                  ///< of all sequences; the prior of each
  std::array<int, kDraftSources> n_first_rounds_{};  ///< that were verified
  std::array<int, kDraftSources> n_deepest_{};       ///< drafts of the longest that was verified
  std::array<int64_t, kDraftSources> first_round_step_;  ///< of the newest of the first rounds
  std::array<int, kDraftSources> longest_wait_;  ///< steps between probes, by what these cost
  int64_t n_steps_ = 0;
  int64_t next_plain_ = 0;
  double probe_s_ = 0;  ///< what probes may still cost
};

}  // namespace facet
