// SPDX-License-Identifier: Apache-2.0
#include "base/tensor_type.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"

namespace facet {
namespace {

using T = TensorType;
constexpr std::array kTypes = {
    TensorTypeInfo{T::kF32, "F32", 1, 4},
    TensorTypeInfo{T::kF16, "F16", 1, 2},
    TensorTypeInfo{T::kQ4_0, "Q4_0", 32, 18},
    TensorTypeInfo{T::kQ4_1, "Q4_1", 32, 20},
    TensorTypeInfo{T::kQ5_0, "Q5_0", 32, 22},
    TensorTypeInfo{T::kQ5_1, "Q5_1", 32, 24},
    TensorTypeInfo{T::kQ8_0, "Q8_0", 32, 34},
    TensorTypeInfo{T::kQ8_1, "Q8_1", 32, 36},
    TensorTypeInfo{T::kQ2_K, "Q2_K", 256, 84},
    TensorTypeInfo{T::kQ3_K, "Q3_K", 256, 110},
    TensorTypeInfo{T::kQ4_K, "Q4_K", 256, 144},
    TensorTypeInfo{T::kQ5_K, "Q5_K", 256, 176},
    TensorTypeInfo{T::kQ6_K, "Q6_K", 256, 210},
    TensorTypeInfo{T::kQ8_K, "Q8_K", 256, 292},
    TensorTypeInfo{T::kIQ2_XXS, "IQ2_XXS", 256, 66},
    TensorTypeInfo{T::kIQ2_XS, "IQ2_XS", 256, 74},
    TensorTypeInfo{T::kIQ3_XXS, "IQ3_XXS", 256, 98},
    TensorTypeInfo{T::kIQ1_S, "IQ1_S", 256, 50},
    TensorTypeInfo{T::kIQ4_NL, "IQ4_NL", 32, 18},
    TensorTypeInfo{T::kIQ3_S, "IQ3_S", 256, 110},
    TensorTypeInfo{T::kIQ2_S, "IQ2_S", 256, 82},
    TensorTypeInfo{T::kIQ4_XS, "IQ4_XS", 256, 136},
    TensorTypeInfo{T::kI8, "I8", 1, 1},
    TensorTypeInfo{T::kI16, "I16", 1, 2},
    TensorTypeInfo{T::kI32, "I32", 1, 4},
    TensorTypeInfo{T::kI64, "I64", 1, 8},
    TensorTypeInfo{T::kF64, "F64", 1, 8},
    TensorTypeInfo{T::kIQ1_M, "IQ1_M", 256, 56},
    TensorTypeInfo{T::kBF16, "BF16", 1, 2},
    TensorTypeInfo{T::kTQ1_0, "TQ1_0", 256, 54},
    TensorTypeInfo{T::kTQ2_0, "TQ2_0", 256, 66},
    TensorTypeInfo{T::kMXFP4, "MXFP4", 32, 17},
    TensorTypeInfo{T::kNVFP4, "NVFP4", 64, 36},
};

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::optional<TensorTypeInfo> FindTensorType(uint32_t id) {
  for (const TensorTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == id) {
      return info;
    }
  }
  return std::nullopt;
}

TensorTypeInfo InfoOf(TensorType type) {
  const auto info = FindTensorType(static_cast<uint32_t>(type));
  FACET_CHECK(info.has_value());
  return *info;
}

std::optional<TensorTypeInfo> FindTensorTypeByName(std::string_view name) {
  for (const TensorTypeInfo& info : kTypes) {
    if (SameIgnoringCase(info.name, name)) {
      return info;
    }
  }
  return std::nullopt;
}

int64_t BytesOf(TensorType type, int64_t n_elements) {
  const TensorTypeInfo info = InfoOf(type);
  FACET_CHECK(n_elements % info.block_elements == 0);
  return n_elements / info.block_elements * info.block_bytes;
}

}  // namespace facet
