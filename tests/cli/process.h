// SPDX-License-Identifier: Apache-2.0
// Runs the program as a user does: with pipes, or at a terminal.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace facet::testing {

struct Finished {
  int exit_code = -1;  ///< -SIGNAL when a signal ended it
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string input;  ///< given on standard input
  std::vector<std::string>
      environment;  ///< "NAME=VALUE"; HOME is an empty folder unless it is set here
};

/// Runs `facet ARGUMENTS` to its end (a minute at most, else the test aborts).
Finished RunFacet(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// The program at a terminal of 80 columns and 24 rows.
class TerminalProcess {
 public:
  explicit TerminalProcess(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment);
  ~TerminalProcess();
  TerminalProcess(const TerminalProcess&) = delete;
  TerminalProcess& operator=(const TerminalProcess&) = delete;

  void Type(std::string_view bytes);
  /// Reads until `text` has been seen after what was returned before; returns everything up to its
  /// end, without escape sequences. Fails the test after 30 seconds.
  std::string ReadUntil(std::string_view text);
  void Signal(int signal) const;
  void Resize(int columns, int rows) const;
  /// Reads to the end and returns the exit code.
  int Wait();
  /// Everything that came, with escape sequences.
  [[nodiscard]] const std::string& raw() const { return raw_; }
  /// Whether the terminal echoes and edits lines: as it was before the program.
  [[nodiscard]] bool is_cooked() const;

 private:
  bool ReadMore(int timeout_ms);

  pid_t child_ = -1;
  int terminal_ = -1;
  int keeper_ = -1;  // the other end, so that the terminal outlives the program
  std::string raw_;
  std::string seen_;  // without escape sequences
  size_t taken_ = 0;  // of seen_
};

}  // namespace facet::testing
