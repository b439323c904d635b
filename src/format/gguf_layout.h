// SPDX-License-Identifier: Apache-2.0
// What reading and writing GGUF must agree on: limits of keys, names, shapes and alignment, each
// with its one message, and how numbers are stored. So a file that Write makes is one that Parse
// accepts. Internal to format/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/tensor_type.h"
#include "format/gguf.h"

namespace facet::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr uint32_t kWrittenVersion = 3;
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr uint32_t kMinAlignment = 8;
inline constexpr uint32_t kMaxAlignment = 65536;

inline constexpr size_t kMaxKeyBytes = 65535;
inline constexpr size_t kMaxTensorNameBytes = 64;
inline constexpr size_t kMaxDims = 4;
inline constexpr uint64_t kMaxTensorElements = uint64_t{1} << 60;
/// A string value; the largest known one, a tokenizer.json, has 32 MB.
inline constexpr uint64_t kMaxStringBytes = uint64_t{1} << 26;
/// Elements of all arrays of one file: they take up to 32 bytes each in memory.
inline constexpr uint64_t kMaxArrayElements = uint64_t{1} << 24;

inline constexpr std::string_view kSplitNumberKey = "split.no";  ///< from 0
inline constexpr std::string_view kSplitCountKey = "split.count";
inline constexpr std::string_view kSplitTensorsKey = "split.tensors.count";  ///< of all shards

/// PREFIX-00001-of-00003.gguf: `number` counts from 0, the name from 1.
std::string ShardPath(std::string_view prefix, int64_t number, int64_t count);

/// Where an error about a key or a tensor of a file is: FILE, key "NAME".
std::string WhereKey(const std::string& file, std::string_view key);
std::string WhereTensor(const std::string& file, std::string_view tensor_name);

/// Not empty, within the limit, valid UTF-8.
Status CheckKey(const std::string& file, std::string_view key);
Status CheckTensorName(const std::string& file, std::string_view tensor_name);

/// The alignment that the metadata asks for, or the default.
Result<uint32_t> AlignmentOf(const Metadata& metadata, const std::string& file);

/// Bytes of a tensor. Refuses other than 1 to 4 dimensions, dimensions below 1, too many elements
/// and rows that are not whole blocks. `shape` has the slowest axis first.
Result<uint64_t> TensorBytes(const std::string& where, TensorType type,
                             const std::vector<int64_t>& shape);

/// `position` must be far from 2^64, `alignment` a power of two.
inline uint64_t AlignUp(uint64_t position, uint32_t alignment) {
  return (position + alignment - 1) & ~uint64_t{alignment - 1};
}

/// The 64-bit type that Value holds numbers of type Stored in.
template <typename Stored>
using Wide = std::conditional_t<std::is_floating_point_v<Stored>, double,
                                std::conditional_t<std::is_signed_v<Stored>, int64_t, uint64_t>>;

/// Calls visit(Stored{}) with the C++ type that numbers of `type` are stored as. Not for strings,
/// arrays and bools.
template <typename Visit>
auto VisitStored(ValueType type, Visit visit) {
  switch (type) {
    case ValueType::kUint8:
      return visit(uint8_t{});
    case ValueType::kInt8:
      return visit(int8_t{});
    case ValueType::kUint16:
      return visit(uint16_t{});
    case ValueType::kInt16:
      return visit(int16_t{});
    case ValueType::kUint32:
      return visit(uint32_t{});
    case ValueType::kInt32:
      return visit(int32_t{});
    case ValueType::kUint64:
      return visit(uint64_t{});
    case ValueType::kInt64:
      return visit(int64_t{});
    case ValueType::kFloat32:
      return visit(float{});
    case ValueType::kFloat64:
      return visit(double{});
    case ValueType::kBool:
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  CheckFailed("a number type", __FILE__, __LINE__);
}

}  // namespace facet::gguf
