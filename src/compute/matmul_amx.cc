// SPDX-License-Identifier: Apache-2.0
// Matrix products with AMX: many activation rows of packed weights by 8-bit tiles
// (matmul_packed_amx.h), everything else by the AVX-512 kernels; equal to matmul_scalar.cc bit for
// bit. Compiled with -mavx512* and -mamx-*.
//
// What bounds the tiles, counted and not measured: per block of 16 rows and 16 outputs the product
// itself takes 16 cycles, storing its sums 16, and the chain reads 16 vectors of sums and as many
// scales for 48 float operations, 24 cycles on two ports, where vpdpbusd alone would take 64. So
// the floats are the limit, and more than one product per store (scales are per 32 columns) there
// cannot be.
#include "compute/kernels_avx512.h"
#include "compute/matmul_packed_amx.h"

namespace facet {
namespace {

// The tile registers, from configuration to release; released, they cost nothing when threads are
// switched. Written as assembly because a register must be named by a constant in the text, and
// because the intrinsics of some compilers (GCC 12) do not say that a load reads memory.
class AmxTiles {
 public:
  explicit AmxTiles(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles() { asm volatile("tilerelease"); }

  template <int kTile>
  void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  void Load(const void* rows, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  void Store(void* rows, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(rows), "r"(stride), "i"(kTile)
                 : "memory");
  }
  // sums += a · b, both signed
  template <int kSums, int kA, int kB>
  void Multiply() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB));
  }
};

}  // namespace

const MatMulKernels kMatMulAmx = {
    .f32 = MatMulF32Avx512,
    .f16 = MatMulF16Avx512,
    .bf16 = MatMulBf16Avx512,
    .unpacked = MatMulUnpackedAvx512,
    .quantize = QuantizeAvx2,
    .blocks = kBlockKernelsAvx512,
    .n_blocks = kNBlockKernelsAvx512,
    .packed = kPackedTiles<AmxTiles>,
    .n_packed = kNPackedTiles,
};

}  // namespace facet
