// SPDX-License-Identifier: Apache-2.0
#include "media/helper_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace facet {
namespace {

constexpr size_t kMostComplaint = 4096;
constexpr size_t kMostComplaintShown = 200;

Error SystemError(std::string_view call) {
  return Refuse("", fmt::format("{}: {}", call, std::strerror(errno)));
}

/// The same file under a number above those of standard streams, so that setting these up for a
/// child cannot close it. Closed on exec.
Result<Descriptor> AboveStandard(Descriptor file) {
  if (!file.is_open()) {
    return SystemError("a pipe or memory file");
  }
  if (file.get() > STDERR_FILENO) {
    return file;
  }
  Descriptor above(::fcntl(file.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return above.is_open() ? Result<Descriptor>(std::move(above)) : SystemError("fcntl");
}

Status WriteAll(const Descriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n_written = ::write(file.get(), bytes.data(), bytes.size());
    if (n_written < 0 && errno != EINTR) {
      return SystemError("write to a memory file");
    }
    bytes = bytes.subspan(static_cast<size_t>(std::max<ssize_t>(n_written, 0)));
  }
  return {};
}

/// Sealed: a reader that maps it can count on its length.
Result<Descriptor> MemoryFile(std::span<const std::byte> head, std::span<const std::byte> body) {
  FACET_ASSIGN(Descriptor file,
               AboveStandard(Descriptor(::memfd_create("job", MFD_CLOEXEC | MFD_ALLOW_SEALING))));
  FACET_RETURN_IF_ERROR(WriteAll(file, head));
  FACET_RETURN_IF_ERROR(WriteAll(file, body));
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (::lseek(file.get(), 0, SEEK_SET) != 0 || ::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return SystemError("sealing a memory file");
  }
  return file;
}

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return SystemError("pipe2");
  }
  Pipe pipe{.read = Descriptor(ends[0]), .write = Descriptor(ends[1])};
  FACET_ASSIGN(pipe.read, AboveStandard(std::move(pipe.read)));
  FACET_ASSIGN(pipe.write, AboveStandard(std::move(pipe.write)));
  return pipe;
}

/// What posix_spawn is told, freed with its owner.
struct SpawnPlan {
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  /// Own process group: an interrupt at the terminal is for us to handle, and a kill reaches what
  /// the program may have started.
  void ResetSignals() {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

/// The first line, printable ASCII only: it comes from a program that reads hostile files.
std::string FirstLine(std::string_view text) {
  text = text.substr(0, std::min(text.find('\n'), kMostComplaintShown));
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

std::string EndText(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return name != nullptr ? fmt::format("signal {}", name)
                           : fmt::format("signal {}", WTERMSIG(status));
  }
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = other.Release();
  }
  return *this;
}

Descriptor::~Descriptor() { Close(); }

void Descriptor::Close() {
  if (const int fd = Release(); fd >= 0) {
    ::close(fd);
  }
}

int Descriptor::Release() { return std::exchange(fd_, -1); }

HelperProcess::HelperProcess(int timeout_s)
    : timeout_s_(timeout_s), deadline_(Clock::now() + std::chrono::seconds(timeout_s)) {}

HelperProcess::~HelperProcess() { Reap(); }

Result<std::unique_ptr<HelperProcess>> HelperProcess::Start(const std::string& program,
                                                            std::span<const std::byte> head,
                                                            std::span<const std::byte> body,
                                                            int timeout_s) {
  std::unique_ptr<HelperProcess> process(new HelperProcess(timeout_s));
  FACET_ASSIGN(const Descriptor input, MemoryFile(head, body));
  FACET_RETURN_IF_ERROR(process->Spawn(program, input));
  return process;
}

Status HelperProcess::Spawn(const std::string& program, const Descriptor& input) {
  FACET_ASSIGN(Pipe output, MakePipe());
  FACET_ASSIGN(Pipe errors, MakePipe());
  SpawnPlan plan;
  plan.ResetSignals();
  ::posix_spawn_file_actions_adddup2(&plan.actions, input.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, output.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&plan.actions, errors.write.get(), STDERR_FILENO);
  // Not all code of others opens its files so that they are closed on exec.
  ::posix_spawn_file_actions_addclosefrom_np(&plan.actions, STDERR_FILENO + 1);
  std::array<char*, 2> arguments = {const_cast<char*>(program.c_str()), nullptr};
  std::array<char*, 1> environment = {nullptr};
  const int failure = ::posix_spawn(&pid_, program.c_str(), &plan.actions, &plan.attributes,
                                    arguments.data(), environment.data());
  if (failure != 0) {
    pid_ = -1;
    return Refuse(program, fmt::format("cannot be started: {}", std::strerror(failure)),
                  "the program facet-media");
  }
  output_ = std::move(output.read);
  errors_ = std::move(errors.read);
  return {};
}

Status HelperProcess::Read(std::span<std::byte> out) {
  while (!out.empty()) {
    FACET_RETURN_IF_ERROR(Wait());
    if (!has_output_) {
      continue;
    }
    const ssize_t n_read = ::read(output_.get(), out.data(), out.size());
    if (n_read == 0) {
      output_.Close();
      return Ended();
    }
    if (n_read < 0 && errno != EINTR) {
      return SystemError("read from facet-media");
    }
    out = out.subspan(static_cast<size_t>(std::max<ssize_t>(n_read, 0)));
  }
  return {};
}

Status HelperProcess::Wait() {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
  if (left.count() <= 0) {
    return Refuse("", fmt::format("not decoded within {} s", timeout_s_),
                  "a file that takes less time");
  }
  // poll passes over negative descriptors: those of ends that are closed.
  std::array<pollfd, 2> ends = {{{.fd = output_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = errors_.get(), .events = POLLIN, .revents = 0}}};
  if (::poll(ends.data(), ends.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
    return SystemError("poll");
  }
  has_output_ = ends[0].revents != 0;
  if (ends[1].revents != 0) {
    TakeComplaint();
  }
  return {};
}

void HelperProcess::TakeComplaint() {
  std::array<char, 4096> part;
  const ssize_t n_read = ::read(errors_.get(), part.data(), part.size());
  if (n_read == 0 || (n_read < 0 && errno != EINTR)) {
    errors_.Close();
    return;
  }
  const size_t room = kMostComplaint - complaint_.size();
  complaint_.append(part.data(), std::min(room, static_cast<size_t>(std::max<ssize_t>(n_read, 0))));
}

Error HelperProcess::Ended() {
  while (errors_.is_open()) {
    if (const Status status = Wait(); !status.ok()) {
      return status.error();
    }
  }
  // Its end of the pipes is closed by the end of the process, whose exit status stands by then: the
  // kill in Reap does not change it.
  const std::string line = FirstLine(complaint_);
  return Refuse(
      "",
      fmt::format("the decoder stopped ({}){}{}", EndText(Reap()), line.empty() ? "" : ": ", line),
      "a file that it can decode");
}

int HelperProcess::Reap() {
  int status = 0;
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
  return status;
}

}  // namespace facet
