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
  /// The drafter's guess after `drafts` that the reply ends: it has no row, and what is drawn there
  /// judges it all the same; -1: none.
  int32_t end_guess = -1;

  // Of the whole reply; see RequestStats.
  int n_rounds = 0;
  int n_drafted = 0;
  int n_accepted = 0;
};

/// A sequence whose next row is its newest token's.
struct DraftSeat {
  const Sequence* sequence = nullptr;
  DraftState* state = nullptr;
  int n_granted = 0;  ///< for Propose: 1 to choice.n_drafts
};

/// Of one engine. Not for several threads.
class Speculator {
 public:
  /// `runner` must outlive it. `max_drafts`, 0 to kMaxDrafts, bounds one sequence's in one step;
  /// `clock` tells seconds.
  Speculator(Runner* runner, SpecMode mode, int max_drafts, std::function<double()> clock);

  /// Of what the request allows, what this engine has.
  [[nodiscard]] SpecMode ModeFor(const Request& request) const;

  /// Sets each seat's choice.
  void Choose(std::span<const DraftSeat> seats, const DraftRoom& room);

  /// Makes the drafts of the seats that were granted some, at most so many. Where the drafter
  /// fails, those that chose it have none, and it is not asked again.
  void Propose(std::span<const DraftSeat> seats);

  /// Whether DraftState::hidden is of use.
  [[nodiscard]] bool NeedsHidden(const DraftState& state) const;

  /// After a step the sequence has `drawn` more tokens, the first of them from the newest token's
  /// row; the last may have ended its reply. Judges its guesses, which are done with; how many of
  /// `drafts` were right.
  int Observe(std::span<const int32_t> drawn, bool has_ended, DraftState* state);
  /// A step ran in `run_s` seconds after what Propose did. `n_rows` as DraftGovernor has it.
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
  int n_passes_ = 0;  ///< of the drafter
  double draft_s_ = 0;
};

}  // namespace facet
