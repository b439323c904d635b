// SPDX-License-Identifier: Apache-2.0
// Threads for one forward pass: fixed partitions, no queue, no work stealing. Workers spin for a
// short while after a job and then park, so an idle engine uses no processor time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace facet {

class ThreadPool {
 public:
  /// `n_threads` >= 1 counts the calling thread: 1 starts none.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int n_threads() const;

  /// Calls job(part) once for each part in [0, n_parts), part p on thread p % n_threads, and
  /// returns when all are done. Which thread does a part never changes a result. Called by one
  /// thread at a time; `job` must not call Run.
  void Run(int n_parts, const std::function<void(int part)>& job);

  /// Splits [0, n) into contiguous ranges of at least `grain` (the last may be smaller) and calls
  /// job(begin, end) for each; borders are multiples of `grain`.
  void RunRanges(int64_t n, int64_t grain,
                 const std::function<void(int64_t begin, int64_t end)>& job);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace facet
