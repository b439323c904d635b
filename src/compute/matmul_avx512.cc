// SPDX-License-Identifier: Apache-2.0
// Matrix products of packed weights with AVX-512 VNNI: equal to matmul_scalar.cc bit for bit.
// Compiled with -mavx512*; uses no inline function of the library or the standard library
// (vector_math_avx2.h says why).
//
// Up to 8 activation rows at a time run against a group of 16 weight rows: per block and activation
// row 8 vpdpbusd (the 4 activations come by a broadcast, one load each) and 3 float operations of
// the chain, so with 8 rows 88 arithmetic operations for 4096 products, and 12 to unpack 4-bit
// codes. A group stays in the first cache while all tiles of a chunk pass; to unpack it once into a
// panel was tried and lost: a panel is twice as large, lies in the second cache, and filling it
// keeps memory and arithmetic from overlapping. One row is bound by memory: 288 bytes of Q4_0 take
// about 14 cycles of arithmetic.
#include <immintrin.h>

#include "compute/kernels_avx512.h"
#include "compute/matmul_packed_avx512.h"

namespace facet {
namespace {

template <typename Type>
void MatMulPacked(const MatMulTask& task, int64_t begin, int64_t end) {
  ActivationChunk chunk(task, task.scratch);
  const int64_t chunk_rows = ChunkRows(task.n_in);
  for (int64_t first = 0; first < task.n_rows; first += chunk_rows) {
    const int64_t n_left = task.n_rows - first;
    chunk.Fill<Type>(first, n_left < chunk_rows ? n_left : chunk_rows);
    for (int64_t out = begin; out < end; out += kRows) {
      chunk.Multiply(PackedGroup<Type>(task, out), out, end);
    }
  }
}

const TypeKernel kPacked[] = {{TensorType::kQ4_0, MatMulPacked<PackedQ4_0>},
                              {TensorType::kQ4_1, MatMulPacked<PackedQ4_1>},
                              {TensorType::kQ5_0, MatMulPacked<PackedQ5_0>},
                              {TensorType::kQ5_1, MatMulPacked<PackedQ5_1>},
                              {TensorType::kQ8_0, MatMulPacked<PackedQ8_0>},
                              {TensorType::kQ4_K, MatMulPacked<PackedQ4K>},
                              {TensorType::kQ5_K, MatMulPacked<PackedQ5K>},
                              {TensorType::kQ6_K, MatMulPacked<PackedQ6K>},
                              {TensorType::kIQ4_NL, MatMulPacked<PackedIQ4NL>},
                              {TensorType::kIQ4_XS, MatMulPacked<PackedIQ4XS>},
                              {TensorType::kMXFP4, MatMulPacked<PackedMXFP4>}};

}  // namespace

const MatMulKernels kMatMulAvx512 = {
    .f32 = MatMulF32Avx512,
    .f16 = MatMulF16Avx512,
    .bf16 = MatMulBf16Avx512,
    .unpacked = MatMulUnpackedAvx512,
    .quantize = QuantizeAvx2,
    .blocks = kBlockKernelsAvx512,
    .n_blocks = kNBlockKernelsAvx512,
    .packed = kPacked,
    .n_packed = sizeof(kPacked) / sizeof(kPacked[0]),
};

}  // namespace facet
