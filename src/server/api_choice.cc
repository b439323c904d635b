// SPDX-License-Identifier: Apache-2.0
#include "server/api_choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace facet {

using Kind = ReplyDelta::Kind;

ApiChoice::ApiChoice(const ApiRequest& request, const Vocab& vocab,
                     std::shared_ptr<const OfferedTools> tools, std::span<const int32_t> prompt,
                     size_t offset)
    : request_(&request),
      vocab_(&vocab),
      splitter_(vocab, std::move(tools), EndsInOpenThought(vocab, prompt)),
      offset_(offset) {}

std::vector<ChoicePart> ApiChoice::Add(const Event& event) {
  const bool is_token = event.kind == Event::Kind::kToken;
  if (!is_token) {
    reason_ = event.reason;
    stats_ = event.stats;
  }
  if (was_ended_) {
    return {};
  }
  if (is_token) {
    ++n_tokens_;
    Hold(event);
  }
  std::vector<ChoicePart> parts = MakeParts(Split(event));
  if (is_token && IsMark(event.token) && splitter_.kind() != Kind::kCall) {
    DropOthers(0);  // the header of a thought, or what stood before its end
  }
  return parts;
}

/// The end token has no text, but may be the mark that closes a call.
std::vector<ReplyDelta> ApiChoice::SplitEnd(const Event& event) {
  std::vector<ReplyDelta> deltas;
  if (event.reason == FinishReason::kEndToken && event.token >= 0) {
    deltas = splitter_.Push(event.token, {});
  }
  std::vector<ReplyDelta> rest = splitter_.Finish();
  std::move(rest.begin(), rest.end(), std::back_inserter(deltas));
  return deltas;
}

std::vector<ReplyDelta> ApiChoice::Split(const Event& event) {
  const bool is_token = event.kind == Event::Kind::kToken;
  if (request_->kind == ApiRequest::Kind::kChat) {
    return is_token ? splitter_.Push(event.token, event.bytes) : SplitEnd(event);
  }
  std::string text = is_token ? characters_.Push(event.bytes) : characters_.Flush();
  if (text.empty()) {
    return {};
  }
  return {{.kind = Kind::kContent, .text = std::move(text)}};
}

bool ApiChoice::IsMark(int32_t token) const {
  return request_->kind == ApiRequest::Kind::kChat && vocab_->is_special(token);
}

void ApiChoice::Hold(const Event& event) {
  if (IsMark(event.token)) {
    n_content_ = splitter_.kind() == Kind::kContent ? held_.size() : n_content_;
  } else if (request_->engine.n_top_logprobs >= 0 && !event.bytes.empty()) {
    held_.push_back({event.logprob, event.top_logprobs, offset_});
  }
}

void ApiChoice::DropOthers(size_t n_kept) {
  const auto begin = held_.begin() + static_cast<ptrdiff_t>(n_content_);
  auto end = held_.end();
  for (size_t n_bytes = 0; end != begin && n_bytes < n_kept;) {
    --end;
    n_bytes += vocab_->bytes(end->logprob.token).size();
  }
  held_.erase(begin, end);
}

std::vector<ChoicePart> ApiChoice::MakeParts(std::vector<ReplyDelta> deltas) {
  size_t n_rest = 0;  // bytes of content behind the last thought or call
  for (const ReplyDelta& delta : deltas) {
    n_rest = delta.kind == Kind::kContent ? n_rest + delta.text.size() : 0;
  }
  std::vector<ChoicePart> parts;
  parts.reserve(deltas.size());
  for (ReplyDelta& delta : deltas) {
    const Kind kind = delta.kind;
    if (kind == Kind::kContent) {
      offset_ += CountCodePoints(delta.text);
      n_content_ = 0;
      parts.push_back({std::move(delta), std::exchange(held_, {})});
      continue;
    }
    DropOthers(n_rest);
    parts.push_back({std::move(delta), {}});
    if (kind == Kind::kCall) {
      ++n_calls_;
      was_ended_ = !request_->parallel_tool_calls;
    }
    if (was_ended_) {
      break;
    }
  }
  return parts;
}

std::optional<FinishReason> ApiChoice::engine_reason() const {
  return was_ended_ ? std::nullopt : reason_;
}

std::string_view ApiChoice::finish_reason() const {
  if (was_ended_) {
    return "tool_calls";
  }
  switch (*reason_) {
    case FinishReason::kEndToken:
    case FinishReason::kStopString:
      return n_calls_ > 0 ? "tool_calls" : "stop";
    case FinishReason::kMaxTokens:
    case FinishReason::kContext:
    case FinishReason::kRepetition:
    case FinishReason::kCancelled:
      return "length";
    case FinishReason::kQueueTimeout:
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

RequestStats ApiChoice::stats() const {
  RequestStats stats = stats_;
  if (was_ended_) {
    stats.n_generated = n_tokens_;
    stats.n_thought = std::min(stats.n_thought, n_tokens_);
    stats.n_accepted = std::min(stats.n_accepted, n_tokens_);
  }
  return stats;
}

}  // namespace facet
