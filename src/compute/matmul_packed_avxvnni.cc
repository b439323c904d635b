// SPDX-License-Identifier: Apache-2.0
// Matrix products of packed weights with AVX-VNNI, the dot products of 256 bits without AVX-512;
// all else is AVX2. Compiled with -mavx2 -mfma -mf16c -mavxvnni; uses no inline function of the
// library or the standard library (vector_math_avx2.h says why).
#include <immintrin.h>

#include "compute/matmul_packed_avx2.h"

namespace facet {
namespace {

// vpdpbusd multiplies codes without sign by activations with one; what the offset adds too much is
// taken back by what the sums start with.
template <typename Type>
struct Sums : DwordSums<Type::kHalves> {
  static constexpr bool kHasStarts = Type::kOffset != 0;
  static __m256i Weights(const std::byte* codes, int quad, int v) {
    return Type::Codes::Quad(codes, quad, v);
  }
  static void Starts(const MatMulTask& task, int64_t block, int32_t (&starts)[2]) {
    if constexpr (Type::kHalves == 1) {
      starts[0] = -Type::kOffset * task.sums[block];
    } else {
      starts[0] = -Type::kOffset * task.half_sums[2 * block];
      starts[1] = -Type::kOffset * task.half_sums[2 * block + 1];
    }
  }
  static __m256i Add(__m256i w, __m256i a, __m256i sum) {
    return _mm256_dpbusd_avx_epi32(sum, w, a);
  }
};

const TypeKernel kPacked[] = {{TensorType::kQ4_0, MatMulPacked<PackedQ4_0, Sums>},
                              {TensorType::kQ4_1, MatMulPacked<PackedQ4_1, Sums>},
                              {TensorType::kQ5_0, MatMulPacked<PackedQ5_0, Sums>},
                              {TensorType::kQ5_1, MatMulPacked<PackedQ5_1, Sums>},
                              {TensorType::kQ8_0, MatMulPacked<PackedQ8_0, Sums>},
                              {TensorType::kQ4_K, MatMulPacked<PackedQ4K, Sums>},
                              {TensorType::kQ5_K, MatMulPacked<PackedQ5K, Sums>},
                              {TensorType::kQ6_K, MatMulPacked<PackedQ6K, Sums>},
                              {TensorType::kIQ4_NL, MatMulPacked<PackedIQ4NL, Sums>},
                              {TensorType::kIQ4_XS, MatMulPacked<PackedIQ4XS, Sums>},
                              {TensorType::kMXFP4, MatMulPacked<PackedMXFP4, Sums>}};

}  // namespace

const MatMulKernels kMatMulAvxVnni = {
    .f32 = MatMulF32Avx2,
    .f16 = MatMulF16Avx2,
    .bf16 = MatMulBf16Avx2,
    .unpacked = MatMulUnpackedAvx2,
    .quantize = QuantizeAvx2,
    .blocks = kBlockKernelsAvx2,
    .n_blocks = kNBlockKernelsAvx2,
    .packed = kPacked,
    .n_packed = sizeof(kPacked) / sizeof(kPacked[0]),
};

}  // namespace facet
