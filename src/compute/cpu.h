// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this processor has, and which of them a run uses.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace facet {

/// Sets of kernels, in rising order of preference. A processor has those of its own architecture.
enum class Isa {
  kScalar,
  kNeon,     ///< Arm with dot products (Armv8.2 dotprod)
  kAvx2,     ///< with FMA and F16C
  kAvxVnni,  ///< AVX2 and the 256-bit dot products
  kAvx512,   ///< F, BW, DQ, VL and VNNI
  kAmx,      ///< AVX-512 and the int8 tiles
};

std::span<const Isa> AllIsas();    ///< in the order above
std::string_view NameOf(Isa isa);  ///< "scalar", "neon", "avx2", "avxvnni", "avx512", "amx"
std::optional<Isa> FindIsa(std::string_view name);
std::vector<Isa> SupportedIsas();  ///< of this processor; always holds kScalar
Isa BestIsa();

/// Physical cores that this process may run on: affinity and the cgroup's quota are respected; at
/// least 1.
int DefaultThreads();

}  // namespace facet
