// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/request_check.h"

namespace facet {

namespace {

SchedulerLimits LimitsFrom(const RunnerInfo& info, const EngineOptions& options) {
  FACET_CHECK(options.max_rows >= 1 && options.max_rows_beside >= 1 && options.max_sequences >= 1);
  return {.max_rows = options.max_rows,
          .max_rows_beside = options.max_rows_beside,
          // Every running sequence must be able to have its row.
          .max_sequences = std::min(options.max_sequences, options.max_rows),
          .window = info.n_sliding_blocks > 0 ? info.sliding_window : 0,
          .n_sliding_blocks = info.n_sliding_blocks,
          .n_full_blocks = info.n_full_blocks};
}

}  // namespace

EngineCore::EngineCore(Runner* runner, EngineOptions options, Clock clock)
    : runner_(runner),
      options_(std::move(options)),
      clock_(std::move(clock)),
      info_(runner->info()),
      limits_(LimitsFrom(info_, options_)),
      sliding_pool_(info_.n_sliding_blocks),
      full_pool_(info_.n_full_blocks) {
  FACET_CHECK(options_.token_bytes != nullptr);
  info_.n_context = LargestContext(limits_, info_.n_context);
}

Status EngineCore::Add(Request request, double submitted_s) {
  FACET_RETURN_IF_ERROR(CheckRequest(request, info_.n_vocab, info_.n_context));
  for (const auto& entry : entries_) {
    if (entry->sequence.id() == request.id) {
      return Refuse("id", fmt::format("{}, which is running", request.id), "an unused one");
    }
  }
  entries_.push_back(std::make_unique<Entry>(Entry{
      .sequence = Sequence(std::move(request), sequence_limits(), &sliding_pool_, &full_pool_),
      .submitted_s = submitted_s,
      .started_s = -1,
      .first_token_s = -1,
      .is_finished = false}));
  return {};
}

void EngineCore::Cancel(uint64_t id) {
  for (const auto& entry : entries_) {
    if (entry->sequence.id() == id) {
      Finish(*entry, {.reason = FinishReason::kCancelled});
    }
  }
  RemoveFinished();
}

void EngineCore::CancelAll() {
  for (const auto& entry : entries_) {
    Finish(*entry, {.reason = FinishReason::kCancelled});
  }
  RemoveFinished();
}

std::vector<Event> EngineCore::Step(const std::function<void()>& on_planned) {
  if (!entries_.empty()) {
    const StepPlan plan = Plan();
    if (on_planned) {
      on_planned();
    }
    const Batch batch = MakeBatch(plan);
    ++counters_.n_steps;
    counters_.n_rows += static_cast<int64_t>(batch.rows.size());
    Distribute(plan, runner_->Run(batch));
    RemoveFinished();
  }
  return std::exchange(events_, {});
}

/// Plans the step and moves the blocks as planned.
StepPlan EngineCore::Plan() {
  std::vector<SequenceState> states;
  states.reserve(entries_.size());
  for (const auto& entry : entries_) {
    states.push_back(entry->sequence.state());
  }
  StepPlan plan = PlanStep(states, n_running_, limits_);
  for (int n = plan.n_running; n < plan.n_running + plan.n_preempted; ++n) {
    entries_[static_cast<size_t>(n)]->sequence.Preempt();
  }
  counters_.n_preempted += plan.n_preempted;
  n_running_ = plan.n_running;
  const double now_s = clock_();
  for (const StepPlan::Rows& rows : plan.rows) {
    Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    entry.sequence.Reserve(rows.n_rows);
    if (entry.started_s < 0) {
      entry.started_s = now_s;
    }
  }
  return plan;
}

Batch EngineCore::MakeBatch(const StepPlan& plan) {
  Batch batch;
  for (const StepPlan::Rows& rows : plan.rows) {
    const Sequence& sequence = entries_[static_cast<size_t>(rows.sequence)]->sequence;
    const auto index = static_cast<int32_t>(batch.sequences.size());
    batch.sequences.push_back(sequence.blocks());
    const SequenceState state = sequence.state();
    for (int pos = state.n_computed; pos < state.n_computed + rows.n_rows; ++pos) {
      batch.rows.push_back({.sequence = index,
                            .pos = pos,
                            .token = sequence.tokens()[static_cast<size_t>(pos)],
                            .wants_logits = pos + 1 == state.n_tokens});
    }
  }
  return batch;
}

/// Gives each sequence of the plan what the run brought it.
void EngineCore::Distribute(const StepPlan& plan, const Result<std::span<const float>>& logits) {
  const auto n_vocab = static_cast<size_t>(info_.n_vocab);
  size_t n_drawn = 0;
  for (const StepPlan::Rows& rows : plan.rows) {
    Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    if (!logits.ok()) {
      Finish(entry, {.reason = FinishReason::kError, .error = logits.error().Message()});
      continue;
    }
    entry.sequence.Advance(rows.n_rows);
    const SequenceState state = entry.sequence.state();
    if (state.n_computed == state.n_tokens) {
      FACET_CHECK((n_drawn + 1) * n_vocab <= logits->size());
      DrawToken(entry, logits->subspan(n_drawn++ * n_vocab, n_vocab));
    }
  }
  FACET_CHECK(!logits.ok() || n_drawn * n_vocab == logits->size());
}

void EngineCore::DrawToken(Entry& entry, std::span<const float> logits) {
  Sequence& sequence = entry.sequence;
  const Result<int32_t> token = sequence.Draw(logits);
  if (!token.ok()) {
    Finish(entry, {.reason = FinishReason::kError, .error = token.error().Message()});
    return;
  }
  if (entry.first_token_s < 0) {
    entry.first_token_s = clock_();
  }
  std::vector<TextPiece> released;
  const auto reason = sequence.Accept(*token, options_.token_bytes(*token), released);
  Tell(entry, released);
  if (reason) {
    Finish(entry, {.reason = *reason, .token = *reason == FinishReason::kEndToken ? *token : -1});
  }
}

void EngineCore::Tell(const Entry& entry, std::vector<TextPiece>& pieces) {
  for (TextPiece& piece : pieces) {
    events_.push_back({.kind = Event::Kind::kToken,
                       .request_id = entry.sequence.id(),
                       .token = piece.token,
                       .bytes = std::move(piece.bytes),
                       .error = {},
                       .stats = {}});
  }
}

void EngineCore::Finish(Entry& entry, Ending ending) {
  Sequence& sequence = entry.sequence;
  // After a stop text nothing is held any more; at any other end what is held belongs to the reply.
  std::vector<TextPiece> held;
  sequence.Flush(held);
  Tell(entry, held);
  const double now_s = clock_();
  const double started_s = entry.started_s < 0 ? now_s : entry.started_s;
  const double first_token_s = entry.first_token_s < 0 ? now_s : entry.first_token_s;
  events_.push_back({.kind = Event::Kind::kFinished,
                     .request_id = sequence.id(),
                     .token = ending.token,
                     .bytes = {},
                     .reason = ending.reason,
                     .error = std::move(ending.error),
                     .stats = {.n_prompt = sequence.n_prompt(),
                               .n_generated = sequence.n_generated(),
                               .queue_s = started_s - entry.submitted_s,
                               .prefill_s = first_token_s - started_s,
                               .decode_s = now_s - first_token_s}});
  entry.is_finished = true;
}

void EngineCore::RemoveFinished() {
  const auto running_end = entries_.begin() + n_running_;
  n_running_ -= static_cast<int>(std::count_if(
      entries_.begin(), running_end, [](const auto& entry) { return entry->is_finished; }));
  std::erase_if(entries_, [](const auto& entry) { return entry->is_finished; });
}

}  // namespace facet
