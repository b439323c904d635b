// SPDX-License-Identifier: Apache-2.0
// How many tokens to guess ahead, of each sequence in each step. A guess pays when the chance that
// it is accepted, per second that its row takes, is above the tokens per second that the step has
// without it. Chances come from what became of earlier guesses, seconds from earlier steps; both
// are forgotten slowly. Where nothing pays the governor stops asking and looks again now and then,
// ever more rarely. It decides about time only: replies are the same whatever it says.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace facet {

/// Where a guess comes from; each has chances of its own.
enum class DraftSource {
  kModel,       ///< the drafter
  kShortMatch,  ///< NgramIndex, fewer than kLongMatchTokens tokens agree
  kLongMatch
};
inline constexpr size_t kDraftSources = 3;
inline constexpr int kLongMatchTokens = 5;

/// What became of guesses, recent ones counting most.
class DraftRecord {
 public:
  /// Of `n_drafted` guesses in a row the first `n_accepted` were right.
  void Add(DraftSource source, int n_drafted, int n_accepted);
  /// The chance that a guess is right when all before it were; `prior` where little is known.
  [[nodiscard]] double Chance(DraftSource source, double prior) const;

 private:
  struct Counts {
    double n_right = 0;
    double n_wrong = 0;
  };
  std::array<Counts, kDraftSources> counts_;
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
};

/// Of one engine. Not for several threads; knows no clock.
class DraftGovernor {
 public:
  /// One choice for each offer. `n_other_rows` is what the step computes beside the offers' own
  /// rows (one each); at most `n_most` drafts in all.
  [[nodiscard]] std::vector<DraftChoice> Choose(std::span<const DraftOffer> offers,
                                                int n_other_rows, int n_most);

  /// A step ran. `n_model_drafts` were made in `draft_s` seconds.
  void ObserveStep(int n_rows, double run_s, int n_model_drafts, double draft_s);
  /// A sequence's guesses were verified: goes into its record and into the prior of those to come.
  void ObserveDrafts(const DraftChoice& made, int n_accepted, DraftRecord* record);
};

}  // namespace facet
