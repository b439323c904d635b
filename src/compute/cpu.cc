// SPDX-License-Identifier: Apache-2.0
#include "compute/cpu.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <iterator>

#include "compute/cpu_count.h"

namespace facet {
namespace {

struct NamedIsa {
  Isa isa;
  std::string_view name;
};

constexpr NamedIsa kNames[] = {{Isa::kScalar, "scalar"}, {Isa::kNeon, "neon"},
                               {Isa::kAvx2, "avx2"},     {Isa::kAvxVnni, "avxvnni"},
                               {Isa::kAvx512, "avx512"}, {Isa::kAmx, "amx"}};
constexpr Isa kAll[] = {Isa::kScalar,  Isa::kNeon,   Isa::kAvx2,
                        Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx};

#if defined(__x86_64__)
// The compiler's own tests of AVX2 and AVX-512 include that the operating system saves the
// registers.
bool HasAvx2() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return has_f16c && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}

bool HasAvxVnni() {
  constexpr unsigned kBitAvxVnni = 1u << 4;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return HasAvx2() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && eax >= 1 &&
         __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kBitAvxVnni) != 0;
}

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vnni") != 0;
}

// Whether the operating system saves the tile registers; reading this needs OSXSAVE.
bool SavesTiles() {
  constexpr unsigned kTileConfig = 1u << 17;
  constexpr unsigned kTileData = 1u << 18;
  unsigned eax = 0;
  unsigned edx = 0;
  asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return (eax & (kTileConfig | kTileData)) == (kTileConfig | kTileData);
}

// Tiles enlarge the state of a thread, so that Linux wants to be asked for them, once for all
// threads of a process.
bool MayUseTiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool HasAmx() {
  constexpr unsigned kTile = 1u << 24;
  constexpr unsigned kInt8 = 1u << 25;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return HasAvx512() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & kTile) != 0 && (edx & kInt8) != 0 && SavesTiles() && MayUseTiles();
}

std::vector<Isa> Detect() {
  std::vector<Isa> isas = {Isa::kScalar};
  if (HasAvx2()) {
    isas.push_back(Isa::kAvx2);
  }
  if (HasAvxVnni()) {
    isas.push_back(Isa::kAvxVnni);
  }
  if (HasAvx512()) {
    isas.push_back(Isa::kAvx512);
  }
  if (HasAmx()) {
    isas.push_back(Isa::kAmx);
  }
  return isas;
}
#elif defined(__aarch64__)
// Every Arm processor of Apple has dot products.
bool HasNeon() {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return true;
#endif
}

std::vector<Isa> Detect() {
  std::vector<Isa> isas = {Isa::kScalar};
  if (HasNeon()) {
    isas.push_back(Isa::kNeon);
  }
  return isas;
}
#else
std::vector<Isa> Detect() { return {Isa::kScalar}; }
#endif

}  // namespace

std::span<const Isa> AllIsas() { return kAll; }

std::string_view NameOf(Isa isa) {
  const auto* named = std::find_if(std::begin(kNames), std::end(kNames),
                                   [isa](const NamedIsa& n) { return n.isa == isa; });
  return named->name;
}

std::optional<Isa> FindIsa(std::string_view name) {
  for (const NamedIsa& named : kNames) {
    if (named.name == name) {
      return named.isa;
    }
  }
  return std::nullopt;
}

std::vector<Isa> SupportedIsas() {
  static const std::vector<Isa> kSupported = Detect();
  return kSupported;
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
