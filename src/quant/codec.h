// SPDX-License-Identifier: Apache-2.0
// What the bits of a block mean: decoding rows of any supported type to float and encoding them, in
// plain C++. One file per family of types; one table. No threads, no model. Formats:
// docs/quantization.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace facet {

/// 32 values of a row in the form that products use: value k = d[h] · s[h] · q[k] − dmin · m[h],
/// h = k / 16. Exact: s · q and m are the file's integers, and no rounding has happened.
struct UnpackedBlock {
  int8_t q[32];
  int32_t s[2];
  int32_t m[2];  ///< 0 without a minimum
  float d[2];    ///< equal, except in types whose halves have scales that are no integers
  float dmin;    ///< 0 without a minimum
};

/// The functions of one type. `n` is the number of elements and a multiple of the type's block
/// size.
struct Codec {
  TensorType type;
  /// Writes n floats. The values are those that ggml's decoder gives, bit for bit.
  void (*decode)(const std::byte* blocks, int64_t n, float* values);
  /// Writes n / 32 blocks; null for types of one value per block. n is also a multiple of 32.
  void (*unpack)(const std::byte* blocks, int64_t n, UnpackedBlock* unpacked);
  /// Writes BytesOf(type, n) bytes, or null when there is no encoder. `importance`, which may be
  /// null, says how much an error at each of the n values matters (≥ 0).
  void (*encode)(const float* values, const float* importance, int64_t n, std::byte* blocks);
};

/// The codec of a type, or null when it is not supported.
const Codec* FindCodec(TensorType type);

}  // namespace facet
