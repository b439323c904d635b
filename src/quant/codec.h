// SPDX-License-Identifier: Apache-2.0
// What the bits of a block mean: decoding rows of any supported type to float and encoding them, in
// plain C++. A block type has one definition, the extraction of the file's integers (unpack);
// decoded values and products both follow from it. One file per family of types; one table. No
// threads, no model. Formats: docs/quantization.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace facet {

/// 32 values of a row in the form that products use: value k = d[h] · s[h] · q[k] − dmin · m[h],
/// h = k / 16. Exact: s · q and m are the file's integers, and no rounding has happened. |s| ≤ 128
/// and 0 ≤ m ≤ 63, so that sums over a block with 8-bit activations stay far below 2^31.
struct UnpackedBlock {
  int8_t q[32];
  int32_t s[2];
  int32_t m[2];  ///< 0 without a minimum
  float d[2];    ///< equal, except in types whose halves have scales that are no integers
  float dmin;    ///< 0 without a minimum
};

/// Which fields of its blocks a type uses.
enum class BlockForm {
  kScaled,       ///< d[0] = d[1]
  kWithMinimum,  ///< d[0] = d[1], dmin and m
  kTwoScales,    ///< d[0] and d[1] each for its half; s is 1
};

/// Unpacks n values to n / 32 blocks.
using UnpackFunction = void (*)(const std::byte* blocks, int64_t n, UnpackedBlock* unpacked);

/// Encodes n values. `importance`, which may be null, says how much an error at each of them
/// matters (≥ 0).
using EncodeFunction = void (*)(const float* values, const float* importance, int64_t n,
                                std::byte* blocks);

/// The functions of one type. `n` is the number of elements and a multiple of the type's block
/// size. Any bytes and any values are taken without undefined behaviour.
struct Codec {
  TensorType type;
  BlockForm form;  ///< of what `unpack` writes
  /// Writes n floats. The values are those that ggml's decoder gives, bit for bit; where a scale is
  /// not finite, a NaN may be another.
  void (*decode)(const std::byte* blocks, int64_t n, float* values);
  UnpackFunction unpack;  ///< null for types of one value per block
  EncodeFunction encode;  ///< writes BytesOf(type, n) bytes; null when there is no encoder
};

/// The codec of a type, or null when it is not supported.
const Codec* FindCodec(TensorType type);

}  // namespace facet
