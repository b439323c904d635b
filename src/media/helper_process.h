// SPDX-License-Identifier: Apache-2.0
// One run of a helper program: what it is given lies in a sealed memory file that is its standard
// input, so nothing has to be fed to it while it answers. It inherits no other file, no environment
// and no signal settings, and it never outlives this object.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace facet {

/// A file descriptor, closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  void Close();

 private:
  int Release();

  int fd_;
};

/// Errors have no `where`, unless the program could not be started: then it is its path.
/// For one thread; several objects may be used by several threads.
class HelperProcess {
 public:
  /// `head` and `body` together are its standard input. `timeout_s` counts from here.
  static Result<std::unique_ptr<HelperProcess>> Start(const std::string& program,
                                                      std::span<const std::byte> head,
                                                      std::span<const std::byte> body,
                                                      int timeout_s);
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;
  /// Kills it and what it started, and reaps it.
  ~HelperProcess();

  /// Fills `out` from its standard output. Where that ends early, the error tells how the program
  /// ended and the first line that it wrote to standard error.
  Status Read(std::span<std::byte> out);

 private:
  using Clock = std::chrono::steady_clock;

  explicit HelperProcess(int timeout_s);
  Status Spawn(const std::string& program, const Descriptor& input);
  /// Waits until there is something to read, and takes what came on standard error.
  Status Wait();
  void TakeComplaint();
  /// The program closed its standard output: waits for the rest of standard error, then for its
  /// end.
  Error Ended();
  int Reap();

  pid_t pid_ = -1;
  Descriptor output_;
  Descriptor errors_;
  int timeout_s_;
  Clock::time_point deadline_;
  bool has_output_ = false;  // found by Wait
  std::string complaint_;    // the beginning of standard error
};

}  // namespace facet
