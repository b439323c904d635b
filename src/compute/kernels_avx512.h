// SPDX-License-Identifier: Apache-2.0
// The AVX-512 kernels that the tables of several sets name.
#pragma once

#include "compute/kernels_avx2.h"

namespace facet {

void MatMulF32Avx512(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulF16Avx512(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulBf16Avx512(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulUnpackedAvx512(const MatMulTask& task, int64_t begin, int64_t end);

/// Of every type in kBlockKernelsAvx2: those for few rows, the panel for many.
inline constexpr int kNBlockKernelsAvx512 = kNBlockKernelsAvx2;
extern const TypeKernel kBlockKernelsAvx512[kNBlockKernelsAvx512];

}  // namespace facet
