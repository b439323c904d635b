// SPDX-License-Identifier: Apache-2.0
// Replies on their way from the engine's thread to the one that shows or writes them: the queue
// between the two, and the events of a reply as content, thoughts and calls.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/utf8.h"
#include "chat/reply.h"
#include "engine/request.h"
#include "text/vocab.h"

namespace facet {

/// Events of any number of requests in the order in which they were told. Push and Pop may be
/// called by different threads.
class EventQueue {
 public:
  void Push(const Event& event);
  /// The oldest event; nothing when none comes within 20 ms, so that the caller can look for
  /// Ctrl-C.
  std::optional<Event> Pop();

 private:
  std::mutex mutex_;
  std::condition_variable has_events_;
  std::deque<Event> events_;
};

/// Splits one reply. Not for several threads.
class ReplyReader {
 public:
  /// `prompt` is what the reply continues; the vocabulary must outlive the reader. `tools` are what
  /// the model may call: an array, or null. `is_raw`: all tokens are content.
  ReplyReader(const Vocab& vocab, std::span<const int> prompt, const Json& tools, bool is_raw);

  /// What a kToken event adds; no text is empty.
  std::vector<ReplyDelta> Push(const Event& event);
  /// The end of the reply: what was held back.
  std::vector<ReplyDelta> Finish();

 private:
  ReplySplitter splitter_;
  Utf8Stream characters_;
  bool is_raw_;
};

}  // namespace facet
