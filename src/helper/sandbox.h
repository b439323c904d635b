// SPDX-License-Identifier: Apache-2.0
// What a process that reads hostile files gives up before it reads them: memory and time without
// limit, files, the network, other processes, and memory that can be executed. The kernel kills it
// for the first thing that is not on a short list (seccomp).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace facet::helper {

struct SandboxLimits {
  int64_t max_memory_bytes = 0;  ///< of address space
  int max_cpu_s = 0;
};

/// Whether this build can be confined. Sanitizers cannot: they reserve terabytes of addresses and
/// make calls of their own.
bool CanBeConfined();

/// Confines this process, for good. All libraries have to be loaded before it. Left are: reading
/// and writing what is open, memory, clocks, and the end. An error means that a limit could not be
/// set, and that nothing hostile may be read.
Status EnterSandbox(const SandboxLimits& limits);

/// Confines itself and then does what must be its end: "file", "socket", "process",
/// "code", "signal" or "abort". Returns only if that went through, or for another word.
void BreakOut(std::string_view how);

}  // namespace facet::helper
