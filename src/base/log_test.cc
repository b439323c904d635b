// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace facet {
namespace {

/// Collects warnings while it lives.
class Collector {
 public:
  Collector() {
    former_ = SetWarningSink([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~Collector() { SetWarningSink(std::move(former_)); }
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  LogSink former_;
  std::vector<std::string> lines_;
};

TEST(LogTest, PrintsToStderrUnlessToldOtherwise) {
  ::testing::internal::CaptureStderr();
  Warn("the file is old");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: the file is old\n");
}

TEST(LogTest, TheSinkCanBeReplacedAndPutBack) {
  {
    const Collector collector;
    Warn("one");
    Warn("two");
    EXPECT_EQ(collector.lines(), (std::vector<std::string>{"one", "two"}));
  }
  ::testing::internal::CaptureStderr();
  Warn("three");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: three\n");
}

TEST(LogTest, LinesOfSeveralThreadsAllArrive) {
  const Collector collector;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) {
        Warn("line");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(collector.lines(), std::vector<std::string>(400, "line"));
}

}  // namespace
}  // namespace facet
