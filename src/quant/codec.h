// SPDX-License-Identifier: Apache-2.0
// What the bits of a block mean: decoding rows of any supported type to float and encoding them, in
// plain C++. One file per family of types; one table. No threads, no model. Formats:
// docs/quantization.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace facet {

/// The functions of one type. `n` is the number of elements and a multiple of the type's block
/// size.
struct Codec {
  TensorType type;
  /// Writes n floats. The values are those that ggml's decoder gives, bit for bit.
  void (*decode)(const std::byte* blocks, int64_t n, float* values);
  /// Writes BytesOf(type, n) bytes, or null when there is no encoder.
  void (*encode)(const float* values, int64_t n, std::byte* blocks);
};

/// The codec of a type, or null when it is not supported.
const Codec* FindCodec(TensorType type);

}  // namespace facet
