// SPDX-License-Identifier: Apache-2.0
// The engine thread: owns the runner, the KV blocks and the sequences; other threads submit and
// cancel through a queue and get events through a callback. What a step decides is in
// engine_core.h, without threads or clocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/request.h"
#include "model/runner.h"

namespace facet {

/// What a step did, for metrics.
struct StepReport {
  int n_rows = 0;        ///< of the batch
  int n_generating = 0;  ///< sequences that drew tokens
  int n_running = 0;     ///< sequences that hold blocks
  int n_waiting = 0;
  int n_preempted = 0;            ///< in this step
  int n_sliding_blocks_held = 0;  ///< by sequences
  int n_full_blocks_held = 0;
  int n_sliding_blocks_cached = 0;  ///< by the prefix tree alone
  int n_full_blocks_cached = 0;
  int n_encoded = 0;    ///< pictures, frames and clips
  double encode_s = 0;  ///< in Runner::Encode
  double run_s = 0;     ///< in Runner::Run
  int n_drafted = 0;    ///< rows of drafts
  int n_accepted = 0;   ///< of these, drawn indeed
  double draft_s = 0;   ///< in Runner::Draft
  std::string draft_error =
      {};  ///< why Runner::Draft failed in this step; it is not called any more
};

struct EngineOptions {
  int max_rows = 512;        ///< rows of one step: the prefill chunk
  int max_rows_beside = 64;  ///< prefill rows of one step while others are generating
  int max_sequences = 16;    ///< sequences that run at once; others wait
  int max_queue = 1024;      ///< requests that wait; more are refused
  /// Who waits longer, for room or for an older request's beginning, ends with kQueueTimeout; 0:
  /// for ever.
  double max_queue_s = 0;
  bool reuses_prefixes = false;    ///< keep keys and values of what was computed (kv/prefix_tree.h)
  SpecMode spec = SpecMode::kOff;  ///< kMtp counts only where the runner drafts
  int max_drafts = 8;              ///< of one sequence in one step; at most kMaxDrafts
  int64_t media_cache_bytes = int64_t{256} << 20;  ///< of soft tokens that are kept
  /// Bytes a token adds to the text; for stop texts. Called on the engine thread; must outlive the
  /// engine.
  std::function<std::string_view(int32_t token)> token_bytes;  // not empty
  /// Told of every step, on the engine thread; may be empty. Must not block.
  std::function<void(const StepReport&)> on_step = {};
};

/// Submit and Cancel may be called from any thread.
class Engine {
 public:
  /// Called on the engine thread, in order per request. Must not block for long and must not call
  /// the engine.
  using EventSink = std::function<void(const Event&)>;

  Engine(std::unique_ptr<Runner> runner, EngineOptions options);
  /// Cancels what runs, tells it, and joins the thread.
  ~Engine();

  /// Queues a request. Refused, with nothing queued: an empty or too long prompt (both numbers are
  /// told), tokens outside the vocabulary, sampling values out of range, a full queue, an id that
  /// is in use.
  Status Submit(Request request, EventSink sink);
  /// The request ends within one step with kCancelled; unknown ids are ignored.
  void Cancel(uint64_t request_id);

  /// Writes the prefix tree to a file, or takes up the one of an earlier process and tells how many
  /// blocks; done between two steps, and waited for. `model` and `kv_type` tell apart what must not
  /// be mixed (engine/prefix_file.h). Only with EngineOptions::reuses_prefixes.
  Status SavePrefixes(const std::string& path, const std::string& model,
                      const std::string& kv_type);
  Result<int> LoadPrefixes(const std::string& path, const std::string& model,
                           const std::string& kv_type);

  /// The runner's, with n_context lowered to what a lone sequence can have of the blocks.
  [[nodiscard]] const RunnerInfo& info() const;
  [[nodiscard]] int max_queue() const;  ///< EngineOptions::max_queue

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace facet
