// SPDX-License-Identifier: Apache-2.0
#include "engine/speculator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace facet {

namespace {

SpecMode Common(SpecMode a, SpecMode b) {
  return static_cast<SpecMode>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}

bool Has(SpecMode mode, SpecMode proposer) { return Common(mode, proposer) == proposer; }

/// What a sequence says before it ends: the row of an end token would be computed for nothing.
std::span<const int32_t> BeforeEnd(const Sequence& sequence, std::span<const int32_t> drafts) {
  const std::vector<int32_t>& ends = sequence.request().end_tokens;
  const auto end = std::find_first_of(drafts.begin(), drafts.end(), ends.begin(), ends.end());
  return drafts.first(static_cast<size_t>(end - drafts.begin()));
}

}  // namespace

Speculator::Speculator(Runner* runner, SpecMode mode, int max_drafts, std::function<double()> clock)
    : runner_(runner),
      mode_(max_drafts > 0 ? mode : SpecMode::kOff),
      max_drafts_(max_drafts),
      clock_(std::move(clock)),
      has_drafter_(runner->info().drafts) {
  FACET_CHECK(max_drafts >= 0 && max_drafts <= kMaxDrafts);
}

SpecMode Speculator::ModeFor(const Request& request) const {
  const SpecMode available = runner_->info().drafts ? SpecMode::kAuto : SpecMode::kNgram;
  return Common(Common(mode_, request.spec), available);
}

DraftOffer Speculator::OfferOf(const DraftSeat& seat) const {
  DraftState& state = *seat.state;
  const SequenceState sequence = seat.sequence->state();
  const int n_most = std::min(max_drafts_, sequence.n_most - 1 - sequence.n_tokens);
  DraftOffer offer{.record = &state.record};
  state.match.clear();
  if (n_most <= 0) {
    return offer;
  }
  if (has_drafter_ && Has(state.mode, SpecMode::kMtp) && !state.hidden.empty()) {
    offer.n_model = n_most;
  }
  if (Has(state.mode, SpecMode::kNgram)) {
    const std::span<const int32_t> tokens = seat.sequence->tokens();
    state.index.Extend(tokens);
    const NgramIndex::Match match = state.index.Find(tokens, n_most);
    const std::span<const int32_t> useful = BeforeEnd(*seat.sequence, match.drafts);
    state.match.assign(useful.begin(), useful.end());
    offer.n_match = static_cast<int>(state.match.size());
    offer.match =
        match.n_agreeing < kLongMatchTokens ? DraftSource::kShortMatch : DraftSource::kLongMatch;
  }
  return offer;
}

void Speculator::Choose(std::span<const DraftSeat> seats, const DraftRoom& room) {
  std::vector<DraftOffer> offers;
  offers.reserve(seats.size());
  for (const DraftSeat& seat : seats) {
    offers.push_back(OfferOf(seat));
  }
  const std::vector<DraftChoice> choices = governor_.Choose(offers, room);
  FACET_CHECK(choices.size() == seats.size());
  for (size_t n = 0; n < seats.size(); ++n) {
    const bool is_model = choices[n].source == DraftSource::kModel;
    FACET_CHECK(choices[n].n_drafts <= (is_model ? offers[n].n_model : offers[n].n_match));
    seats[n].state->choice = choices[n];
  }
}

void Speculator::Propose(std::span<const DraftSeat> seats) {
  n_passes_ = 0;
  draft_s_ = 0;
  std::vector<DraftSeat> asking;
  for (const DraftSeat& seat : seats) {
    const DraftChoice& choice = seat.state->choice;
    FACET_CHECK(1 <= seat.n_granted && seat.n_granted <= choice.n_drafts);
    if (choice.source == DraftSource::kModel) {
      asking.push_back(seat);
    } else {
      const auto end = seat.state->match.begin() + seat.n_granted;
      seat.state->drafts.assign(seat.state->match.begin(), end);
    }
  }
  if (!asking.empty()) {
    AskDrafter(asking);
  }
}

void Speculator::AskDrafter(std::span<const DraftSeat> seats) {
  std::vector<DraftTask> tasks;
  tasks.reserve(seats.size());
  int n_drafts = 0;
  int n_passes = 0;
  for (const DraftSeat& seat : seats) {
    const std::span<const int32_t> tokens = seat.sequence->tokens();
    tasks.push_back({.token = tokens.back(),
                     .pos = static_cast<int32_t>(tokens.size()) - 1,
                     .hidden = seat.state->hidden,
                     .blocks = seat.sequence->blocks(),
                     .n_drafts = seat.n_granted});
    n_drafts += seat.n_granted;
    n_passes = std::max(n_passes, seat.n_granted);
  }
  const double began_s = clock_();
  const Result<std::vector<int32_t>> drafts = runner_->Draft(tasks);
  draft_s_ = clock_() - began_s;
  if (!drafts.ok()) {
    failure_ = drafts.error().Message();
    has_drafter_ = false;
    return;
  }
  n_passes_ = n_passes;
  FACET_CHECK(drafts->size() == static_cast<size_t>(n_drafts));
  std::span<const int32_t> rest = *drafts;
  for (const DraftSeat& seat : seats) {
    const auto n_own = static_cast<size_t>(seat.n_granted);
    const std::span<const int32_t> useful = BeforeEnd(*seat.sequence, rest.first(n_own));
    seat.state->drafts.assign(useful.begin(), useful.end());
    seat.state->end_guess = useful.size() < n_own ? rest[useful.size()] : -1;
    rest = rest.subspan(n_own);
  }
}

bool Speculator::NeedsHidden(const DraftState& state) const {
  return has_drafter_ && Has(state.mode, SpecMode::kMtp);
}

int Speculator::Observe(std::span<const int32_t> drawn, bool has_ended, DraftState* state) {
  const std::vector<int32_t>& drafts = state->drafts;
  const auto right = std::mismatch(drawn.begin(), drawn.end(), drafts.begin(), drafts.end());
  const auto n_accepted = static_cast<int>(right.first - drawn.begin());
  const auto n_drafts = static_cast<int>(drafts.size());
  const auto n_drawn = static_cast<int>(drawn.size());
  if (n_drafts > 0) {
    ++state->n_rounds;
    state->n_drafted += n_drafts;
    state->n_accepted += n_accepted;
  }
  // Of drafts behind the end nothing is known.
  int n_judged = has_ended ? std::min(n_drafts, n_drawn) : n_drafts;
  int n_right = n_accepted;
  if (state->end_guess >= 0 && n_accepted == n_drafts && n_drawn > n_drafts) {
    ++n_judged;
    n_right += drawn.back() == state->end_guess ? 1 : 0;
  }
  if (n_judged > 0) {
    DraftChoice made = state->choice;
    made.n_drafts = n_judged;
    governor_.ObserveDrafts(made, n_right, &state->record);
  }
  state->drafts.clear();
  state->end_guess = -1;
  return n_accepted;
}

void Speculator::ObserveStep(int n_rows, double run_s) {
  if (mode_ != SpecMode::kOff) {
    governor_.ObserveStep(n_rows, run_s, n_passes_, draft_s_);
  }
}

std::string Speculator::TakeFailure() { return std::exchange(failure_, {}); }

}  // namespace facet
