// SPDX-License-Identifier: Apache-2.0
// The kernels of matmul_packed_amx.h over emulated tiles, for tests: a processor with AVX-512 runs
// them.
#pragma once

#include "compute/kernels.h"

namespace facet {

extern const TypeKernel* const kPackedEmulatedTiles;
extern const int kNPackedEmulatedTiles;

}  // namespace facet
