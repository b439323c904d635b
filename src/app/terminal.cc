// SPDX-License-Identifier: Apache-2.0
#include "app/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace facet {
namespace {

constexpr int kExitInterrupted = 130;

// Shared with the signal handlers; written only by the main thread outside of them.
termios g_saved_mode;
volatile std::sig_atomic_t g_has_saved_mode = 0;
volatile std::sig_atomic_t g_n_guards = 0;
volatile std::sig_atomic_t g_is_interrupted = 0;
volatile std::sig_atomic_t g_is_resized = 0;
// Paths of files, each with an end mark, and an empty one after the last; null: none. The handler
// gets its memory from RemoveOnInterrupt, which has no other use for it.
const char* volatile g_remove_paths = nullptr;

/// Only calls that are safe within a signal handler.
void PutRight() {
  if (g_has_saved_mode != 0) {
    constexpr std::string_view kNoBracketedPaste = "\x1b[?2004l\r\n";
    [[maybe_unused]] const auto written =
        ::write(STDOUT_FILENO, kNoBracketedPaste.data(), kNoBracketedPaste.size());
    ::tcsetattr(STDIN_FILENO, TCSANOW, &g_saved_mode);
  }
  for (const char* path = g_remove_paths; path != nullptr && *path != '\0';
       path += std::strlen(path) + 1) {
    ::unlink(path);
  }
}

void OnInterrupt(int /*signal*/) {
  if (g_n_guards > 0 && g_is_interrupted == 0) {
    g_is_interrupted = 1;
    return;
  }
  PutRight();
  ::_exit(kExitInterrupted);
}

void OnEnd(int signal) {
  PutRight();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void OnResize(int /*signal*/) { g_is_resized = 1; }

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Status WriteAll(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return Refuse(name, fmt::format("cannot write: {}", std::strerror(errno)));
    }
    bytes.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return {};
}

void Note(std::string_view text) {
  [[maybe_unused]] const Status status =
      WriteAll(STDERR_FILENO, std::string(text) + "\n", "standard error");
}

bool IsTerminal(int fd) { return ::isatty(fd) != 0; }

TerminalSize SizeOfTerminal(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

bool IsDumbTerminal() {
  const char* term = std::getenv("TERM");
  return term == nullptr || *term == '\0' || std::strcmp(term, "dumb") == 0;
}

Style StyleOf(int fd, bool no_color) {
  const char* forbidden = std::getenv("NO_COLOR");
  if (no_color || (forbidden != nullptr && *forbidden != '\0') || !IsTerminal(fd) ||
      IsDumbTerminal()) {
    return {};
  }
  return {"\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m"};
}

TerminalMode::TerminalMode(Kind kind) {
  FACET_CHECK(g_has_saved_mode == 0);
  if (::tcgetattr(STDIN_FILENO, &g_saved_mode) == 0) {
    g_has_saved_mode = 1;
    Set(kind);
  }
}

void TerminalMode::Set(Kind kind) {
  if (g_has_saved_mode == 0) {
    return;
  }
  termios mode = g_saved_mode;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  if (kind == Kind::kEdit) {
    mode.c_lflag &= ~static_cast<tcflag_t>(ISIG | IEXTEN);
  }
  mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IXON);
  mode.c_cc[VSUSP] = _POSIX_VDISABLE;
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
}

TerminalMode::~TerminalMode() {
  if (g_has_saved_mode != 0) {
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &g_saved_mode);
    g_has_saved_mode = 0;
  }
}

void InstallSignalHandlers() {
  Handle(SIGINT, OnInterrupt);
  Handle(SIGTERM, OnEnd);
  Handle(SIGHUP, OnEnd);
  Handle(SIGWINCH, OnResize);
  Handle(SIGPIPE, SIG_DFL);
  Handle(SIGXFSZ, SIG_IGN);  // a limit on file sizes is told like a full disk, by the write
}

InterruptGuard::InterruptGuard() {
  g_is_interrupted = 0;
  g_n_guards = g_n_guards + 1;
}

InterruptGuard::~InterruptGuard() {
  g_n_guards = g_n_guards - 1;
  g_is_interrupted = 0;
}

bool InterruptGuard::is_interrupted() const { return g_is_interrupted != 0; }

void RemoveOnInterrupt(std::string_view path) {
  RemoveOnInterrupt(std::vector<std::string>{std::string(path)});
}

void RemoveOnInterrupt(const std::vector<std::string>& paths) {
  static std::string joined;
  g_remove_paths = nullptr;  // until what it points to is whole again
  joined.clear();
  for (const std::string& path : paths) {
    joined.append(path).append(path.empty() ? 0 : 1, '\0');
  }
  g_remove_paths = joined.empty() ? nullptr : joined.c_str();
}

bool TakeResize() {
  const bool is_resized = g_is_resized != 0;
  g_is_resized = 0;
  return is_resized;
}

}  // namespace facet
