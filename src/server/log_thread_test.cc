// SPDX-License-Identifier: Apache-2.0
#include "server/log_thread.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace facet {
namespace {

/// A stream that takes nothing until it is opened.
class Gate {
 public:
  void Write(std::string_view line) {
    std::unique_lock lock(mutex_);
    is_writing_ = true;
    changes_.notify_all();
    changes_.wait(lock, [this] { return is_open_; });
    lines_.emplace_back(line);
    changes_.notify_all();
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changes_.notify_all();
  }
  void WaitForWriter() {
    std::unique_lock lock(mutex_);
    changes_.wait(lock, [this] { return is_writing_; });
  }
  std::vector<std::string> WaitForLines(size_t n) {
    std::unique_lock lock(mutex_);
    changes_.wait(lock, [&] { return lines_.size() >= n; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changes_;
  bool is_open_ = false;
  bool is_writing_ = false;
  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

TEST(LogThread, WritesAllBeforeItEnds) {
  Lines lines;
  {
    LogThread log({.write = [&](std::string_view line) { lines.emplace_back(line); }});
    for (const char* line : {"a", "b", "c"}) {
      log.Add(line);
    }
  }
  EXPECT_EQ(lines, (Lines{"a", "b", "c"}));
}

TEST(LogThread, DropsWhatIsTooMuchAndTellsIt) {
  Gate gate;
  LogThread log({.write = [&](std::string_view line) { gate.Write(line); }, .max_lines = 2});
  log.Add("a");
  gate.WaitForWriter();
  for (const char* line : {"b", "c", "dropped", "dropped"}) {
    log.Add(line);
  }
  gate.Open();
  EXPECT_EQ(gate.WaitForLines(4),
            (Lines{"a", "b", "c", "2 lines of the log were dropped: it was not read"}));
  log.Add("d");
  EXPECT_EQ(gate.WaitForLines(5).back(), "d");
}

TEST(LogThread, LeavesAWriterBehindThatIsStuck) {
  const auto gate = std::make_shared<Gate>();
  {
    LogThread log({.write = [gate](std::string_view line) { gate->Write(line); },
                   .patience = std::chrono::milliseconds(1)});
    log.Add("a");
    gate->WaitForWriter();
  }
  gate->Open();
  EXPECT_EQ(gate->WaitForLines(1), Lines{"a"});
}

}  // namespace
}  // namespace facet
