// SPDX-License-Identifier: Apache-2.0
// Runs the cases of `facet bench` and takes their time: the batches that the engine makes of such
// requests, without its thread, its queue and the drawing of tokens. Tokens are random, the same in
// every run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "app/bench_plan.h"
#include "base/status.h"
#include "kv/block_table.h"
#include "model/model.h"
#include "model/runner.h"

namespace facet {

/// `options` with just so much memory for keys and values that each case can run.
Result<RunnerOptions> FitRunner(const Config& config, const RunnerOptions& options,
                                std::span<const BenchCase> cases);

struct BenchHooks {
  std::function<bool()> is_interrupted;  ///< asked before each batch
  /// After each batch: which repetition runs (0: the preparation), and the tokens of it that are
  /// done.
  std::function<void(int repetition, int n_done, int n_total)> on_progress;
};

/// Not for several threads.
class BenchRunner {
 public:
  /// The runner has the memory that FitRunner planned.
  BenchRunner(std::unique_ptr<Runner> runner, BenchHooks hooks);

  /// Seconds of each repetition; fewer than asked for when it was interrupted. Before the first one
  /// the sequences get their depth, unless the case before left them at it, and a batch warms up
  /// memory and threads. All repetitions begin at the same depth. One that takes less than `min_s`
  /// is run until this is over, and the mean is told.
  Result<std::vector<double>> Measure(const BenchCase& bench, int n_repetitions, double min_s = 0);

  /// The same of one call of the drafter that guesses `n_drafts` tokens after each sequence, which
  /// has one token more than the case's depth. Only where there is a drafter.
  Result<std::vector<double>> MeasureDrafts(const BenchCase& bench, int n_drafts, int n_repetitions,
                                            double min_s = 0);
  [[nodiscard]] bool has_drafter() const { return runner_->info().drafts; }

 private:
  struct Sequence {
    BlockTable sliding;
    BlockTable full;
    int n_done = 0;
  };

  Status Prepare(const BenchCase& bench);
  Status Repeat(const BenchCase& bench);
  Status Prefill(int index, int n_tokens, bool wants_logits);
  Status Generate(int n_tokens, int n_rows);
  template <typename Work>
  Result<double> TimeOf(double min_s, Work work) const;
  std::vector<DraftTask> MakeDraftTasks(std::span<const float> hidden, int n_drafts);
  [[nodiscard]] int32_t TokenAt(int index, int pos) const;
  void AddRow(int index, bool wants_logits);
  Status RunBatch();
  void Rewind(int n_positions);
  void Resize(int n_sequences);
  [[nodiscard]] bool IsAt(const BenchCase& bench) const;

  std::unique_ptr<Runner> runner_;
  BenchHooks hooks_;
  std::unique_ptr<BlockPool> sliding_pool_;
  std::unique_ptr<BlockPool> full_pool_;
  std::vector<Sequence> sequences_;
  Batch batch_;
  bool is_interrupted_ = false;
  int repetition_ = 0;
  int n_done_ = 0;  ///< tokens of the repetition
  int n_total_ = 0;
};

}  // namespace facet
