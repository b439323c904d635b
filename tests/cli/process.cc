// SPDX-License-Identifier: Apache-2.0
#include "cli/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

constexpr int kPatienceMs = 60000;

/// In the child: replaces it by the program.
[[noreturn]] void Execute(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment) {
  ::clearenv();
  ::setenv("PATH", "/usr/bin:/bin", 1);
  ::setenv("TERM", "xterm", 1);
  for (const std::string& variable : environment) {
    ::putenv(const_cast<char*>(variable.c_str()));
  }
  std::vector<char*> words = {const_cast<char*>("facet")};
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  ::execv(FACET_PROGRAM, words.data());
  std::perror(FACET_PROGRAM);
  ::_exit(127);
}

std::vector<std::string> WithHome(std::vector<std::string> environment) {
  for (const std::string& variable : environment) {
    if (variable.starts_with("HOME=")) {
      return environment;
    }
  }
  environment.push_back("HOME=" + MakeTempDir());
  return environment;
}

int ExitCodeOf(pid_t child) {
  int status = 0;
  for (int waited_ms = 0; ::waitpid(child, &status, WNOHANG) == 0; waited_ms += 5) {
    if (waited_ms > kPatienceMs) {
      ::kill(child, SIGKILL);
      ADD_FAILURE() << "the program does not end";
    }
    ::usleep(5000);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Drops escape sequences and carriage returns, so that only what a person would read is left.
std::string Readable(std::string_view raw) {
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '\x1b' && i + 1 < raw.size() && raw[i + 1] == '[') {
      i += 2;
      while (i < raw.size() && (raw[i] < 0x40 || raw[i] > 0x7E)) {
        ++i;
      }
    } else if (raw[i] != '\r' && raw[i] != '\x1b') {
      text += raw[i];
    }
  }
  return text;
}

}  // namespace

Finished RunFacet(const std::vector<std::string>& arguments, const RunOptions& options) {
  const std::string folder = MakeTempDir();
  EXPECT_TRUE(WriteFile(folder + "/in", options.input).ok());
  const auto environment = WithHome(options.environment);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open((folder + "/in").c_str(), O_RDONLY), STDIN_FILENO);
    ::dup2(::open((folder + "/out").c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    ::dup2(::open((folder + "/err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    Execute(arguments, environment);
  }
  Finished finished;
  finished.exit_code = ExitCodeOf(child);
  finished.out = ReadOrDie(folder + "/out");
  finished.err = ReadOrDie(folder + "/err");
  return finished;
}

TerminalProcess::TerminalProcess(const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& environment) {
  const auto variables = WithHome(environment);
  winsize size{};
  size.ws_col = 80;
  size.ws_row = 24;
  terminal_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal_ < 0 || ::grantpt(terminal_) != 0 || ::unlockpt(terminal_) != 0) {
    std::perror("posix_openpt");
    std::abort();
  }
  keeper_ = ::open(::ptsname(terminal_), O_RDWR | O_NOCTTY);
  ::ioctl(keeper_, TIOCSWINSZ, &size);
  child_ = ::fork();
  if (child_ == 0) {
    ::setsid();
    ::ioctl(keeper_, TIOCSCTTY, 0);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      ::dup2(keeper_, fd);
    }
    Execute(arguments, variables);
  }
}

TerminalProcess::~TerminalProcess() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(terminal_);
  ::close(keeper_);
}

void TerminalProcess::Type(std::string_view bytes) {
  ASSERT_EQ(::write(terminal_, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

bool TerminalProcess::ReadMore(int timeout_ms) {
  pollfd input{terminal_, POLLIN, 0};
  if (::poll(&input, 1, timeout_ms) <= 0) {
    return false;
  }
  char buffer[4096];
  const ssize_t got = ::read(terminal_, buffer, sizeof buffer);
  if (got <= 0) {
    return false;
  }
  raw_.append(buffer, static_cast<size_t>(got));
  seen_ = Readable(raw_);
  return true;
}

std::string TerminalProcess::ReadUntil(std::string_view text) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs / 2);
  size_t found = std::string::npos;
  while ((found = seen_.find(text, taken_)) == std::string::npos) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "never came: \"" << text << "\" in \"" << seen_.substr(taken_) << "\"";
      return "";
    }
    ReadMore(100);
  }
  const std::string part = seen_.substr(taken_, found + text.size() - taken_);
  taken_ = found + text.size();
  return part;
}

void TerminalProcess::Signal(int signal) const { ::kill(child_, signal); }

void TerminalProcess::Resize(int columns, int rows) const {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  ::ioctl(terminal_, TIOCSWINSZ, &size);
}

int TerminalProcess::Wait() {
  int status = 0;
  for (int waited_ms = 0; ::waitpid(child_, &status, WNOHANG) == 0; waited_ms += 5) {
    if (waited_ms > kPatienceMs) {
      ADD_FAILURE() << "the program does not end; last: " << seen_;
      ::kill(child_, SIGKILL);
    }
    ReadMore(5);
  }
  while (ReadMore(0)) {
  }
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool TerminalProcess::is_cooked() const {
  termios mode{};
  ::tcgetattr(keeper_, &mode);
  return (mode.c_lflag & (ICANON | ECHO | ISIG)) == (ICANON | ECHO | ISIG);
}

}  // namespace facet::testing
