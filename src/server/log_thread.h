// SPDX-License-Identifier: Apache-2.0
// Lines for a stream that may block, such as a pipe whose reader sleeps: written by a thread of
// their own, so that nobody who logs waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace facet {

class LogThread {
 public:
  struct Options {
    /// Called on the thread, a line at a time; may block, and then outlives the LogThread.
    std::function<void(std::string_view line)> write;
    size_t max_lines = 1024;  ///< that wait; more are dropped, and how many is a line of its own
    std::chrono::milliseconds patience{1000};  ///< of the destructor
  };

  explicit LogThread(Options options);
  /// Waits for what was added to be written, as long as its patience is; the rest is lost.
  ~LogThread();
  LogThread(const LogThread&) = delete;
  LogThread& operator=(const LogThread&) = delete;

  /// From any thread; never blocks.
  void Add(std::string_view line);

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace facet
