// SPDX-License-Identifier: Apache-2.0
// The element types a tensor in a file can have: ids, block sizes and names are facts of the GGUF
// format. What the bits of a block mean is the business of quant/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace facet {

/// Values are the type ids stored in GGUF files.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
};

/// Size and name of a type. A row of n elements takes n / block_elements * block_bytes bytes.
struct TensorTypeInfo {
  TensorType type;
  std::string_view name;  ///< as users know it: "Q4_K"
  int block_elements;     ///< elements of one block; 1 for plain types
  int block_bytes;
};

/// The row for `id` as found in a file, or nothing for an id that we do not know.
std::optional<TensorTypeInfo> FindTensorType(uint32_t id);

/// The row for a known type.
TensorTypeInfo InfoOf(TensorType type);

/// The row whose name is `name`, compared without case ("q4_k").
std::optional<TensorTypeInfo> FindTensorTypeByName(std::string_view name);

/// Bytes of `n_elements` elements, which must be a multiple of the block size.
int64_t BytesOf(TensorType type, int64_t n_elements);

}  // namespace facet
