// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/request_check.h"
#include "kv/plan.h"

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

/// Of a plan's rows for a sequence, those beyond its tokens.
int CountDrafts(const SequenceState& state, int n_rows) {
  return std::max(0, state.n_computed + n_rows - state.n_tokens);
}

}  // namespace

EngineCore::EngineCore(Runner* runner, EngineOptions options, Clock clock)
    : runner_(runner),
      options_(std::move(options)),
      clock_(std::move(clock)),
      info_(runner->info()),
      limits_(LimitsFrom(info_, options_)),
      sliding_pool_(info_.n_sliding_blocks),
      full_pool_(info_.n_full_blocks),
      media_encoder_(runner_, options_.media_cache_bytes),
      speculator_(runner_, options_.spec, options_.max_drafts, clock_) {
  FACET_CHECK(options_.token_bytes != nullptr);
  info_.n_context = LargestContext(limits_, info_.n_context);
  if (options_.reuses_prefixes) {
    prefix_cache_.emplace(runner_, &sliding_pool_, &full_pool_, limits_.window);
  }
}

Status EngineCore::Add(Request request, double submitted_s) {
  FACET_RETURN_IF_ERROR(CheckRequest(request, info_));
  for (const auto& entry : entries_) {
    if (entry->sequence.id() == request.id) {
      return Refuse("id", fmt::format("{}, which is running", request.id), "an unused one");
    }
  }
  const SpecMode spec = speculator_.ModeFor(request);
  entries_.push_back(std::make_unique<Entry>(Entry{
      .sequence = Sequence(std::move(request), sequence_limits(), &sliding_pool_, &full_pool_),
      .submitted_s = submitted_s,
      .started_s = -1,
      .first_token_s = -1,
      .is_finished = false}));
  entries_.back()->drafting.mode = spec;
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
  EndOverdue();
  if (!entries_.empty()) {
    StepPlan plan = Plan();
    if (on_planned) {
      on_planned();
    }
    StepReport report;
    EncodeMedia(&plan, &report);
    MakeDrafts(&plan, &report);
    if (!plan.rows.empty()) {
      RunPlan(plan, &report);
    }
    RemoveFinished();
    Report(plan, report);
  }
  return std::exchange(events_, {});
}

/// Soft tokens for the media among the rows of the plan. A sequence whose media cannot be encoded
/// ends, and its rows leave the plan.
void EngineCore::EncodeMedia(StepPlan* plan, StepReport* report) {
  struct Place {
    Entry* entry;
    size_t index;
  };
  std::vector<Place> places;
  std::vector<const MediaItem*> items;
  for (const StepPlan::Rows& rows : plan->rows) {
    Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    const std::vector<PlacedMedia>& media = entry.sequence.request().media;
    entry.soft.resize(media.size());
    const int begin = entry.sequence.state().n_computed;
    for (size_t n = 0; n < media.size(); ++n) {
      const bool is_due = media[n].begin < begin + rows.n_rows && media[n].end() > begin;
      if (is_due && entry.soft[n] == nullptr) {
        places.push_back({&entry, n});
        items.push_back(media[n].item.get());
      }
    }
  }
  if (items.empty()) {
    return;
  }
  const int64_t n_before = media_encoder_.n_encoded();
  const double began_s = clock_();
  const std::vector<Result<SoftTokens>> soft = media_encoder_.Encode(items);
  report->encode_s = clock_() - began_s;
  report->n_encoded = static_cast<int>(media_encoder_.n_encoded() - n_before);
  for (size_t n = 0; n < places.size(); ++n) {
    Entry& entry = *places[n].entry;
    entry.encode_s += n == 0 || places[n - 1].entry != &entry ? report->encode_s : 0;
    if (soft[n].ok()) {
      entry.soft[places[n].index] = *soft[n];
    } else if (!entry.is_finished) {
      Finish(entry, {.reason = FinishReason::kError, .error = soft[n].error().Message()});
    }
  }
  std::erase_if(plan->rows, [this](const StepPlan::Rows& rows) {
    return entries_[static_cast<size_t>(rows.sequence)]->is_finished;
  });
}

/// Guesses for the rows that the plan grants; rows without a guess leave it.
void EngineCore::MakeDrafts(StepPlan* plan, StepReport* report) {
  std::vector<DraftSeat> seats;
  for (const StepPlan::Rows& rows : plan->rows) {
    Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    const int n_drafts = CountDrafts(entry.sequence.state(), rows.n_rows);
    if (n_drafts > 0) {
      seats.push_back({&entry.sequence, &entry.drafting, n_drafts});
    }
  }
  speculator_.Propose(seats);
  for (StepPlan::Rows& rows : plan->rows) {
    const Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    rows.n_rows -= CountDrafts(entry.sequence.state(), rows.n_rows);
    rows.n_rows += static_cast<int>(entry.drafting.drafts.size());
  }
  report->draft_s = speculator_.draft_s();
  report->draft_error = speculator_.TakeFailure();
}

void EngineCore::RunPlan(const StepPlan& plan, StepReport* report) {
  const Batch batch = MakeBatch(plan);
  report->n_rows = static_cast<int>(batch.rows.size());
  ++counters_.n_steps;
  counters_.n_rows += report->n_rows;
  const double began_s = clock_();
  const auto logits = runner_->Run(batch);
  report->run_s = clock_() - began_s;
  if (logits.ok()) {
    // Rows of a prompt skip layers and the output matrix, and would pass for cheap drafts.
    const bool is_comparable = std::all_of(batch.rows.begin(), batch.rows.end(),
                                           [](const Row& row) { return row.wants_logits; });
    speculator_.ObserveStep(is_comparable ? report->n_rows : 0, report->run_s);
  }
  Distribute(plan, logits, report);
}

/// Requests that have waited too long for their first step.
void EngineCore::EndOverdue() {
  if (options_.max_queue_s <= 0) {
    return;
  }
  const double oldest_s = clock_() - options_.max_queue_s;
  for (size_t n = static_cast<size_t>(n_running_); n < entries_.size(); ++n) {
    Entry& entry = *entries_[n];
    if (entry.started_s < 0 && entry.submitted_s < oldest_s) {
      Finish(entry, {.reason = FinishReason::kQueueTimeout});
    }
  }
  RemoveFinished();
}

/// The states of those that run and of those that might start.
EngineCore::Outlook EngineCore::LookAhead() const {
  Outlook outlook;
  // Looking for the beginnings of newcomers takes time; more of them have their turn in a step or
  // two.
  constexpr int kMostNewcomers = 8;
  const int n_most = std::min(limits_.max_sequences, n_running_ + kMostNewcomers);
  const size_t n_states = std::min(entries_.size(), static_cast<size_t>(n_most));
  outlook.states.reserve(n_states);
  for (size_t n = 0; n < n_states; ++n) {
    SequenceState state = entries_[n]->sequence.state();
    if (prefix_cache_ && n >= static_cast<size_t>(n_running_)) {
      PrefixMatch match = prefix_cache_->Match(entries_[n]->sequence);
      if (IsBeingComputed(n, match.n_positions, outlook)) {
        break;
      }
      state.n_computed = match.n_positions;
      outlook.matches.push_back(std::move(match));
    }
    outlook.states.push_back(state);
  }
  return outlook;
}

/// Whether an older sequence is about to compute more of this one's beginning than was found: then
/// it pays to wait for it, a step or a few.
bool EngineCore::IsBeingComputed(size_t index, int n_matched, const Outlook& outlook) const {
  const Sequence& sequence = entries_[index]->sequence;
  const auto units = sequence.units();
  for (size_t n = 0; n < index; ++n) {
    const Sequence& older = entries_[n]->sequence;
    const SequenceState& state = outlook.states[n];
    const bool is_related = sequence.request().reuses_prefix && older.request().reuses_prefix &&
                            sequence.request().cache_salt == older.request().cache_salt;
    if (!is_related || state.n_tokens - state.n_computed <= 1) {
      continue;
    }
    const auto common =
        std::mismatch(units.begin(), units.end() - 1, older.units().begin(), older.units().end());
    // Only whole blocks are left while a prompt is computed.
    const auto n_blocks = static_cast<int>(common.first - units.begin()) / kBlockPositions;
    const int n_common = OutsideSpans(sequence.spans(), n_blocks * kBlockPositions);
    if (n_common > std::max(n_matched, state.n_computed)) {
      return true;
    }
  }
  return false;
}

/// Drafts are for those that run and have nothing but their newest token to compute: as many as
/// pay beside what the step has without them.
StepPlan EngineCore::PlanWithDrafts(std::vector<SequenceState> states) {
  StepPlan plan = PlanStep(states, n_running_, limits_);
  std::vector<DraftSeat> seats;
  std::vector<SequenceState*> seated;
  DraftRoom room = {.n_most = limits_.max_rows};
  for (const StepPlan::Rows& rows : plan.rows) {
    SequenceState& state = states[static_cast<size_t>(rows.sequence)];
    Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    const bool is_one_row = state.n_tokens - state.n_computed == 1;
    room.n_most = std::max(0, room.n_most - rows.n_rows);
    room.is_measured = room.is_measured && is_one_row;
    if (is_one_row && rows.sequence < n_running_ && entry.drafting.mode != SpecMode::kOff) {
      seats.push_back({&entry.sequence, &entry.drafting});
      seated.push_back(&state);
    } else {
      room.n_other_rows += rows.n_rows;
    }
  }
  if (seats.empty()) {
    return plan;
  }
  speculator_.Choose(seats, room);
  for (size_t n = 0; n < seats.size(); ++n) {
    seated[n]->n_drafts = seats[n].state->choice.n_drafts;
  }
  return PlanStep(states, n_running_, limits_);
}

/// Plans the step and moves the blocks as planned.
StepPlan EngineCore::Plan() {
  Outlook outlook = LookAhead();
  const int n_before = n_running_;
  StepPlan plan = PlanWithDrafts(std::move(outlook.states));
  for (int n = plan.n_running; n < plan.n_running + plan.n_preempted; ++n) {
    Preempt(*entries_[static_cast<size_t>(n)]);
  }
  counters_.n_preempted += plan.n_preempted;
  n_running_ = plan.n_running;
  Admit(n_before, plan, outlook.matches);
  const double now_s = clock_();
  for (const StepPlan::Rows& rows : plan.rows) {
    Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    const int n_positions = entry.sequence.state().n_computed + rows.n_rows;
    if (prefix_cache_) {
      prefix_cache_->MakeRoom(n_positions, &entry.sequence);
    }
    entry.sequence.Reserve(rows.n_rows);
    if (entry.started_s < 0) {
      entry.started_s = now_s;
    }
  }
  return plan;
}

void EngineCore::Preempt(Entry& entry) {
  if (prefix_cache_) {
    prefix_cache_->Leave(true, &entry.sequence);
  }
  entry.sequence.Preempt();
  ++entry.n_preempted;
}

/// Those from `n_before` on run from this step on.
void EngineCore::Admit(int n_before, const StepPlan& plan, std::vector<PrefixMatch>& matches) {
  if (!prefix_cache_) {
    return;
  }
  std::vector<PrefixCache::Newcomer> newcomers;
  for (int n = n_before; n < plan.n_running; ++n) {
    Entry& entry = *entries_[static_cast<size_t>(n)];
    PrefixMatch& match = matches[static_cast<size_t>(n - n_before)];
    if (entry.started_s < 0) {
      entry.n_cached = match.n_positions;
    }
    newcomers.push_back({&entry.sequence, std::move(match)});
  }
  prefix_cache_->Resume(newcomers);
}

void EngineCore::Report(const StepPlan& plan, StepReport report) {
  if (!options_.on_step) {
    return;
  }
  report.n_running = n_running_;
  report.n_waiting = n_waiting();
  report.n_preempted = plan.n_preempted;
  if (prefix_cache_) {
    report.n_sliding_blocks_cached = prefix_cache_->tree().n_evictable(KvGroup::kSliding);
    report.n_full_blocks_cached = prefix_cache_->tree().n_evictable(KvGroup::kFull);
  }
  report.n_sliding_blocks_held =
      sliding_pool_.n_blocks() - sliding_pool_.n_free() - report.n_sliding_blocks_cached;
  report.n_full_blocks_held =
      full_pool_.n_blocks() - full_pool_.n_free() - report.n_full_blocks_cached;
  options_.on_step(report);
}

/// Of a row: the sequence's own token, or the draft that is to be verified.
int32_t EngineCore::TokenAt(const Entry& entry, int pos) {
  const std::span<const int32_t> tokens = entry.sequence.tokens();
  const auto index = static_cast<size_t>(pos);
  return index < tokens.size() ? tokens[index] : entry.drafting.drafts[index - tokens.size()];
}

Batch EngineCore::MakeBatch(const StepPlan& plan) {
  Batch batch;
  for (const StepPlan::Rows& rows : plan.rows) {
    const Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    const Sequence& sequence = entry.sequence;
    const auto index = static_cast<int32_t>(batch.sequences.size());
    batch.sequences.push_back(sequence.blocks());
    const SequenceState state = sequence.state();
    for (int pos = state.n_computed; pos < state.n_computed + rows.n_rows; ++pos) {
      AppendRow(entry,
                {.sequence = index,
                 .pos = pos,
                 .token = TokenAt(entry, pos),
                 .wants_logits = pos + 1 >= state.n_tokens},
                &batch);
    }
  }
  return batch;
}

/// Where an item of media stands, the row gets its soft token.
void EngineCore::AppendRow(const Entry& entry, Row row, Batch* batch) {
  const std::vector<PlacedMedia>& media = entry.sequence.request().media;
  const auto placed =
      std::partition_point(media.begin(), media.end(),
                           [&row](const PlacedMedia& item) { return item.end() <= row.pos; });
  if (placed != media.end() && placed->begin <= row.pos) {
    const std::vector<float>& soft = *entry.soft[static_cast<size_t>(placed - media.begin())];
    const size_t n_embd = soft.size() / static_cast<size_t>(placed->item->n_tokens);
    const std::span<const float> values =
        std::span(soft).subspan(static_cast<size_t>(row.pos - placed->begin) * n_embd, n_embd);
    row.soft_row = static_cast<int32_t>(batch->soft.size() / n_embd);
    batch->soft.insert(batch->soft.end(), values.begin(), values.end());
    if (placed->item->kind != MediaKind::kAudio) {
      row.span_begin = placed->begin;
      row.span_end = placed->end();
    }
  }
  batch->rows.push_back(row);
}

/// Gives each sequence of the plan what the run brought it.
void EngineCore::Distribute(const StepPlan& plan, const Result<std::span<const float>>& logits,
                            StepReport* report) {
  const auto n_vocab = static_cast<size_t>(info_.n_vocab);
  const auto n_embd = static_cast<size_t>(info_.n_embd);
  size_t n_taken = 0;  // rows of logits
  for (const StepPlan::Rows& rows : plan.rows) {
    Entry& entry = *entries_[static_cast<size_t>(rows.sequence)];
    if (!logits.ok()) {
      Finish(entry, {.reason = FinishReason::kError, .error = logits.error().Message()});
      continue;
    }
    const SequenceState state = entry.sequence.state();
    const int n_logits = CountDrafts(state, rows.n_rows + 1);  // from the newest token on
    if (n_logits == 0) {
      Advance(entry, rows.n_rows);
      continue;
    }
    const auto n_own = static_cast<size_t>(n_logits);
    FACET_CHECK((n_taken + n_own) * n_vocab <= logits->size());
    const Drawn drawn = DrawTokens(entry, logits->subspan(n_taken * n_vocab, n_own * n_vocab));
    // Rows that nothing was drawn from stand after guesses that were wrong, or after the end.
    Advance(entry, rows.n_rows - n_logits + drawn.n_rows);
    if (speculator_.NeedsHidden(entry.drafting)) {
      const size_t last = n_taken + static_cast<size_t>(drawn.n_rows) - 1;
      const std::span<const float> hidden = runner_->hidden().subspan(last * n_embd, n_embd);
      entry.drafting.hidden.assign(hidden.begin(), hidden.end());
    }
    ++report->n_generating;
    report->n_drafted += n_logits - 1;
    report->n_accepted +=
        speculator_.Observe(entry.sequence.tokens().last(static_cast<size_t>(drawn.n_tokens)),
                            drawn.ending.has_value(), &entry.drafting);
    n_taken += n_own;
    if (drawn.ending) {
      Finish(entry, *drawn.ending);
    }
  }
  FACET_CHECK(!logits.ok() || n_taken * n_vocab == logits->size());
}

/// The next `n_rows` positions of the sequence are computed.
void EngineCore::Advance(Entry& entry, int n_rows) {
  entry.sequence.Advance(n_rows);
  const int n_computed = entry.sequence.state().n_computed;
  if (prefix_cache_ && n_computed / kBlockPositions > (n_computed - n_rows) / kBlockPositions) {
    prefix_cache_->Leave(false, &entry.sequence);
  }
  entry.sequence.DropPassed();
  ForgetPassedMedia(entry);
}

/// Soft tokens that have been computed are not needed any more; should the sequence lose its
/// blocks, they are asked for again.
void EngineCore::ForgetPassedMedia(Entry& entry) {
  const std::vector<PlacedMedia>& media = entry.sequence.request().media;
  for (size_t n = 0; n < entry.soft.size(); ++n) {
    if (media[n].end() <= entry.sequence.state().n_computed) {
      entry.soft[n] = nullptr;
    }
  }
}

/// Draws from the first row, and from the next as long as what was drawn is that row's draft.
EngineCore::Drawn EngineCore::DrawTokens(Entry& entry, std::span<const float> logits) {
  Sequence& sequence = entry.sequence;
  const std::vector<int32_t>& drafts = entry.drafting.drafts;
  const auto n_vocab = static_cast<size_t>(info_.n_vocab);
  Drawn drawn;
  bool goes_on = true;
  while (goes_on) {
    const auto index = static_cast<size_t>(drawn.n_rows++);
    const Result<int32_t> token = sequence.Draw(logits.subspan(index * n_vocab, n_vocab));
    if (!token.ok()) {
      drawn.ending = Ending{.reason = FinishReason::kError, .error = token.error().Message()};
      return drawn;
    }
    ++drawn.n_tokens;
    if (entry.first_token_s < 0) {
      entry.first_token_s = clock_();
    }
    std::vector<TextPiece> released;
    const auto reason = sequence.Accept(*token, options_.token_bytes(*token), released);
    Tell(entry, released);
    if (reason) {
      drawn.ending =
          Ending{.reason = *reason, .token = *reason == FinishReason::kEndToken ? *token : -1};
    }
    goes_on = index < drafts.size() && drafts[index] == *token && !reason;
  }
  return drawn;
}

void EngineCore::Tell(Entry& entry, std::vector<TextPiece>& pieces) {
  for (TextPiece& piece : pieces) {
    Event& event = events_.emplace_back();
    event.request_id = entry.sequence.id();
    event.token = piece.token;
    event.bytes = std::move(piece.bytes);
    if (entry.sequence.request().n_top_logprobs >= 0) {
      TokenLogprobs logprobs = entry.sequence.TakeLogprobs();
      event.logprob = logprobs.drawn;
      event.top_logprobs = std::move(logprobs.top);
    }
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
  Event& event = events_.emplace_back();
  event.kind = Event::Kind::kFinished;
  event.request_id = sequence.id();
  event.token = ending.token;
  event.reason = ending.reason;
  event.error = std::move(ending.error);
  event.stats = {.n_prompt = sequence.n_prompt(),
                 .n_cached = entry.n_cached,
                 .n_thought = sequence.n_thought(),
                 .thought_was_cut = sequence.thought_was_cut(),
                 .n_preempted = entry.n_preempted,
                 .n_generated = sequence.n_generated(),
                 .n_draft_rounds = entry.drafting.n_rounds,
                 .n_drafted = entry.drafting.n_drafted,
                 .n_accepted = entry.drafting.n_accepted,
                 .queue_s = started_s - entry.submitted_s,
                 .prefill_s = first_token_s - started_s,
                 .encode_s = entry.encode_s,
                 .decode_s = now_s - first_token_s};
  if (prefix_cache_) {
    prefix_cache_->Leave(true, &sequence);
  }
  entry.is_finished = true;
}

void EngineCore::RemoveFinished() {
  const auto running_end = entries_.begin() + n_running_;
  n_running_ -= static_cast<int>(std::count_if(
      entries_.begin(), running_end, [](const auto& entry) { return entry->is_finished; }));
  std::erase_if(entries_, [](const auto& entry) { return entry->is_finished; });
}

}  // namespace facet
