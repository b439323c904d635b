// SPDX-License-Identifier: Apache-2.0
// Which rows the next step computes. Pure: sequences and limits in, a plan out; no blocks are
// touched. It may be, since what a sequence holds follows from how far it has been computed.
// Policy: the older goes first in everything. Generating sequences take one row each, what is left
// of the step goes to prefill; whoever waits is admitted in order when its blocks fit; when blocks
// run out the youngest gives its blocks back. So those that run are always the oldest, and the
// oldest always moves. Drafts take rows and blocks that are left over after all that: a plan with
// drafts is the plan without them and rows besides. Blocks that only the prefix tree holds are left
// over, as for any row: where none is free, a draft in a new block evicts the oldest of them a few
// steps before the reply would, or for nothing when it is wrong.
#pragma once

#include <span>
#include <vector>

namespace facet {

struct SchedulerLimits {
  /// Of a step, at least max_sequences. A span that begins within it is computed whole.
  int max_rows = 0;
  int max_rows_beside = 0;  ///< prefill rows of a step in which others generate; at least 1
  int max_sequences = 0;
  int window = 0;  ///< of the sliding layers; 0: there are none
  int n_sliding_blocks = 0;
  int n_full_blocks = 0;
};

/// Positions [begin, end) that see one another: they are computed in one step.
struct RowSpan {
  int begin = 0;
  int end = 0;
};

/// The last of the positions up to `n_positions` that lies inside of no span.
int OutsideSpans(std::span<const RowSpan> spans, int n_positions);

/// A sequence as the scheduler sees it.
struct SequenceState {
  int n_tokens = 0;  ///< known; all of them must be computed before the next can be drawn
  /// Positions with K/V; less than n_tokens. Of one that waits: those it would start with, from
  /// blocks of the prefix tree, which count as its own from then on.
  int n_computed = 0;
  int n_most = 0;  ///< n_tokens will never be more
  /// Ascending; n_computed is inside of none. Each fits into the pools when the sequence is alone.
  std::span<const RowSpan> spans = {};
  /// Rows that it would take beyond its newest token's, for guesses of what follows; of those that
  /// run, and counted only where n_tokens - n_computed is 1.
  int n_drafts = 0;
};

struct StepPlan {
  struct Rows {
    int sequence;  ///< index
    int n_rows;    ///< positions [n_computed, n_computed + n_rows); those from n_tokens on: drafts
  };
  int n_running = 0;    ///< afterwards: the first so many sequences run
  int n_preempted = 0;  ///< sequences [n_running, n_running + n_preempted) lose their blocks first
  std::vector<Rows> rows;  ///< in order of age
};

/// The most tokens a lone sequence can have within `limits` and `n_context`; what is longer never
/// fits.
int LargestContext(const SchedulerLimits& limits, int n_context);

/// Plans one step. `sequences` stand in order of age, oldest first; the first `n_running` hold
/// blocks. None has n_most above LargestContext. When there is a sequence, there are rows, and the
/// first sequence has some. Drafts are granted to the older first, within max_rows, never so many
/// that n_tokens could pass n_most, and only where each running sequence without rows in this step
/// could still have the blocks of one.
StepPlan PlanStep(std::span<const SequenceState> sequences, int n_running,
                  const SchedulerLimits& limits);

}  // namespace facet
