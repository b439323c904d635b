// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "kv/plan.h"

namespace facet {

namespace {

/// Of position `offset` of an item: negative, and the same for the same content alone.
PrefixUnit UnitOf(const MediaItem& item, int offset) {
  constexpr size_t kDigits = 16;
  const uint64_t content = std::stoull(item.hash.substr(0, kDigits), nullptr, 16);
  const uint64_t bits = RandomBits(content, static_cast<uint64_t>(offset));
  return -1 - static_cast<PrefixUnit>(bits >> 1U);
}

}  // namespace

Sequence::Sequence(Request request, const SequenceLimits& limits, BlockPool* sliding,
                   BlockPool* full)
    : request_(std::move(request)),
      tokens_(request_.prompt),
      units_(tokens_.begin(), tokens_.end()),
      limits_(limits),
      sliding_(sliding),
      full_(full),
      sampler_(request_.sampling, request_.suppressed_tokens, request_.prompt),
      stop_matcher_(request_.stop),
      is_thinking_(request_.thought.starts_open) {
  for (const PlacedMedia& placed : request_.media) {
    for (int offset = 0; offset < placed.item->n_tokens; ++offset) {
      const auto pos = static_cast<size_t>(placed.begin) + static_cast<size_t>(offset);
      units_[pos] = UnitOf(*placed.item, offset);
    }
    if (placed.item->kind != MediaKind::kAudio) {
      spans_.push_back({placed.begin, placed.end()});
    }
  }
}

std::span<const int32_t> Sequence::reply() const {
  return std::span(tokens_).subspan(request_.prompt.size());
}

SequenceState Sequence::state() const {
  const int n_reply_most = request_.max_tokens < 0 ? limits_.n_context : request_.max_tokens;
  return {.n_tokens = static_cast<int>(tokens_.size()),
          .n_computed = n_computed_,
          .n_most = n_reply_most < limits_.n_context - n_prompt() ? n_prompt() + n_reply_most
                                                                  : limits_.n_context,
          .spans = spans_};
}

void Sequence::Reserve(int n_rows) {
  FACET_CHECK(full_.Grow(n_computed_ + n_rows));
  FACET_CHECK(limits_.window == 0 || sliding_.Grow(n_computed_ + n_rows));
}

void Sequence::Advance(int n_rows) {
  n_computed_ += n_rows;
  FACET_CHECK(n_computed_ <= static_cast<int>(tokens_.size()));
  full_.Truncate(n_computed_);
  sliding_.Truncate(n_computed_);
}

void Sequence::DropPassed() { sliding_.DropBelow(FirstVisible(n_computed_, limits_.window)); }

void Sequence::Resume(int n_positions) {
  FACET_CHECK(n_computed_ == 0 && n_positions < static_cast<int>(tokens_.size()));
  n_computed_ = n_positions;
}

void Sequence::Preempt() {
  sliding_.Clear();
  full_.Clear();
  n_computed_ = 0;
}

Result<int32_t> Sequence::Draw(std::span<const float> logits) {
  // Drawn also where the token is forced: broken logits are found all the same.
  Result<int32_t> token = sampler_.Draw(logits, static_cast<int>(tokens_.size()));
  if (!token.ok()) {
    return token;
  }
  const ThoughtLimit& thought = request_.thought;
  if (is_thinking_ && thought.max_tokens >= 0 && n_thought_ >= thought.max_tokens) {
    thought_was_cut_ = thought_was_cut_ || *token != thought.close;
    sampler_.Suppress(thought.open);
    token = thought.close;
  }
  if (request_.n_top_logprobs >= 0) {
    logprobs_.push_back(ComputeLogprobs(logits, *token, request_.n_top_logprobs));
  }
  return token;
}

TokenLogprobs Sequence::TakeLogprobs() {
  FACET_CHECK(!logprobs_.empty());
  TokenLogprobs taken = std::move(logprobs_.front());
  logprobs_.pop_front();
  return taken;
}

void Sequence::CountThought(int32_t token) {
  if (token == request_.thought.open) {
    is_thinking_ = true;
  } else if (token == request_.thought.close) {
    is_thinking_ = false;
  } else if (is_thinking_) {
    ++n_thought_;
  }
}

std::optional<FinishReason> Sequence::LimitReached() {
  if (n_generated() == request_.max_tokens) {
    return FinishReason::kMaxTokens;
  }
  if (static_cast<int>(tokens_.size()) >= limits_.n_context) {
    return FinishReason::kContext;
  }
  if (request_.stops_on_repetition && guard_.Push(reply())) {
    return FinishReason::kRepetition;
  }
  return std::nullopt;
}

std::optional<FinishReason> Sequence::Accept(int32_t token, std::string_view bytes,
                                             std::vector<TextPiece>& released) {
  tokens_.push_back(token);
  units_.push_back(token);
  sampler_.Accept(token);
  CountThought(token);
  const auto& ends = request_.end_tokens;
  if (std::find(ends.begin(), ends.end(), token) != ends.end()) {
    stop_matcher_.Flush(released);
    return FinishReason::kEndToken;
  }
  if (stop_matcher_.Push(token, bytes, released)) {
    return FinishReason::kStopString;
  }
  const std::optional<FinishReason> reason = LimitReached();
  if (reason) {
    stop_matcher_.Flush(released);
  }
  return reason;
}

}  // namespace facet
