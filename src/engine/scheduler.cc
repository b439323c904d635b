// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/check.h"
#include "kv/plan.h"

namespace facet {

namespace {

/// Blocks of both groups.
struct BlockCounts {
  int sliding = 0;
  int full = 0;

  BlockCounts& operator+=(const BlockCounts& other) {
    sliding += other.sliding;
    full += other.full;
    return *this;
  }
  BlockCounts& operator-=(const BlockCounts& other) {
    sliding -= other.sliding;
    full -= other.full;
    return *this;
  }
  friend BlockCounts operator+(BlockCounts a, const BlockCounts& b) { return a += b; }
  friend BlockCounts operator-(BlockCounts a, const BlockCounts& b) { return a -= b; }
  [[nodiscard]] bool FitsIn(const BlockCounts& other) const {
    return sliding <= other.sliding && full <= other.full;
  }
};

/// The state of one planning.
class Planner {
 public:
  Planner(std::span<const SequenceState> sequences, int n_running, const SchedulerLimits& limits);
  StepPlan Plan() &&;

 private:
  [[nodiscard]] const SequenceState& At(int index) const {
    return sequences_[static_cast<size_t>(index)];
  }
  [[nodiscard]] BlockCounts Held(const SequenceState& sequence, int n_rows) const;
  [[nodiscard]] BlockCounts OneRow(const SequenceState& sequence) const;
  [[nodiscard]] BlockCounts Steady(const SequenceState& sequence) const;
  [[nodiscard]] int RowsThatFit(const SequenceState& sequence, const BlockCounts& blocks) const;
  [[nodiscard]] int Want(const SequenceState& sequence, int n_least) const;
  void PlanRunning(int index);
  void PreemptYoungest();
  void Admit();
  void GrantDrafts();
  void Take(int index, int n_rows, const BlockCounts& held);

  std::span<const SequenceState> sequences_;
  const SchedulerLimits& limits_;
  StepPlan plan_;
  BlockCounts free_;       ///< negative never
  BlockCounts set_aside_;  ///< for one row of each running sequence that has not been planned yet
  int n_prefill_left_ = 0;
};

/// Where the span that begins at `n_positions` ends; without one, the next position.
int NextBorder(std::span<const RowSpan> spans, int n_positions) {
  const auto next =
      std::partition_point(spans.begin(), spans.end(),
                           [n_positions](const RowSpan& span) { return span.begin < n_positions; });
  return next != spans.end() && next->begin == n_positions ? next->end : n_positions + 1;
}

/// The least rows that `sequence` can go on with.
int LeastRows(const SequenceState& sequence) {
  return NextBorder(sequence.spans, sequence.n_computed) - sequence.n_computed;
}

/// At most `n_rows` rows, such that no span is cut.
int WholeRows(const SequenceState& sequence, int n_rows) {
  return n_rows <= 0
             ? n_rows
             : OutsideSpans(sequence.spans, sequence.n_computed + n_rows) - sequence.n_computed;
}

bool IsOneRow(const SequenceState& sequence) {
  return sequence.n_tokens - sequence.n_computed == 1;
}

Planner::Planner(std::span<const SequenceState> sequences, int n_running,
                 const SchedulerLimits& limits)
    : sequences_(sequences), limits_(limits), free_{limits.n_sliding_blocks, limits.n_full_blocks} {
  plan_.n_running = n_running;
  int n_one_row = 0;
  for (int index = 0; index < n_running; ++index) {
    free_ -= Held(At(index), 0);
    set_aside_ += OneRow(At(index));
    n_one_row += IsOneRow(At(index)) ? 1 : 0;
  }
  FACET_CHECK(free_.sliding >= 0 && free_.full >= 0);
  n_prefill_left_ = limits.max_rows - n_one_row;
  if (n_one_row > 0) {
    n_prefill_left_ = std::min(n_prefill_left_, limits.max_rows_beside);
  }
}

/// What a sequence holds while `n_rows` more are computed; with 0, what it holds between steps.
BlockCounts Planner::Held(const SequenceState& sequence, int n_rows) const {
  const int n_blocks = BlocksFor(sequence.n_computed + n_rows);
  const int n_left = FirstVisible(sequence.n_computed, limits_.window) / kBlockPositions;
  return {.sliding = limits_.window > 0 ? n_blocks - n_left : 0, .full = n_blocks};
}

/// What one more row takes.
BlockCounts Planner::OneRow(const SequenceState& sequence) const {
  return Held(sequence, 1) - Held(sequence, 0);
}

/// What a sequence needs at most until it has generated one more block of positions, computed row
/// by row.
BlockCounts Planner::Steady(const SequenceState& sequence) const {
  const int n_ahead = std::min(kBlockPositions, sequence.n_most - sequence.n_tokens);
  const int n_blocks = BlocksFor(sequence.n_tokens + n_ahead);
  return {.sliding = limits_.window > 0 ? std::min(n_blocks, BlocksTouched(limits_.window)) : 0,
          .full = n_blocks};
}

/// The most rows of `sequence` when it may hold `blocks` in all; may be negative.
int Planner::RowsThatFit(const SequenceState& sequence, const BlockCounts& blocks) const {
  int64_t n_blocks = blocks.full;
  if (limits_.window > 0) {
    const int n_left = FirstVisible(sequence.n_computed, limits_.window) / kBlockPositions;
    n_blocks = std::min(n_blocks, int64_t{n_left} + blocks.sliding);
  }
  const int64_t n_rows = n_blocks * kBlockPositions - sequence.n_computed;
  return static_cast<int>(std::min(n_rows, int64_t{std::numeric_limits<int>::max()}));
}

/// All that there is within the rows left for prefill; 0 when none are.
int Planner::Want(const SequenceState& sequence, int n_least) const {
  const int n_left = sequence.n_tokens - sequence.n_computed;
  if (n_prefill_left_ <= 0) {
    return 0;
  }
  return std::max(n_least, WholeRows(sequence, std::min(n_left, n_prefill_left_)));
}

/// `held`: what the sequence has of the blocks already.
void Planner::Take(int index, int n_rows, const BlockCounts& held) {
  const SequenceState& sequence = At(index);
  free_ -= Held(sequence, n_rows) - held;
  FACET_CHECK(free_.sliding >= 0 && free_.full >= 0);
  if (!IsOneRow(sequence)) {
    n_prefill_left_ -= n_rows;
  }
  plan_.rows.push_back({index, n_rows});
}

void Planner::PreemptYoungest() {
  --plan_.n_running;
  ++plan_.n_preempted;
  free_ += Held(At(plan_.n_running), 0);
  set_aside_ -= OneRow(At(plan_.n_running));
}

/// All that is wanted and fits beside a row of each younger sequence; else the least that fits at
/// all; else the youngest goes.
void Planner::PlanRunning(int index) {
  const SequenceState& sequence = At(index);
  set_aside_ -= OneRow(sequence);
  const int n_least = LeastRows(sequence);
  const int n_wanted = IsOneRow(sequence) ? 1 : Want(sequence, n_least);
  if (n_wanted <= 0) {
    return;
  }
  const BlockCounts held = Held(sequence, 0);
  const auto fitting = [&](int n_most, const BlockCounts& blocks) {
    return WholeRows(sequence, std::min(n_most, RowsThatFit(sequence, blocks)));
  };
  int n_rows = fitting(n_wanted, held + free_ - set_aside_);
  if (n_rows < 1) {
    n_rows = fitting(n_least, held + free_);
  }
  while (n_rows < 1 && plan_.n_running > index + 1) {
    PreemptYoungest();
    n_rows = fitting(n_least, held + free_);
  }
  if (n_rows >= 1) {
    Take(index, n_rows, held);
  }
  // Else it is the youngest itself: it keeps what it has until an older one needs it.
}

/// In order of age, and nobody passes one that does not fit yet: else a long prompt could wait for
/// ever.
void Planner::Admit() {
  BlockCounts room{limits_.n_sliding_blocks, limits_.n_full_blocks};
  for (int index = 0; index < plan_.n_running; ++index) {
    room -= Steady(At(index));
  }
  const int n_sequences = static_cast<int>(sequences_.size());
  while (plan_.n_running < n_sequences && plan_.n_running < limits_.max_sequences) {
    const int index = plan_.n_running;
    const SequenceState& sequence = At(index);
    const bool fits = Steady(sequence).FitsIn(room) || index == 0;
    // A newcomer's only row counts as prefill here, since no row was kept for it.
    const int n_wanted = Want(sequence, LeastRows(sequence));
    const int n_rows = WholeRows(sequence, std::min(n_wanted, RowsThatFit(sequence, free_)));
    if (!fits || n_rows < 1) {
      return;
    }
    room -= Steady(sequence);
    ++plan_.n_running;
    n_prefill_left_ -= IsOneRow(sequence) ? 1 : 0;
    Take(index, n_rows, {});
  }
}

/// All else is planned.
void Planner::GrantDrafts() {
  int n_rows_left = limits_.max_rows;
  BlockCounts kept;  // for one row of each running sequence that has none in this step
  for (int index = 0; index < plan_.n_running; ++index) {
    kept += OneRow(At(index));
  }
  for (const StepPlan::Rows& rows : plan_.rows) {
    kept -= OneRow(At(rows.sequence));
    n_rows_left -= rows.n_rows;
  }
  for (StepPlan::Rows& rows : plan_.rows) {
    const SequenceState& sequence = At(rows.sequence);
    if (!IsOneRow(sequence)) {
      continue;
    }
    const BlockCounts held = Held(sequence, 1);
    const BlockCounts room{.sliding = std::max(0, free_.sliding - kept.sliding),
                           .full = std::max(0, free_.full - kept.full)};
    // The last token of all is drawn and never computed.
    const int n_useful = sequence.n_most - 1 - sequence.n_tokens;
    const int n_drafts = std::min(
        {sequence.n_drafts, n_rows_left, n_useful, RowsThatFit(sequence, held + room) - 1});
    if (n_drafts > 0) {
      free_ -= Held(sequence, 1 + n_drafts) - held;
      n_rows_left -= n_drafts;
      rows.n_rows += n_drafts;
    }
  }
}

StepPlan Planner::Plan() && {
  for (int index = 0; index < plan_.n_running; ++index) {
    PlanRunning(index);
  }
  if (plan_.n_preempted == 0) {
    Admit();
  }
  GrantDrafts();
  FACET_CHECK(sequences_.empty() || (!plan_.rows.empty() && plan_.rows.front().sequence == 0));
  return std::move(plan_);
}

}  // namespace

int OutsideSpans(std::span<const RowSpan> spans, int n_positions) {
  const auto next =
      std::partition_point(spans.begin(), spans.end(),
                           [n_positions](const RowSpan& span) { return span.end <= n_positions; });
  return next != spans.end() && next->begin < n_positions ? next->begin : n_positions;
}

int LargestContext(const SchedulerLimits& limits, int n_context) {
  int n_blocks = limits.n_full_blocks;
  if (limits.window > 0 && limits.n_sliding_blocks < BlocksTouched(limits.window)) {
    n_blocks = std::min(n_blocks, limits.n_sliding_blocks);
  }
  return n_blocks <= n_context / kBlockPositions ? n_blocks * kBlockPositions : n_context;
}

StepPlan PlanStep(std::span<const SequenceState> sequences, int n_running,
                  const SchedulerLimits& limits) {
  return Planner(sequences, n_running, limits).Plan();
}

}  // namespace facet
