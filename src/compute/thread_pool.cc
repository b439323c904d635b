// SPDX-License-Identifier: Apache-2.0
#include "compute/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"

namespace facet {
namespace {

// Longer than the gap between two products of one forward pass, far shorter than the gap between
// two requests.
constexpr std::chrono::microseconds kSpinTime{50};
constexpr int kPausesPerLook = 32;  // at the clock: a pause takes 10 to 140 cycles

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `value` differs from `old`: spins first, then sleeps.
template <typename T>
T WaitWhileEqual(const std::atomic<T>& value, T old) {
  using std::chrono::steady_clock;
  std::optional<steady_clock::time_point> start;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      const T now = value.load(std::memory_order_acquire);
      if (now != old) {
        return now;
      }
      Pause();
    }
    start = start.value_or(steady_clock::now());
  } while (steady_clock::now() - *start < kSpinTime);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

// One job at a time. The caller writes the job, then raises `generation`; each worker does its
// parts and lowers `n_busy`; the caller returns when that is 0, so the job may lie on its stack.
// A notification reaches the system only when somebody sleeps, so a job costs two trips of a cache
// line between processors, one for each way, about a microsecond.
struct ThreadPool::State {
  explicit State(int n) : n_threads(n) {}

  void DoParts(int thread) const {
    for (int part = thread; part < n_parts; part += n_threads) {
      (*job)(part);
    }
  }

  void Work(int thread) {
    uint32_t seen = 0;
    while (true) {
      seen = WaitWhileEqual(generation, seen);
      if (is_stopping.load(std::memory_order_relaxed)) {
        return;
      }
      DoParts(thread);
      if (n_busy.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        n_busy.notify_one();
      }
    }
  }

  // What a worker reads when it is called lies in the line that calls it.
  alignas(64) std::atomic<uint32_t> generation{0};
  std::atomic<bool> is_stopping{false};
  const int n_threads;
  int n_parts = 0;
  const std::function<void(int)>* job = nullptr;
  alignas(64) std::atomic<int> n_busy{0};
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(int n_threads) : state_(std::make_unique<State>(n_threads)) {
  FACET_CHECK(n_threads >= 1);
  for (int thread = 1; thread < n_threads; ++thread) {
    state_->workers.emplace_back([state = state_.get(), thread] { state->Work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  state_->is_stopping.store(true, std::memory_order_relaxed);
  state_->generation.fetch_add(1, std::memory_order_release);
  state_->generation.notify_all();
  for (std::thread& worker : state_->workers) {
    worker.join();
  }
}

int ThreadPool::n_threads() const { return state_->n_threads; }

void ThreadPool::Run(int n_parts, const std::function<void(int part)>& job) {
  State& state = *state_;
  if (state.n_threads == 1 || n_parts <= 1) {
    for (int part = 0; part < n_parts; ++part) {
      job(part);
    }
    return;
  }
  state.job = &job;
  state.n_parts = n_parts;
  state.n_busy.store(state.n_threads - 1, std::memory_order_relaxed);
  state.generation.fetch_add(1, std::memory_order_release);
  state.generation.notify_all();
  state.DoParts(0);
  int busy = state.n_busy.load(std::memory_order_acquire);
  while (busy != 0) {
    busy = WaitWhileEqual(state.n_busy, busy);
  }
}

void ThreadPool::RunRanges(int64_t n, int64_t grain,
                           const std::function<void(int64_t begin, int64_t end)>& job) {
  FACET_CHECK(grain >= 1);
  const int64_t n_grains = (n + grain - 1) / grain;
  const int64_t n_ranges = std::min<int64_t>(n_grains, state_->n_threads);
  Run(static_cast<int>(n_ranges), [&](int part) {
    const int64_t begin = n_grains * part / n_ranges * grain;
    const int64_t end = std::min(n, n_grains * (part + 1) / n_ranges * grain);
    job(begin, end);
  });
}

}  // namespace facet
