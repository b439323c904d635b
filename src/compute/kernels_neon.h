// SPDX-License-Identifier: Apache-2.0
// The NEON kernels that the set's table names, from the files that hold them.
#pragma once

#include "compute/kernels.h"

namespace facet {

void MatMulF32Neon(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulF16Neon(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulBf16Neon(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulUnpackedNeon(const MatMulTask& task, int64_t begin, int64_t end);

}  // namespace facet
