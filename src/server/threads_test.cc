// SPDX-License-Identifier: Apache-2.0
#include "server/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

namespace facet {
namespace {

TEST(WorkerPool, DoesTasksAndRefusesTooMany) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  std::atomic<int> n_done = 0;
  std::promise<void> begun;
  {
    WorkerPool pool(1, 2);
    EXPECT_TRUE(pool.Post([&] {
      begun.set_value();
      open.wait();
      ++n_done;
    }));
    begun.get_future().wait();
    EXPECT_TRUE(pool.Post([&] { ++n_done; }));
    std::promise<void> last;
    EXPECT_TRUE(pool.Post([&] { last.set_value(); }));
    EXPECT_FALSE(pool.Post([&] { ++n_done; }));
    gate.set_value();
    last.get_future().wait();
  }
  EXPECT_EQ(n_done, 2);
}

TEST(WorkerPool, DropsWhatWaitsAtTheEnd) {
  std::promise<void> gate;
  std::promise<void> begun;
  const auto token = std::make_shared<int>(0);
  auto pool = std::make_unique<WorkerPool>(1, 8);
  EXPECT_TRUE(pool->Post([&, token] {
    begun.set_value();
    gate.get_future().wait();
  }));
  begun.get_future().wait();
  for (int n = 0; n < 3; ++n) {
    EXPECT_TRUE(pool->Post([token] { ADD_FAILURE() << "not dropped"; }));
  }
  std::thread ending([&] { pool.reset(); });
  while (token.use_count() > 2) {  // the test's own and the running task's
    std::this_thread::yield();
  }
  gate.set_value();
  ending.join();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(SerialThread, KeepsTheOrder) {
  std::vector<int> seen;
  {
    SerialThread thread;
    for (int n = 0; n < 1000; ++n) {
      thread.Post([&seen, n] { seen.push_back(n); });
    }
    thread.Post([&] { thread.Post([&seen] { seen.push_back(1000); }); });
  }
  ASSERT_EQ(seen.size(), 1001U);
  for (int n = 0; n <= 1000; ++n) {
    EXPECT_EQ(seen[static_cast<size_t>(n)], n);
  }
}

TEST(SerialThread, DoesThingsAtTheirTime) {
  using Clock = SerialThread::Clock;
  const Clock::time_point start = Clock::now();
  std::promise<Clock::time_point> early;
  std::promise<Clock::time_point> late;
  SerialThread thread;
  thread.PostAt(start + std::chrono::milliseconds(30), [&] { late.set_value(Clock::now()); });
  thread.PostAt(start + std::chrono::milliseconds(10), [&] { early.set_value(Clock::now()); });
  thread.PostAt(start + std::chrono::hours(1), [] { ADD_FAILURE() << "dropped at the end"; });
  const Clock::time_point first = early.get_future().get();
  const Clock::time_point second = late.get_future().get();
  EXPECT_GE(first, start + std::chrono::milliseconds(10));
  EXPECT_GE(second, start + std::chrono::milliseconds(30));
  EXPECT_LE(first, second);
}

TEST(SerialThread, KeepsNothingOfWhatIsWithdrawn) {
  const auto token = std::make_shared<int>(0);
  SerialThread thread;
  const auto time = SerialThread::Clock::now() + std::chrono::hours(1);
  const auto first = thread.PostAt(time, [token] { ADD_FAILURE() << "withdrawn"; });
  const auto second = thread.PostAt(time, [token] { ADD_FAILURE() << "withdrawn"; });
  EXPECT_EQ(token.use_count(), 3);
  thread.Withdraw(first);
  thread.Withdraw(first);
  EXPECT_EQ(token.use_count(), 2);
  thread.Withdraw(second);
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace facet
