// SPDX-License-Identifier: Apache-2.0
#include "server/log_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace facet {

/// Owned by the thread too, which may be left behind while it writes.
struct LogThread::State {
  explicit State(Options given) : options(std::move(given)) {}

  void Run();
  /// The line about what was dropped since the last one. Under mutex.
  void AddNotice() {
    if (n_dropped > 0) {
      lines.push_back(std::to_string(std::exchange(n_dropped, 0)) +
                      " lines of the log were dropped: it was not read");
    }
  }

  const Options options;
  std::mutex mutex;  ///< guards all below
  std::condition_variable wakes;
  std::condition_variable ends;
  std::deque<std::string> lines;
  size_t n_dropped = 0;
  bool is_ending = false;
  bool has_ended = false;
};

void LogThread::State::Run() {
  std::unique_lock lock(mutex);
  while (true) {
    if (lines.empty()) {
      AddNotice();
    }
    if (!lines.empty()) {
      const std::string line = std::move(lines.front());
      lines.pop_front();
      lock.unlock();
      options.write(line);
      lock.lock();
    } else if (is_ending) {
      has_ended = true;
      ends.notify_all();
      return;
    } else {
      wakes.wait(lock);
    }
  }
}

LogThread::LogThread(Options options)
    : state_(std::make_shared<State>(std::move(options))),
      thread_([state = state_] { state->Run(); }) {}

LogThread::~LogThread() {
  std::unique_lock lock(state_->mutex);
  state_->is_ending = true;
  state_->wakes.notify_all();
  const bool has_ended =
      state_->ends.wait_for(lock, state_->options.patience, [this] { return state_->has_ended; });
  lock.unlock();
  if (has_ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void LogThread::Add(std::string_view line) {
  const std::lock_guard lock(state_->mutex);
  if (state_->lines.size() >= state_->options.max_lines) {
    ++state_->n_dropped;
    return;
  }
  state_->AddNotice();
  state_->lines.emplace_back(line);
  state_->wakes.notify_all();
}

}  // namespace facet
