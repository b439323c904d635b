// SPDX-License-Identifier: Apache-2.0
#include "compute/cpu.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "compute/cpu_count.h"

namespace facet {
namespace {

#if defined(__x86_64__)
// The compiler's own test of AVX2 includes that the operating system saves the registers.
bool HasAvx2() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
#else
bool HasAvx2() { return false; }
#endif

}  // namespace

std::string_view NameOf(Isa isa) { return isa == Isa::kAvx2 ? "avx2" : "scalar"; }

std::optional<Isa> FindIsa(std::string_view name) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2}) {
    if (NameOf(isa) == name) {
      return isa;
    }
  }
  return std::nullopt;
}

std::vector<Isa> SupportedIsas() {
  std::vector<Isa> isas = {Isa::kScalar};
  if (HasAvx2()) {
    isas.push_back(Isa::kAvx2);
  }
  return isas;
}

Isa BestIsa() { return SupportedIsas().back(); }

int DefaultThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> allowed;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<size_t>(cpu), &set)) {
        allowed.push_back(cpu);
      }
    }
  }
  return CountCores("", allowed);
}

}  // namespace facet
