// SPDX-License-Identifier: Apache-2.0
// Work that takes time, shown on standard error: only on a terminal, only after half a second, gone
// when it is done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace facet {

double SecondsSince(std::chrono::steady_clock::time_point start);

/// "3.2 GB", decimal, three digits.
std::string ShownBytes(double n_bytes);

/// "45%  1.2 GB of 2.6 GB  310 MB/s  4 s left"
std::string ShownProgress(uint64_t done, uint64_t total, double elapsed_s);

/// Shows a turning sign and the seconds beside `what` until it is destroyed.
class Spinner {
 public:
  explicit Spinner(std::string what);
  ~Spinner();
  Spinner(const Spinner&) = delete;
  Spinner& operator=(const Spinner&) = delete;

 private:
  void Turn();

  std::string what_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  bool is_done_ = false;
  std::thread thread_;
};

/// A line with share, rate and time left, redrawn at most ten times a second. Update may be called
/// from any one thread.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void Update(uint64_t done, uint64_t total);
  /// The same for work that is not counted in bytes: `text` follows what is done.
  void Show(std::string_view text);
  /// Takes the line away until the next call, so that a note can be written.
  void Erase();

 private:
  [[nodiscard]] bool IsDue();

  std::string what_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
  bool is_shown_ = false;
  bool is_terminal_;
};

}  // namespace facet
