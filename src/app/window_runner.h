// SPDX-License-Identifier: Apache-2.0
// Runs a window of tokens through a model, some rows at a time, for measurements that want the
// logits of many rows and draw no tokens. One sequence, no scheduling.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "kv/block_table.h"
#include "model/checkpoint.h"
#include "model/model.h"
#include "model/runner.h"

namespace facet {

/// Not for several threads.
class WindowRunner {
 public:
  /// Allocates for windows of options.n_context positions. The checkpoint must outlive it.
  static Result<WindowRunner> Create(const Checkpoint& checkpoint, const RunnerOptions& options);

  /// Begins a window: positions count from 0 again.
  void Begin();
  /// Runs the next tokens of the window, at most options.max_rows; gives the logits of the last
  /// `n_logits` rows [n_logits, n_vocab], valid until the next call.
  Result<std::span<const float>> Run(std::span<const int> tokens, int n_logits);

  [[nodiscard]] int n_vocab() const { return runner_->info().n_vocab; }

 private:
  explicit WindowRunner(std::unique_ptr<Runner> runner);

  std::unique_ptr<Runner> runner_;
  std::unique_ptr<BlockPool> sliding_pool_;
  std::unique_ptr<BlockPool> full_pool_;
  BlockTable sliding_;
  BlockTable full_;
  int n_done_ = 0;
};

}  // namespace facet
