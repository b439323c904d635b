// SPDX-License-Identifier: Apache-2.0
#include "format/gguf_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "base/utf8.h"
#include "format/names.h"

namespace facet::gguf {
namespace {

Status CheckText(const std::string& where, std::string_view kind, std::string_view text,
                 size_t limit) {
  if (text.empty() || text.size() > limit) {
    return Refuse(where, fmt::format("{} of {} bytes", kind, text.size()),
                  fmt::format("1 to {}", limit));
  }
  if (!IsValidUtf8(text)) {
    return Refuse(where, fmt::format("{} {}", kind, Quoted(text)), "valid UTF-8");
  }
  return {};
}

}  // namespace

std::string ShardPath(std::string_view prefix, int64_t number, int64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number + 1, count);
}

std::string WhereKey(const std::string& file, std::string_view key) {
  return fmt::format("{}, key {}", file, Quoted(key));
}

std::string WhereTensor(const std::string& file, std::string_view tensor_name) {
  return fmt::format("{}, tensor {}", file, Quoted(tensor_name));
}

Status CheckKey(const std::string& file, std::string_view key) {
  return CheckText(file, "key", key, kMaxKeyBytes);
}

Status CheckTensorName(const std::string& file, std::string_view tensor_name) {
  return CheckText(file, "tensor name", tensor_name, kMaxTensorNameBytes);
}

Result<uint32_t> AlignmentOf(const Metadata& metadata, const std::string& file) {
  const Value* value = metadata.Find(kAlignmentKey);
  if (value == nullptr) {
    return kDefaultAlignment;
  }
  const std::string where = WhereKey(file, kAlignmentKey);
  if (value->type != ValueType::kUint32) {
    return Refuse(where, fmt::format("type {}", NameOf(value->type)), "uint32");
  }
  const int64_t alignment = *value->AsInt();
  if (alignment < kMinAlignment || alignment > kMaxAlignment ||
      !std::has_single_bit(static_cast<uint64_t>(alignment))) {
    return Refuse(where, fmt::format("{}", alignment),
                  fmt::format("a power of two from {} to {}", kMinAlignment, kMaxAlignment));
  }
  return static_cast<uint32_t>(alignment);
}

Result<uint64_t> TensorBytes(const std::string& where, TensorType type,
                             const std::vector<int64_t>& shape) {
  if (shape.empty() || shape.size() > kMaxDims) {
    return Refuse(where, fmt::format("{} dimensions", shape.size()),
                  fmt::format("1 to {}", kMaxDims));
  }
  uint64_t n_elements = 1;
  bool is_too_large = false;
  for (const int64_t dim : shape) {
    if (dim < 1) {
      return Refuse(where, fmt::format("shape {}", shape), "dimensions of 1 or more");
    }
    is_too_large = is_too_large || static_cast<uint64_t>(dim) > kMaxTensorElements / n_elements;
    n_elements *= is_too_large ? 1 : static_cast<uint64_t>(dim);
  }
  if (is_too_large) {
    return Refuse(where, fmt::format("shape {}", shape), "at most 2^60 elements");
  }
  const TensorTypeInfo info = InfoOf(type);
  if (shape.back() % info.block_elements != 0) {
    return Refuse(where, fmt::format("rows of {} elements of {}", shape.back(), info.name),
                  fmt::format("a multiple of {}", info.block_elements));
  }
  // Not BytesOf: at the limit the bytes of 8-byte elements no longer fit its int64_t.
  return n_elements / static_cast<uint64_t>(info.block_elements) *
         static_cast<uint64_t>(info.block_bytes);
}

}  // namespace facet::gguf
