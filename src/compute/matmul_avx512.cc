// SPDX-License-Identifier: Apache-2.0
// Matrix products of packed weights with AVX-512 VNNI: equal to matmul_scalar.cc bit for bit.
// Compiled with -mavx512*; uses no inline function of the library or the standard library
// (vector_math_avx2.h says why).
//
// Up to 8 activation rows at a time run against a group of 16 weight rows: per block and activation
// row 8 vpdpbusd (the 4 activations come by an embedded broadcast, one load each) and 3 float
// operations of the chain. With 8 rows that is 88 arithmetic operations for 4096 products and 12 to
// unpack 4-bit codes; so from 9 rows on a group is unpacked once into a panel, which stays in the
// first or second cache while all rows of a chunk pass. One row is bound by memory: 288 bytes of
// Q4_0 take about 14 cycles of arithmetic.
#include <immintrin.h>

#include "compute/kernels_avx2.h"
#include "compute/matmul_packed_avx512.h"

namespace facet {
namespace {

template <typename Type>
void MatMulPacked(const MatMulTask& task, int64_t begin, int64_t end) {
  using TypePanel = Panel<typename Type::Side>;
  const int64_t n_blocks = task.n_in / kBlock;
  std::byte* scratch = AlignedScratch(task);
  TypePanel panel(scratch, n_blocks);
  ActivationChunk chunk(task, scratch + n_blocks * TypePanel::kBlockBytes);
  const int64_t chunk_rows = ChunkRows(task.n_in);
  for (int64_t first = 0; first < task.n_rows; first += chunk_rows) {
    const int64_t n_left = task.n_rows - first;
    chunk.Fill<Type>(first, n_left < chunk_rows ? n_left : chunk_rows);
    for (int64_t out = begin; out < end; out += kRows) {
      const PackedGroup<Type> group(task, out);
      if (chunk.n_tiles == 1) {
        chunk.Multiply(group, out, end);
      } else {
        panel.Fill(group, n_blocks);
        chunk.Multiply(panel, out, end);
      }
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
