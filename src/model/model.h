// SPDX-License-Identifier: Apache-2.0
// A checkpoint checked and bound, with memory for keys and values, ready to run: what the engine is
// given. The only header of model/ that a program needs besides checkpoint.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/status.h"
#include "compute/attention.h"
#include "compute/context.h"
#include "compute/cpu.h"
#include "kv/plan.h"
#include "model/checkpoint.h"
#include "model/drafter_checkpoint.h"
#include "model/media_checkpoint.h"
#include "model/runner.h"

namespace facet {

struct RunnerOptions {
  int n_context = 0;        ///< positions of one sequence; 0: the model's own
  int n_sequences = 1;      ///< sequences at full context that the KV memory must hold
  int max_rows = 512;       ///< most rows of one batch
  int64_t cache_bytes = 0;  ///< of KV memory beside, for prefixes that are kept
  KvType kv_type = KvType::kF16;
  int n_threads = 0;       ///< 0: DefaultThreads()
  std::optional<Isa> isa;  ///< default: BestIsa()
  /// Arrange weights for the processor while loading (compute/packed_weights.h); same results.
  bool pack = true;
  /// Told how many of the bytes to arrange are done, from the loading thread; may be empty.
  std::function<void(int64_t done, int64_t total)> on_packed = {};
  /// Encoders of pictures and sound, which fit the model (CheckFits) and outlive the runner; null:
  /// none.
  const MediaCheckpoint* media = nullptr;
  /// A drafter that fits the model (CheckFits) and outlives the runner; null: none.
  const DrafterCheckpoint* drafter = nullptr;
  /// Told of every matrix product (facet imatrix); must outlive the runner. Null: none.
  const MatMulObserver* observer = nullptr;
};

/// Blocks and bytes that keys and values take, before anything is allocated. `n_context` above the
/// model's own is refused, and so is a KV type that a head size does not allow.
Result<KvPoolPlan> PlanKv(const Config& config, const RunnerOptions& options);

/// Binds the checkpoint's tensors (each missing, misshapen or unreadable one is refused by name)
/// and allocates. The checkpoint must outlive the runner: what is not packed is used where it lies.
Result<std::unique_ptr<Runner>> MakeRunner(const Checkpoint& checkpoint,
                                           const RunnerOptions& options);

}  // namespace facet
