// SPDX-License-Identifier: Apache-2.0
#include "helper/sandbox.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>

namespace facet::helper {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanBeConfined = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kCanBeConfined = false;
#else
constexpr bool kCanBeConfined = true;
#endif
#else
constexpr bool kCanBeConfined = true;
#endif

Error Failed(const char* what, int error) {
  return Refuse("", std::string("no sandbox: ") + what + ": " + std::strerror(error),
                "a kernel with seccomp");
}

Status Limit(int resource, uint64_t most) {
  const rlimit limit = {.rlim_cur = most, .rlim_max = most};
  // glibc has an enum of its own for the first argument in C++.
  if (::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) {
    return Failed("setrlimit", errno);
  }
  return {};
}

Status SetLimits(const SandboxLimits& limits) {
  FACET_RETURN_IF_ERROR(Limit(RLIMIT_AS, static_cast<uint64_t>(limits.max_memory_bytes)));
  FACET_RETURN_IF_ERROR(Limit(RLIMIT_CPU, static_cast<uint64_t>(limits.max_cpu_s)));
  FACET_RETURN_IF_ERROR(Limit(RLIMIT_CORE, 0));
  FACET_RETURN_IF_ERROR(Limit(RLIMIT_FSIZE, 0));
  // Those that are open stay; no other can be opened.
  return Limit(RLIMIT_NOFILE, 0);
}

Status SetProcessFlags() {
  // Its answer has no reader once facet is gone; the thread that waits for it is the parent.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::prctl(PR_SET_DUMPABLE, 0) != 0 ||
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Failed("prctl", errno);
  }
  return {};
}

struct ReleaseFilter {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, ReleaseFilter>;

/// 0 or an error number below 0, as libseccomp has them.
int AllowCalls(void* filter) {
  static constexpr std::array kCalls = {SCMP_SYS(read),
                                        SCMP_SYS(write),
                                        SCMP_SYS(munmap),
                                        SCMP_SYS(mremap),
                                        SCMP_SYS(brk),
                                        SCMP_SYS(madvise),
                                        SCMP_SYS(futex),
                                        SCMP_SYS(getrandom),
                                        SCMP_SYS(clock_gettime),
                                        SCMP_SYS(gettimeofday),
                                        SCMP_SYS(rt_sigreturn),
                                        SCMP_SYS(rt_sigprocmask),
                                        SCMP_SYS(sched_getaffinity),
                                        SCMP_SYS(exit),
                                        SCMP_SYS(exit_group)};
  for (const int call : kCalls) {
    if (const int result = ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0); result != 0) {
      return result;
    }
  }
  return 0;
}

/// Memory of its own only, and none that could be executed.
int AllowMemory(void* filter) {
  const scmp_arg_cmp no_code = {
      .arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = PROT_EXEC, .datum_b = 0};
  const scmp_arg_cmp no_file = {
      .arg = 3, .op = SCMP_CMP_MASKED_EQ, .datum_a = MAP_ANONYMOUS, .datum_b = MAP_ANONYMOUS};
  if (const int result =
          ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, no_code, no_file);
      result != 0) {
    return result;
  }
  return ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, no_code);
}

/// What abort() needs to end with SIGABRT, so that a bug is not taken for an attack.
int AllowAbort(void* filter) {
  // Of this process alone: others of the same user are to live.
  const scmp_arg_cmp is_own = {
      .arg = 0, .op = SCMP_CMP_EQ, .datum_a = static_cast<scmp_datum_t>(::getpid()), .datum_b = 0};
  const scmp_arg_cmp is_abort = {.arg = 2, .op = SCMP_CMP_EQ, .datum_a = SIGABRT, .datum_b = 0};
  int result = ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 2, is_own, is_abort);
  for (const int call : {SCMP_SYS(gettid), SCMP_SYS(getpid), SCMP_SYS(rt_sigaction)}) {
    if (result == 0) {
      result = ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
    }
  }
  return result;
}

Status LoadFilter() {
  const Filter filter(::seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (filter == nullptr) {
    return Failed("seccomp_init", ENOMEM);
  }
  for (const auto allow : {AllowCalls, AllowMemory, AllowAbort}) {
    if (const int result = allow(filter.get()); result != 0) {
      return Failed("seccomp_rule_add", -result);
    }
  }
  if (const int result = ::seccomp_load(filter.get()); result != 0) {
    return Failed("seccomp_load", -result);
  }
  return {};
}

}  // namespace

bool CanBeConfined() { return kCanBeConfined; }

Status EnterSandbox(const SandboxLimits& limits) {
  if (!kCanBeConfined) {
    return {};
  }
  FACET_RETURN_IF_ERROR(SetLimits(limits));
  FACET_RETURN_IF_ERROR(SetProcessFlags());
  return LoadFilter();
}

void BreakOut(std::string_view how) {
  constexpr size_t kPage = 4096;
  if (!EnterSandbox({.max_memory_bytes = int64_t{1} << 30, .max_cpu_s = 10}).ok()) {
    return;
  }
  if (how == "file") {
    (void)::open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  } else if (how == "socket") {
    (void)::socket(AF_INET, SOCK_STREAM, 0);
  } else if (how == "process") {
    (void)::fork();
  } else if (how == "code") {
    (void)::mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  } else if (how == "signal") {
    (void)::kill(::getpid(), 0);
  } else if (how == "abort") {  // of the process that started this one
    (void)::syscall(SYS_tgkill, ::getpid() + 1, ::getpid() + 1, SIGABRT);
  }
}

}  // namespace facet::helper
