// SPDX-License-Identifier: Apache-2.0
#include "app/reply_stream.h"

#include <chrono>
#include <string>
#include <utility>

namespace facet {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(20);

std::vector<ReplyDelta> Content(std::string text) {
  if (text.empty()) {
    return {};
  }
  return {{ReplyDelta::Kind::kContent, std::move(text)}};
}

}  // namespace

void EventQueue::Push(const Event& event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
  }
  has_events_.notify_one();
}

std::optional<Event> EventQueue::Pop() {
  std::unique_lock lock(mutex_);
  if (!has_events_.wait_for(lock, kPatience, [this] { return !events_.empty(); })) {
    return std::nullopt;
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

ReplyReader::ReplyReader(const Vocab& vocab, std::span<const int> prompt, const Json& tools,
                         bool is_raw)
    : splitter_(vocab, tools, !is_raw && EndsInOpenThought(vocab, prompt)), is_raw_(is_raw) {}

std::vector<ReplyDelta> ReplyReader::Push(const Event& event) {
  return is_raw_ ? Content(characters_.Push(event.bytes))
                 : splitter_.Push(event.token, event.bytes);
}

std::vector<ReplyDelta> ReplyReader::Finish() {
  return is_raw_ ? Content(characters_.Flush()) : splitter_.Finish();
}

}  // namespace facet
