// SPDX-License-Identifier: Apache-2.0
// The server's threads: workers that take tasks from a bounded queue, and one that does tasks in
// order, so that what only it touches needs no locks. They are woken with the lock held: what a
// task does may let another thread destroy the queue as soon as it is unlocked.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace facet {

using Task = std::function<void()>;

/// Does tasks in any order, several at a time.
class WorkerPool {
 public:
  WorkerPool(int n_threads, size_t max_queue);
  /// Drops the tasks that no worker has begun and waits for the others.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False, and the task is dropped, when too many wait. From any thread.
  [[nodiscard]] bool Post(Task task);

 private:
  void Work();

  const size_t max_queue_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<Task> tasks_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

/// Does tasks one after the other, in the order of Post.
class SerialThread {
 public:
  using Clock = std::chrono::steady_clock;

  SerialThread();
  /// Does what was posted for now, drops what was for later.
  ~SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;

  /// From any thread, also its own.
  void Post(Task task);
  /// A task that is posted at `time`, unless it is withdrawn before.
  using Timer = std::pair<Clock::time_point, uint64_t>;
  Timer PostAt(Clock::time_point time, Task task);
  /// Drops the task, with all that it owns, if its time has not come.
  void Withdraw(const Timer& timer);

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<Task> tasks_;
  std::map<Timer, Task> later_;
  uint64_t n_timers_ = 0;
  bool is_ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace facet
