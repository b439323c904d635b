// SPDX-License-Identifier: Apache-2.0
#include "app/bench_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/progress.h"
#include "base/check.h"
#include "base/random.h"
#include "engine/engine.h"
#include "kv/plan.h"

namespace facet {
namespace {

constexpr uint64_t kTokenSeed = 1;

/// Rows of one batch of a prompt: those of a lone request.
int ChunkRows() { return EngineOptions().max_rows; }

}  // namespace

Result<RunnerOptions> FitRunner(const Config& config, const RunnerOptions& options,
                                std::span<const BenchCase> cases) {
  RunnerOptions fitted = options;
  fitted.max_rows = ChunkRows();
  fitted.n_context = 1;
  for (const BenchCase& bench : cases) {
    fitted.n_context = std::max(fitted.n_context, bench.n_positions());
    // What a repetition adds stays until the next one, also behind the window: going back to where
    // it began is then dropping its rows.
    const int n_kept = BlocksFor(bench.n_gen) * kBlockPositions * bench.n_sequences;
    fitted.max_rows = std::max(fitted.max_rows, n_kept);
  }
  int n_sliding = 0;
  int n_full = 0;
  for (const BenchCase& bench : cases) {
    RunnerOptions own = fitted;
    own.n_context = bench.n_positions();
    own.n_sequences = bench.n_sequences;
    FACET_ASSIGN(const KvPoolPlan plan, PlanKv(config, own));
    n_sliding = std::max(n_sliding, plan.sliding.n_blocks);
    n_full = std::max(n_full, plan.full.n_blocks);
  }
  for (fitted.n_sequences = 1;; ++fitted.n_sequences) {
    FACET_ASSIGN(const KvPoolPlan plan, PlanKv(config, fitted));
    if (plan.sliding.n_blocks >= n_sliding && plan.full.n_blocks >= n_full) {
      return fitted;
    }
  }
}

BenchRunner::BenchRunner(std::unique_ptr<Runner> runner, BenchHooks hooks)
    : runner_(std::move(runner)),
      hooks_(std::move(hooks)),
      sliding_pool_(std::make_unique<BlockPool>(runner_->info().n_sliding_blocks)),
      full_pool_(std::make_unique<BlockPool>(runner_->info().n_full_blocks)) {}

/// Seconds of one `work`: the mean of as many as take `min_s`.
template <typename Work>
Result<double> BenchRunner::TimeOf(double min_s, Work work) const {
  const auto start = std::chrono::steady_clock::now();
  for (int n_runs = 1;; ++n_runs) {
    FACET_RETURN_IF_ERROR(work());
    const double elapsed_s = SecondsSince(start);
    if (elapsed_s >= min_s || is_interrupted_) {
      return elapsed_s / n_runs;
    }
  }
}

Result<std::vector<double>> BenchRunner::Measure(const BenchCase& bench, int n_repetitions,
                                                 double min_s) {
  std::vector<double> seconds;
  repetition_ = 0;
  FACET_RETURN_IF_ERROR(Prepare(bench));
  n_total_ = bench.n_tokens();
  while (!is_interrupted_ && repetition_ < n_repetitions) {
    ++repetition_;
    FACET_ASSIGN(const double elapsed_s, TimeOf(min_s, [this, &bench] {
                   n_done_ = 0;
                   Status status = Repeat(bench);
                   Rewind(bench.n_depth);
                   return status;
                 }));
    if (!is_interrupted_) {
      seconds.push_back(elapsed_s);
    }
  }
  return seconds;
}

Result<std::vector<double>> BenchRunner::MeasureDrafts(const BenchCase& bench, int n_drafts,
                                                       int n_repetitions, double min_s) {
  std::vector<double> seconds;
  repetition_ = 0;
  FACET_RETURN_IF_ERROR(Prepare(bench));
  FACET_RETURN_IF_ERROR(Generate(1, 1));
  if (is_interrupted_) {
    return seconds;
  }
  const std::vector<float> hidden(runner_->hidden().begin(), runner_->hidden().end());
  const std::vector<DraftTask> tasks = MakeDraftTasks(hidden, n_drafts);
  const auto draft = [this, &tasks]() -> Status {
    FACET_RETURN_IF_ERROR(runner_->Draft(tasks));
    return {};
  };
  FACET_RETURN_IF_ERROR(draft());  // warms up
  n_total_ = n_drafts * bench.n_sequences;
  while (repetition_ < n_repetitions && !hooks_.is_interrupted()) {
    ++repetition_;
    FACET_ASSIGN(const double elapsed_s, TimeOf(min_s, draft));
    seconds.push_back(elapsed_s);
    hooks_.on_progress(repetition_, n_total_, n_total_);
  }
  Rewind(bench.n_depth);
  return seconds;
}

/// What follows each sequence's last token, whose row of `hidden` is in their order.
std::vector<DraftTask> BenchRunner::MakeDraftTasks(std::span<const float> hidden, int n_drafts) {
  std::vector<DraftTask> tasks;
  tasks.reserve(sequences_.size());
  const size_t width = hidden.size() / sequences_.size();
  for (Sequence& sequence : sequences_) {
    const size_t index = tasks.size();
    const int pos = sequence.n_done;
    FACET_CHECK(sequence.full.Grow(pos + 1));
    FACET_CHECK(sliding_pool_->n_blocks() == 0 || sequence.sliding.Grow(pos + 1));
    tasks.push_back({.token = TokenAt(static_cast<int>(index), pos),
                     .pos = pos,
                     .hidden = hidden.subspan(index * width, width),
                     .blocks = {sequence.sliding.blocks(), sequence.full.blocks()},
                     .n_drafts = n_drafts});
  }
  return tasks;
}

Status BenchRunner::Prepare(const BenchCase& bench) {
  const int n_before = IsAt(bench) ? 0 : bench.n_depth;
  if (!IsAt(bench)) {
    Resize(bench.n_sequences);
  }
  n_done_ = 0;
  const int n_warm_up = bench.is_prefill() ? std::min(bench.n_prompt, ChunkRows()) : bench.n_rows;
  n_total_ = (n_before + n_warm_up) * bench.n_sequences;
  for (int index = 0; index < bench.n_sequences; ++index) {
    FACET_RETURN_IF_ERROR(Prefill(index, n_before, false));
  }
  FACET_RETURN_IF_ERROR(bench.is_prefill() ? Prefill(0, n_warm_up, true)
                                           : Generate(n_warm_up, bench.n_rows));
  Rewind(bench.n_depth);
  return {};
}

Status BenchRunner::Repeat(const BenchCase& bench) {
  return bench.is_prefill() ? Prefill(0, bench.n_prompt, true)
                            : Generate(bench.n_gen, bench.n_rows);
}

/// Runs the next tokens of a sequence as the chunks of a prompt; of the last one's last row the
/// logits, if wanted.
Status BenchRunner::Prefill(int index, int n_tokens, bool wants_logits) {
  const int window = runner_->info().sliding_window;
  for (int n_left = n_tokens; n_left > 0 && !is_interrupted_;) {
    const int n_rows = std::min(n_left, ChunkRows());
    n_left -= n_rows;
    for (int row = 0; row < n_rows; ++row) {
      AddRow(index, wants_logits && n_left == 0 && row == n_rows - 1);
    }
    FACET_RETURN_IF_ERROR(RunBatch());
    Sequence& sequence = sequences_[static_cast<size_t>(index)];
    if (window > 0) {
      sequence.sliding.DropBelow(FirstVisible(sequence.n_done, window));
    }
  }
  return {};
}

/// So many tokens of each sequence, `n_rows` at a time. What leaves the window meanwhile is not
/// dropped, for the next repetition needs it.
Status BenchRunner::Generate(int n_tokens, int n_rows) {
  for (int token = 0; token < n_tokens && !is_interrupted_; token += n_rows) {
    for (size_t row = 0; row < sequences_.size() * static_cast<size_t>(n_rows); ++row) {
      AddRow(static_cast<int>(row / static_cast<size_t>(n_rows)), true);
    }
    FACET_RETURN_IF_ERROR(RunBatch());
  }
  return {};
}

void BenchRunner::AddRow(int index, bool wants_logits) {
  Sequence& sequence = sequences_[static_cast<size_t>(index)];
  const int pos = sequence.n_done++;
  batch_.rows.push_back(
      {.sequence = index, .pos = pos, .token = TokenAt(index, pos), .wants_logits = wants_logits});
}

int32_t BenchRunner::TokenAt(int index, int pos) const {
  const auto counter = static_cast<uint64_t>(index) << 32 | static_cast<uint64_t>(pos);
  return static_cast<int32_t>(RandomBits(kTokenSeed, counter) %
                              static_cast<uint64_t>(runner_->info().n_vocab));
}

/// Runs the rows that were added, unless the user has pressed Ctrl-C.
Status BenchRunner::RunBatch() {
  is_interrupted_ = is_interrupted_ || hooks_.is_interrupted();
  if (!is_interrupted_) {
    batch_.sequences.clear();
    for (Sequence& sequence : sequences_) {
      FACET_CHECK(sequence.full.Grow(sequence.n_done));
      FACET_CHECK(sliding_pool_->n_blocks() == 0 || sequence.sliding.Grow(sequence.n_done));
      batch_.sequences.push_back({sequence.sliding.blocks(), sequence.full.blocks()});
    }
    FACET_RETURN_IF_ERROR(runner_->Run(batch_));
    n_done_ += static_cast<int>(batch_.rows.size());
    hooks_.on_progress(repetition_, n_done_, n_total_);
  }
  batch_.rows.clear();
  return {};
}

void BenchRunner::Rewind(int n_positions) {
  for (Sequence& sequence : sequences_) {
    sequence.sliding.Truncate(n_positions);
    sequence.full.Truncate(n_positions);
    sequence.n_done = n_positions;
  }
}

/// So many empty sequences.
void BenchRunner::Resize(int n_sequences) {
  sequences_.clear();
  sequences_.reserve(static_cast<size_t>(n_sequences));
  for (int n = 0; n < n_sequences; ++n) {
    sequences_.push_back({BlockTable(sliding_pool_.get()), BlockTable(full_pool_.get())});
  }
}

/// Whether the case before left the sequences where this one begins.
bool BenchRunner::IsAt(const BenchCase& bench) const {
  return sequences_.size() == static_cast<size_t>(bench.n_sequences) &&
         sequences_[0].n_done == bench.n_depth;
}

}  // namespace facet
