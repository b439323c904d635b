// SPDX-License-Identifier: Apache-2.0
// The AVX2 kernels that the tables of several sets name.
#pragma once

#include "compute/kernels.h"

namespace facet {

void MatMulF32Avx2(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulF16Avx2(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulBf16Avx2(const MatMulTask& task, int64_t begin, int64_t end);
void MatMulUnpackedAvx2(const MatMulTask& task, int64_t begin, int64_t end);
void QuantizeAvx2(const float* x, int64_t n, int8_t* values, float* scales, int32_t* sums,
                  int16_t* half_sums);

inline constexpr int kNBlockKernelsAvx2 = 13;
extern const TypeKernel kBlockKernelsAvx2[kNBlockKernelsAvx2];

inline constexpr int kNPackedKernelsAvx2 = 11;
extern const TypeKernel kPackedKernelsAvx2[kNPackedKernelsAvx2];

}  // namespace facet
