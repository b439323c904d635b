// SPDX-License-Identifier: Apache-2.0
// Weights laid out for the processor: 16 output rows side by side, so that each lane of a vector
// runs the chain of its own output element and no sum goes across lanes. Nothing is rounded: the
// integers and float16 scales are those of the file, only moved, hence products have the same bits
// (matmul.h). About as large as the file.
//
// A group of 16 rows is its codes for ascending blocks of 32 columns, then its sides, padded with
// zeros to a multiple of 64 bytes; rows past n_out are zeros. In a block, byte 4 i + j of each 64
// bytes belongs to row i:
//   4 bits: vector v < 4 has in its low nibbles the codes of columns 4 v + j, in the high ones
//           those of columns 16 + 4 v + j
//   5 bits: the same, then a vector in which bit q is bit 4 of the code of column 4 q + j
//   6 bits: the same, then two vectors; bits 2 r and 2 r + 1 of vector p are bits 4 and 5 of
//           the code of column 4 (4 p + r) + j
//   8 bits: vector q < 8 has the codes of columns 4 q + j
// A value is code − offset or, for types with levels, the level that the code numbers. A side
// holds, of each 16 rows next to one another: d; dmin where there is a minimum (both float16;
// bfloat16 for MXFP4); then for K types and IQ4_XS per block the scales s (int8; Q6_K of both
// halves) and then per block the minima m (uint8). Value and names are those of UnpackedBlock
// (quant/codec.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"
#include "compute/matmul.h"

namespace facet {

inline constexpr int kPackedRows = 16;

struct PackedFormat {
  TensorType type;
  int code_bits;         ///< 4, 5, 6 or 8
  int offset;            ///< value = code − offset; of types with levels 0
  const int8_t* levels;  ///< [16], or null
  int blocks_per_side;   ///< 1 or 8
  bool has_minimum;      ///< dmin
  int scales_per_block;  ///< s: 0, 1 or 2
  bool has_minima;       ///< m; else m is 1 where there is a minimum

  [[nodiscard]] constexpr int code_bytes() const { return 64 * code_bits; }
  [[nodiscard]] constexpr int side_bytes() const {
    const int bytes_per_block = scales_per_block + (has_minima ? 1 : 0);
    return kPackedRows * (2 + (has_minimum ? 2 : 0) + blocks_per_side * bytes_per_block);
  }
};

/// The layout for a type, or null: such weights are used as they lie in the file.
const PackedFormat* FindPackedFormat(TensorType type);

/// Bytes of a group of rows of n_in values. The type has a layout.
int64_t PackedGroupBytes(TensorType type, int64_t n_in);

/// Bytes of the whole matrix, or 0 when its type has no layout.
int64_t PackedBytes(const WeightMatrix& w);

/// Whether `kernels` multiplies with packed weights of this type; others are used as they lie in
/// the file.
bool HasPackedKernel(const Kernels& kernels, TensorType type);

/// Writes group `group` (rows [16 group, 16 group + 16) of w.data) to `out`, PackedGroupBytes
/// large. Groups may be packed on several threads at once.
void PackGroup(const WeightMatrix& w, int64_t group, std::byte* out);

}  // namespace facet
