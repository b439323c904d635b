// SPDX-License-Identifier: Apache-2.0
// One step after the other, without threads: plan, guess, run, draw, tell. The same calls give the
// same events on any machine; time comes in through a function and is only reported.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/media_encoder.h"
#include "engine/prefix_cache.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "engine/speculator.h"
#include "kv/block_pool.h"
#include "model/runner.h"

namespace facet {

struct EngineCounters {
  int64_t n_steps = 0;
  int64_t n_rows = 0;
  int64_t n_preempted = 0;
};

/// Owns blocks and sequences. Not for several threads.
class EngineCore {
 public:
  using Clock = std::function<double()>;  ///< seconds, never going back

  /// `runner` must outlive it. Of options max_queue is not used.
  EngineCore(Runner* runner, EngineOptions options, Clock clock);

  /// The runner's info, with n_context lowered to what a lone sequence can have of the blocks.
  [[nodiscard]] const RunnerInfo& info() const { return info_; }

  /// Adds a request, which was submitted at `submitted_s`; refused when it fails CheckRequest or
  /// its id is in use.
  Status Add(Request request, double submitted_s);
  /// Ends the request and gives its blocks back at once; the next Step tells. Unknown ids are
  /// ignored.
  void Cancel(uint64_t id);
  void CancelAll();
  /// Runs one batch, if there are requests; the events since the last Step, in order per request.
  /// `on_planned` is called before the batch runs, when n_running and n_waiting are those of the
  /// step; may be empty.
  std::vector<Event> Step(const std::function<void()>& on_planned = {});

  [[nodiscard]] bool has_work() const { return !entries_.empty() || !events_.empty(); }
  [[nodiscard]] int n_running() const { return n_running_; }
  [[nodiscard]] int n_waiting() const { return static_cast<int>(entries_.size()) - n_running_; }
  [[nodiscard]] const BlockPool& sliding_pool() const { return sliding_pool_; }
  [[nodiscard]] const BlockPool& full_pool() const { return full_pool_; }
  [[nodiscard]] const EngineCounters& counters() const { return counters_; }
  /// Null unless EngineOptions::reuses_prefixes.
  [[nodiscard]] PrefixCache* prefix_cache() { return prefix_cache_ ? &*prefix_cache_ : nullptr; }

 private:
  struct Entry {
    Sequence sequence;
    double submitted_s;
    double started_s;      ///< first step; below 0: none yet
    double first_token_s;  ///< below 0: none yet
    bool is_finished;
    int n_cached = 0;
    int n_preempted = 0;
    double encode_s = 0;
    std::vector<SoftTokens> soft =
        {};  ///< of the request's media, from their first row to the last
    DraftState drafting = DraftState();
  };
  struct Ending {
    FinishReason reason;
    int32_t token = -1;
    std::string error = {};
  };

  /// What came of a sequence's rows of logits.
  struct Drawn {
    int n_rows = 0;    ///< that were drawn from; the last of them may have been unsound
    int n_tokens = 0;  ///< n_rows, or one less where that was so
    std::optional<Ending> ending = {};
  };

  /// What a plan is made of.
  struct Outlook {
    std::vector<SequenceState> states;  ///< of the oldest entries; the others do not take part
    std::vector<PrefixMatch> matches;   ///< of those that wait
  };

  [[nodiscard]] SequenceLimits sequence_limits() const { return {info_.n_context, limits_.window}; }
  void EndOverdue();
  [[nodiscard]] Outlook LookAhead() const;
  [[nodiscard]] bool IsBeingComputed(size_t index, int n_matched, const Outlook& outlook) const;
  StepPlan PlanWithDrafts(std::vector<SequenceState> states);
  StepPlan Plan();
  void Preempt(Entry& entry);
  void Admit(int n_before, const StepPlan& plan, std::vector<PrefixMatch>& matches);
  void Report(const StepPlan& plan, StepReport report);
  void EncodeMedia(StepPlan* plan, StepReport* report);
  void MakeDrafts(StepPlan* plan, StepReport* report);
  void RunPlan(const StepPlan& plan, StepReport* report);
  Batch MakeBatch(const StepPlan& plan);
  [[nodiscard]] static int32_t TokenAt(const Entry& entry, int pos);
  static void AppendRow(const Entry& entry, Row row, Batch* batch);
  void Finish(Entry& entry, Ending ending);
  void Tell(Entry& entry, std::vector<TextPiece>& pieces);
  Drawn DrawTokens(Entry& entry, std::span<const float> logits);
  void Advance(Entry& entry, int n_rows);
  static void ForgetPassedMedia(Entry& entry);
  void Distribute(const StepPlan& plan, const Result<std::span<const float>>& logits,
                  StepReport* report);
  void RemoveFinished();

  Runner* runner_;
  EngineOptions options_;
  Clock clock_;
  RunnerInfo info_;
  SchedulerLimits limits_;
  BlockPool sliding_pool_;
  BlockPool full_pool_;
  std::optional<PrefixCache> prefix_cache_;
  MediaEncoder media_encoder_;
  Speculator speculator_;
  std::vector<std::unique_ptr<Entry>> entries_;  ///< oldest first; the first n_running_ hold blocks
  int n_running_ = 0;
  std::vector<Event> events_;
  EngineCounters counters_;
};

}  // namespace facet
