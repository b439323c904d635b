// SPDX-License-Identifier: Apache-2.0
#include "app/window_runner.h"

#include <utility>

#include "base/check.h"
#include "kv/plan.h"

namespace facet {

Result<WindowRunner> WindowRunner::Create(const Checkpoint& checkpoint,
                                          const RunnerOptions& options) {
  FACET_ASSIGN(std::unique_ptr<Runner> runner, MakeRunner(checkpoint, options));
  return WindowRunner(std::move(runner));
}

WindowRunner::WindowRunner(std::unique_ptr<Runner> runner)
    : runner_(std::move(runner)),
      sliding_pool_(std::make_unique<BlockPool>(runner_->info().n_sliding_blocks)),
      full_pool_(std::make_unique<BlockPool>(runner_->info().n_full_blocks)),
      sliding_(sliding_pool_.get()),
      full_(full_pool_.get()) {}

void WindowRunner::Begin() {
  sliding_.Clear();
  full_.Clear();
  n_done_ = 0;
}

Result<std::span<const float>> WindowRunner::Run(std::span<const int> tokens, int n_logits) {
  const auto n_rows = static_cast<int>(tokens.size());
  const bool has_sliding = sliding_pool_->n_blocks() > 0;
  FACET_CHECK(full_.Grow(n_done_ + n_rows));
  FACET_CHECK(!has_sliding || sliding_.Grow(n_done_ + n_rows));
  Batch batch;
  batch.sequences.push_back({sliding_.blocks(), full_.blocks()});
  batch.rows.reserve(tokens.size());
  for (int row = 0; row < n_rows; ++row) {
    batch.rows.push_back({.sequence = 0,
                          .pos = n_done_ + row,
                          .token = tokens[static_cast<size_t>(row)],
                          .wants_logits = row >= n_rows - n_logits});
  }
  FACET_ASSIGN(const std::span<const float> logits, runner_->Run(batch));
  FACET_CHECK(logits.size() == static_cast<size_t>(n_logits) * static_cast<size_t>(n_vocab()));
  n_done_ += n_rows;
  if (has_sliding) {
    sliding_.DropBelow(FirstVisible(n_done_, runner_->info().sliding_window));
  }
  return logits;
}

}  // namespace facet
