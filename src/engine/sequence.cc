// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/plan.h"

namespace facet {

Sequence::Sequence(Request request, const SequenceLimits& limits, BlockPool* sliding,
                   BlockPool* full)
    : request_(std::move(request)),
      tokens_(request_.prompt),
      limits_(limits),
      sliding_(sliding),
      full_(full),
      sampler_(request_.sampling, request_.suppressed_tokens, request_.prompt),
      stop_matcher_(request_.stop) {}

std::span<const int32_t> Sequence::reply() const {
  return std::span(tokens_).subspan(request_.prompt.size());
}

SequenceState Sequence::state() const {
  const int n_reply_most = request_.max_tokens < 0 ? limits_.n_context : request_.max_tokens;
  return {.n_tokens = static_cast<int>(tokens_.size()),
          .n_computed = n_computed_,
          .n_most = n_reply_most < limits_.n_context - n_prompt() ? n_prompt() + n_reply_most
                                                                  : limits_.n_context};
}

void Sequence::Reserve(int n_rows) {
  FACET_CHECK(full_.Grow(n_computed_ + n_rows));
  FACET_CHECK(limits_.window == 0 || sliding_.Grow(n_computed_ + n_rows));
}

void Sequence::Advance(int n_rows) {
  n_computed_ += n_rows;
  FACET_CHECK(n_computed_ <= static_cast<int>(tokens_.size()));
  sliding_.DropBelow(FirstVisible(n_computed_, limits_.window));
}

void Sequence::Preempt() {
  sliding_.Clear();
  full_.Clear();
  n_computed_ = 0;
}

Result<int32_t> Sequence::Draw(std::span<const float> logits) {
  return sampler_.Draw(logits, static_cast<int>(tokens_.size()));
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
  sampler_.Accept(token);
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
