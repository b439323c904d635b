// SPDX-License-Identifier: Apache-2.0
// Guesses what sequences will say next, for their next step to verify: asks the governor how many
// guesses pay, the runner's drafter and each text's own repetition for them, and tells the governor
// what became of them. Knows nothing of blocks and plans, and decides about time only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/draft_governor.h"
#include "engine/ngram_index.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "model/runner.h"

namespace facet {

/// What is kept of one sequence for its guesses.
struct DraftState {
  SpecMode mode = SpecMode::kOff;  ///< what may guess for it
  NgramIndex index;
  DraftRecord record;
  /// [n_embd] of the row that the newest token was drawn from; empty where that is not known, and
  /// then the drafter cannot be asked.
  std::vector<float> hidden;

  // Of one step.
  DraftChoice choice;
  std::vector<int32_t> match;   ///< of the index
  std::vector<int32_t> drafts;  ///< to follow the newest token

  // Of the whole reply; see RequestStats.
  int n_rounds = 0;
  int n_drafted = 0;
  int n_accepted = 0;
};

/// A sequence whose next row is its newest token's.
struct DraftSeat {
  const Sequence* sequence = nullptr;
  DraftState* state = nullptr;
};

/// Of one engine. Not for several threads.
class Speculator {
 public:
  /// `runner` must outlive it. `max_drafts`, 0 to kMaxDrafts, bounds one sequence's in one step;
  /// `clock` tells seconds.
  Speculator(Runner* runner, SpecMode mode, int max_drafts, std::function<double()> clock);

  /// Of what the request allows, what this engine has.
  [[nodiscard]] SpecMode ModeFor(const Request& request) const;

  /// Sets each seat's choice. `n_other_rows` is what the step computes beside one row of each; at
  /// most `n_most` drafts in all.
  void Choose(std::span<const DraftSeat> seats, int n_other_rows, int n_most);

  /// Makes the drafts of the seats, at most choice.n_drafts of each, which may have become less
  /// since Choose but is above 0. Where the drafter fails, those that chose it have none, and it is
  /// not asked again.
  void Propose(std::span<const DraftSeat> seats);

  /// Whether DraftState::hidden is of use.
  [[nodiscard]] bool NeedsHidden(const DraftState& state) const;

  /// Of the sequence's drafts `n_judged` count: all, or those before the reply's end. The first
  /// `n_accepted` of them were right. Its drafts are done with.
  void Observe(int n_judged, int n_accepted, DraftState* state);
  /// A step with `n_rows` rows ran in `run_s` seconds after what Propose did.
  void ObserveStep(int n_rows, double run_s);

  /// Seconds that the drafter took in the last step.
  [[nodiscard]] double draft_s() const { return draft_s_; }
  /// Why the drafter is not asked any more; told once.
  [[nodiscard]] std::string TakeFailure();

 private:
  DraftOffer OfferOf(const DraftSeat& seat) const;
  void AskDrafter(std::span<const DraftSeat> seats);

  Runner* runner_;
  SpecMode mode_;
  int max_drafts_;
  std::function<double()> clock_;
  DraftGovernor governor_;
  bool has_drafter_;
  std::string failure_;
  // Of the last step.
  int n_model_drafts_ = 0;
  double draft_s_ = 0;
};

}  // namespace facet
