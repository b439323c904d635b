// SPDX-License-Identifier: Apache-2.0
#include "server/threads.h"

#include <utility>

namespace facet {

WorkerPool::WorkerPool(int n_threads, size_t max_queue) : max_queue_(max_queue) {
  threads_.reserve(static_cast<size_t>(n_threads));
  for (int n = 0; n < n_threads; ++n) {
    threads_.emplace_back([this] { Work(); });
  }
}

WorkerPool::~WorkerPool() {
  std::deque<Task> dropped;  // destroyed without the lock: tasks own what they answer
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    dropped.swap(tasks_);
    wakes_.notify_all();
  }
  dropped.clear();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

bool WorkerPool::Post(Task task) {
  const std::lock_guard lock(mutex_);
  if (is_ending_ || tasks_.size() >= max_queue_) {
    return false;
  }
  tasks_.push_back(std::move(task));
  wakes_.notify_one();
  return true;
}

void WorkerPool::Work() {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      wakes_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
      if (is_ending_) {
        return;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

SerialThread::SerialThread() : thread_([this] { Work(); }) {}

SerialThread::~SerialThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    wakes_.notify_all();
  }
  thread_.join();
}

void SerialThread::Post(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  wakes_.notify_one();
}

SerialThread::Timer SerialThread::PostAt(Clock::time_point time, Task task) {
  const std::lock_guard lock(mutex_);
  const Timer timer(time, n_timers_++);
  later_.emplace(timer, std::move(task));
  wakes_.notify_one();
  return timer;
}

void SerialThread::Withdraw(const Timer& timer) {
  std::map<Timer, Task>::node_type withdrawn;  // destroyed without the lock, as all tasks
  const std::lock_guard lock(mutex_);
  withdrawn = later_.extract(timer);
}

void SerialThread::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    while (!later_.empty() && later_.begin()->first.first <= Clock::now()) {
      tasks_.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    if (!tasks_.empty()) {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // what it owns goes without the lock too
      lock.lock();
    } else if (is_ending_) {
      return;
    } else if (later_.empty()) {
      wakes_.wait(lock);
    } else {
      const Clock::time_point next =
          later_.begin()->first.first;  // a copy: others may change the map
      wakes_.wait_until(lock, next);
    }
  }
}

}  // namespace facet
