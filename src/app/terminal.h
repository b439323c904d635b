// SPDX-License-Identifier: Apache-2.0
// The terminal and the process's standard streams: sizes, modes, colours, and the signals that
// concern them. Keeps the promise that the terminal is as it was when the program ends, however it
// ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace facet {

/// Writes all bytes to a file descriptor; `name` is what the error calls it.
Status WriteAll(int fd, std::string_view bytes, const std::string& name);

/// A line for people on standard error: "TEXT\n". What cannot be written there is dropped.
void Note(std::string_view text);

bool IsTerminal(int fd);

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};
TerminalSize SizeOfTerminal(int fd);

/// Sequences for a terminal with colours; all empty for one without, and for files.
struct Style {
  std::string_view bold;
  std::string_view dim;
  std::string_view red;
  std::string_view reset;
};
/// Colours are wanted when `fd` is a terminal, NO_COLOR and --no-color are not set and TERM is not
/// "dumb".
Style StyleOf(int fd, bool no_color);
bool IsDumbTerminal();

/// How standard input behaves; the terminal is as it was before when this is destroyed. Only one at
/// a time.
class TerminalMode {
 public:
  enum class Kind {
    kEdit,   ///< every key comes at once and unchanged, also Ctrl-C
    kReply,  ///< nothing is echoed; Ctrl-C is a signal; typed keys wait for the next kEdit
  };
  explicit TerminalMode(Kind kind);
  ~TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;
  /// Keys that were typed before the change stay, and as they were typed.
  void Set(Kind kind);
};

/// Call once, first: Ctrl-C ends the program with 130 unless an InterruptGuard lives; SIGTERM and
/// SIGHUP end it after the terminal has been put right; a closed pipe ends it silently.
void InstallSignalHandlers();

/// While it lives, the first Ctrl-C is noted instead of ending the program (the second one ends
/// it). Guards may be nested: each begins and ends with nothing noted.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  [[nodiscard]] bool is_interrupted() const;
};

/// Files that are removed when a signal ends the program, such as half-written ones, in place of
/// those of the last call; an empty path stands for none.
void RemoveOnInterrupt(std::string_view path);
void RemoveOnInterrupt(const std::vector<std::string>& paths);

/// Whether the terminal's size has changed since the last call.
bool TakeResize();

}  // namespace facet
