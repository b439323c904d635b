// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this processor has, and which of them a run uses.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace facet {

/// Sets of kernels, in rising order of preference.
enum class Isa { kScalar, kAvx2 };

std::string_view NameOf(Isa isa);  ///< "scalar", "avx2"
std::optional<Isa> FindIsa(std::string_view name);
std::vector<Isa> SupportedIsas();  ///< of this processor; always holds kScalar
Isa BestIsa();

/// Physical cores that this process may run on: affinity and the cgroup's quota are respected; at
/// least 1.
int DefaultThreads();

}  // namespace facet
