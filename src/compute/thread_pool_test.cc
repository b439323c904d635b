// SPDX-License-Identifier: Apache-2.0
#include "compute/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace facet {
namespace {

TEST(ThreadPool, DoesEachPartOnce) {
  for (const int n_threads : {1, 2, 3, 5}) {
    ThreadPool pool(n_threads);
    EXPECT_EQ(pool.n_threads(), n_threads);
    for (const int n_parts : {0, 1, 2, 7, 100}) {
      std::vector<int> count(static_cast<size_t>(n_parts));
      pool.Run(n_parts, [&](int part) { ++count[static_cast<size_t>(part)]; });
      EXPECT_EQ(count, std::vector<int>(static_cast<size_t>(n_parts), 1));
    }
  }
}

TEST(ThreadPool, PartsOfOneThreadStayOnIt) {
  ThreadPool pool(3);
  std::vector<std::thread::id> ids(9);
  pool.Run(9, [&](int part) { ids[static_cast<size_t>(part)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  for (size_t part = 3; part < 9; ++part) {
    EXPECT_EQ(ids[part], ids[part % 3]);
  }
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 3u);
}

// What a job wrote is seen by the caller, and what the caller wrote by the next job, without
// further locks.
TEST(ThreadPool, HandsMemoryOverBothWays) {
  ThreadPool pool(3);
  std::vector<int64_t> values(64, 1);
  for (int round = 0; round < 2000; ++round) {
    pool.Run(64, [&](int part) { values[static_cast<size_t>(part)] += round; });
    values[static_cast<size_t>(round) % values.size()] += 1;
  }
  int64_t sum = 0;
  for (const int64_t value : values) {
    sum += value;
  }
  EXPECT_EQ(sum, 64 + 64 * (1999 * 2000 / 2) + 2000);
}

TEST(ThreadPool, WakesParkedThreads) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::vector<int> done(2);
    pool.Run(2, [&](int part) {
      std::this_thread::sleep_for(std::chrono::milliseconds(part == 1 ? 3 : 0));
      done[static_cast<size_t>(part)] = 1;
    });
    EXPECT_EQ(done, (std::vector<int>{1, 1}));
  }
}

double ProcessorSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(ThreadPool, UsesNoProcessorTimeWhenIdle) {
  ThreadPool pool(4);
  pool.Run(4, [](int) {});
  const double start_s = ProcessorSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(ProcessorSeconds() - start_s, 0.02);  // three that spin would use 0.6
}

// The caller, too, sleeps while it waits.
TEST(ThreadPool, WaitsForALongPartWithoutSpinning) {
  ThreadPool pool(2);
  const double start_s = ProcessorSeconds();
  pool.Run(2, [](int part) {
    if (part == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  });
  EXPECT_LT(ProcessorSeconds() - start_s, 0.02);
}

TEST(ThreadPool, RangesCoverEverythingWithBordersAtTheGrain) {
  for (const int n_threads : {1, 2, 3}) {
    ThreadPool pool(n_threads);
    for (const int64_t n : {0, 1, 7, 8, 9, 16, 17, 63, 1000}) {
      std::mutex mutex;
      std::vector<int> count(static_cast<size_t>(n));
      int n_ranges = 0;
      pool.RunRanges(n, 8, [&](int64_t begin, int64_t end) {
        const std::lock_guard<std::mutex> lock(mutex);
        ++n_ranges;
        EXPECT_EQ(begin % 8, 0);
        EXPECT_TRUE(end % 8 == 0 || end == n);
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) {
          ++count[static_cast<size_t>(i)];
        }
      });
      EXPECT_EQ(count, std::vector<int>(static_cast<size_t>(n), 1));
      EXPECT_EQ(n_ranges, std::min<int64_t>(n_threads, (n + 7) / 8));
    }
  }
}

}  // namespace
}  // namespace facet
