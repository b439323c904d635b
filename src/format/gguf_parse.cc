// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "format/gguf.h"
#include "format/gguf_layout.h"
#include "format/names.h"

namespace facet::gguf {
namespace {

// The least that an entry can take: length and one byte of the name, type, and one byte of value,
// or one dimension, type and offset. A count that the bytes left cannot hold is refused before
// anything is allocated for it.
constexpr size_t kMinKeyValueBytes = 8 + 1 + 4 + 1;
constexpr size_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

struct OldFormat {
  std::string_view magic;
  std::string_view name;
};
// Magics of the formats before GGUF, written as little-endian words: the letters stand in reverse.
constexpr OldFormat kOldFormats[] = {
    {"lmgg", "GGML"}, {"fmgg", "GGMF"}, {"tjgg", "GGJT"}, {"algg", "GGLA"}};

template <typename Stored>
std::vector<Wide<Stored>> Widen(std::span<const std::byte> raw) {
  std::vector<Wide<Stored>> numbers(raw.size() / sizeof(Stored));
  for (size_t i = 0; i < numbers.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, raw.data() + i * sizeof(Stored), sizeof(Stored));
    numbers[i] = stored;  // NOLINT(bugprone-signed-char-misuse): int8 is a number here
  }
  return numbers;
}

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, const std::string& name)
      : name_(name), file_size_(bytes.size()), cursor_(bytes, name) {}

  Result<Directory> Run();

 private:
  Result<uint32_t> ReadVersion();
  Result<uint64_t> ReadCount(std::string_view what, size_t min_bytes_each);
  Result<std::string_view> ReadString(std::string_view what);
  Result<Metadata> ReadMetadata(uint64_t count);
  Result<ValueType> ReadType(std::string_view key, std::string_view what);
  Result<Value> ReadValue(std::string_view key);
  Result<Value> ReadArray(std::string_view key);
  Result<uint64_t> ReadArrayCount(std::string_view key, ValueType element_type);
  Result<Value> ReadStrings(uint64_t count);
  Status CheckBool(std::string_view key, uint8_t byte);
  Result<TensorInfo> ReadTensor(uint32_t alignment);
  Status Place(std::vector<TensorInfo>& tensors, uint32_t alignment);
  Status CheckOverlap(const std::vector<TensorInfo>& tensors);

  const std::string& name_;
  uint64_t file_size_;
  ByteCursor cursor_;
  uint64_t n_array_elements_ = 0;
};

Result<Directory> Parser::Run() {
  Directory directory;
  FACET_ASSIGN(directory.version, ReadVersion());
  FACET_ASSIGN(const uint64_t n_tensors, ReadCount("tensor count", kMinTensorBytes));
  FACET_ASSIGN(const uint64_t n_entries, ReadCount("key count", kMinKeyValueBytes));
  FACET_ASSIGN(directory.metadata, ReadMetadata(n_entries));
  FACET_ASSIGN(directory.alignment, AlignmentOf(directory.metadata, name_));
  directory.tensors.reserve(n_tensors);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    FACET_ASSIGN(TensorInfo tensor, ReadTensor(directory.alignment));
    directory.tensors.push_back(std::move(tensor));
  }
  if (const auto repeated = FindRepeated(NamesOf(directory.tensors))) {
    return Refuse(name_, fmt::format("tensor {} twice", Quoted(*repeated)), "each name once");
  }
  FACET_RETURN_IF_ERROR(Place(directory.tensors, directory.alignment));
  FACET_RETURN_IF_ERROR(CheckOverlap(directory.tensors));
  return directory;
}

Result<uint32_t> Parser::ReadVersion() {
  FACET_ASSIGN(const auto magic_bytes, cursor_.Take(kMagic.size(), "magic"));
  const std::string_view magic = AsText(magic_bytes);
  for (const OldFormat& old : kOldFormats) {
    if (magic == old.magic) {
      return Refuse(name_, fmt::format("a {} file, older than GGUF", old.name),
                    "GGUF version 2 or 3");
    }
  }
  if (magic != kMagic) {
    return Refuse(name_, fmt::format("magic {}", Quoted(magic)), Quoted(kMagic));
  }
  FACET_ASSIGN(const auto version, cursor_.Read<uint32_t>("version"));
  if (version != 0 && (version & 0xffffu) == 0) {
    return Refuse(name_, "a big-endian GGUF file", "a little-endian one");
  }
  if (version != 2 && version != 3) {
    return Refuse(name_, fmt::format("GGUF version {}", version), "version 2 or 3");
  }
  return version;
}

Result<uint64_t> Parser::ReadCount(std::string_view what, size_t min_bytes_each) {
  FACET_ASSIGN(const auto count, cursor_.Read<uint64_t>(what));
  const size_t fitting = cursor_.remaining() / min_bytes_each;
  if (count > fitting) {
    return Refuse(
        name_, fmt::format("{} {}", what, count),
        fmt::format("at most {}, which fit in the {} bytes left", fitting, cursor_.remaining()));
  }
  return count;
}

Result<std::string_view> Parser::ReadString(std::string_view what) {
  const size_t position = cursor_.position();
  FACET_ASSIGN(const auto size, cursor_.Read<uint64_t>("a string length"));
  if (size > kMaxStringBytes) {
    return Refuse(fmt::format("{}, byte {}", name_, position),
                  fmt::format("{} of {} bytes", what, size),
                  fmt::format("at most {}", kMaxStringBytes));
  }
  FACET_ASSIGN(const auto text, cursor_.Take(size, what));
  return AsText(text);
}

Result<Metadata> Parser::ReadMetadata(uint64_t count) {
  Metadata::Entries entries;
  std::vector<std::string_view> keys;
  entries.reserve(count);
  keys.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    FACET_ASSIGN(const std::string_view key, ReadString("a key"));
    FACET_RETURN_IF_ERROR(CheckKey(name_, key));
    FACET_ASSIGN(Value value, ReadValue(key));
    entries.emplace_back(key, std::move(value));
    keys.push_back(key);
  }
  if (const auto repeated = FindRepeated(std::move(keys))) {
    return Refuse(name_, fmt::format("key {} twice", Quoted(*repeated)), "each key once");
  }
  return Metadata(std::move(entries));
}

Result<ValueType> Parser::ReadType(std::string_view key, std::string_view what) {
  FACET_ASSIGN(const auto id, cursor_.Read<uint32_t>(what));
  if (id > static_cast<uint32_t>(ValueType::kFloat64)) {
    return Refuse(WhereKey(name_, key), fmt::format("{} {}", what, id), "0 to 12");
  }
  return static_cast<ValueType>(id);
}

Result<Value> Parser::ReadValue(std::string_view key) {
  FACET_ASSIGN(const ValueType type, ReadType(key, "value type"));
  switch (type) {
    case ValueType::kArray:
      return ReadArray(key);
    case ValueType::kString: {
      FACET_ASSIGN(const std::string_view text, ReadString("a string"));
      return Value::String(std::string(text));
    }
    case ValueType::kBool: {
      FACET_ASSIGN(const auto byte, cursor_.Read<uint8_t>("bool"));
      FACET_RETURN_IF_ERROR(CheckBool(key, byte));
      return Value::Bool(byte == 1);
    }
    default:
      return VisitStored(type, [&](auto sample) -> Result<Value> {
        using Stored = decltype(sample);
        FACET_ASSIGN(const auto stored, cursor_.Read<Stored>(NameOf(type)));
        return Value{type, ValueType::kUint32, Wide<Stored>{stored}};
      });
  }
}

Status Parser::CheckBool(std::string_view key, uint8_t byte) {
  if (byte > 1) {
    return Refuse(WhereKey(name_, key), fmt::format("bool {}", byte), "0 or 1");
  }
  return {};
}

Result<Value> Parser::ReadArray(std::string_view key) {
  FACET_ASSIGN(const ValueType element_type, ReadType(key, "element type"));
  if (element_type == ValueType::kArray) {
    return Refuse(WhereKey(name_, key), "an array of arrays", "an array of plain values");
  }
  FACET_ASSIGN(const uint64_t count, ReadArrayCount(key, element_type));
  if (element_type == ValueType::kString) {
    return ReadStrings(count);
  }
  if (element_type == ValueType::kBool) {
    FACET_ASSIGN(const auto raw, cursor_.Take(count, "an array"));
    std::vector<uint8_t> flags;
    flags.reserve(count);
    for (const std::byte byte : raw) {
      flags.push_back(static_cast<uint8_t>(byte));
      FACET_RETURN_IF_ERROR(CheckBool(key, flags.back()));
    }
    return Value{ValueType::kArray, element_type, std::move(flags)};
  }
  return VisitStored(element_type, [&](auto sample) -> Result<Value> {
    using Stored = decltype(sample);
    FACET_ASSIGN(const auto raw, cursor_.Take(count * sizeof(Stored), "an array"));
    return Value{ValueType::kArray, element_type, Widen<Stored>(raw)};
  });
}

Result<uint64_t> Parser::ReadArrayCount(std::string_view key, ValueType element_type) {
  FACET_ASSIGN(const auto count, cursor_.Read<uint64_t>("array length"));
  size_t bytes_each = 1;
  if (element_type == ValueType::kString) {
    bytes_each = sizeof(uint64_t);
  } else if (element_type != ValueType::kBool) {
    bytes_each = VisitStored(element_type, [](auto sample) { return sizeof(sample); });
  }
  const size_t fitting = cursor_.remaining() / bytes_each;
  if (count > fitting) {
    return Refuse(
        WhereKey(name_, key), fmt::format("array of {} {} values", count, NameOf(element_type)),
        fmt::format("at most {}, which fit in the {} bytes left", fitting, cursor_.remaining()));
  }
  if (count > kMaxArrayElements - n_array_elements_) {
    return Refuse(WhereKey(name_, key),
                  fmt::format("array of {} elements after {}", count, n_array_elements_),
                  fmt::format("at most {} in all arrays", kMaxArrayElements));
  }
  n_array_elements_ += count;
  return count;
}

Result<Value> Parser::ReadStrings(uint64_t count) {
  std::vector<std::string> strings;
  strings.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    FACET_ASSIGN(const std::string_view text, ReadString("a string"));
    strings.emplace_back(text);
  }
  return Value::Strings(std::move(strings));
}

/// `offset` of the result is still the one in the file: from the beginning of the data.
Result<TensorInfo> Parser::ReadTensor(uint32_t alignment) {
  TensorInfo tensor;
  FACET_ASSIGN(tensor.name, ReadString("a tensor name"));
  FACET_RETURN_IF_ERROR(CheckTensorName(name_, tensor.name));
  const std::string where = WhereTensor(name_, tensor.name);
  FACET_ASSIGN(const auto n_dims, cursor_.Read<uint32_t>("dimension count"));
  if (n_dims < 1 || n_dims > kMaxDims) {
    return Refuse(where, fmt::format("{} dimensions", n_dims), fmt::format("1 to {}", kMaxDims));
  }
  tensor.shape.resize(n_dims);
  for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) {
    FACET_ASSIGN(*dim, cursor_.Read<int64_t>("a dimension"));
  }
  FACET_ASSIGN(const auto type, cursor_.Read<uint32_t>("tensor type"));
  const auto info = FindTensorType(type);
  if (!info) {
    return Refuse(where, fmt::format("tensor type {}", type), "a known one");
  }
  tensor.type = info->type;
  FACET_ASSIGN(tensor.n_bytes, TensorBytes(where, tensor.type, tensor.shape));
  FACET_ASSIGN(tensor.offset, cursor_.Read<uint64_t>("a data offset"));
  if (tensor.offset % alignment != 0) {
    return Refuse(where, fmt::format("data offset {}", tensor.offset),
                  fmt::format("a multiple of {}", alignment));
  }
  return tensor;
}

/// Makes the offsets count from the beginning of the file.
Status Parser::Place(std::vector<TensorInfo>& tensors, uint32_t alignment) {
  const uint64_t data_begin = AlignUp(cursor_.position(), alignment);
  const uint64_t data_size = file_size_ > data_begin ? file_size_ - data_begin : 0;
  for (TensorInfo& tensor : tensors) {
    if (tensor.offset > data_size || tensor.n_bytes > data_size - tensor.offset) {
      return Refuse(WhereTensor(name_, tensor.name),
                    fmt::format("{} bytes at data offset {}", tensor.n_bytes, tensor.offset),
                    fmt::format("data within the {} bytes there are", data_size));
    }
    tensor.offset += data_begin;
  }
  return {};
}

Status Parser::CheckOverlap(const std::vector<TensorInfo>& tensors) {
  std::vector<const TensorInfo*> by_offset;
  by_offset.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return std::pair(a->offset, a) < std::pair(b->offset, b);
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TensorInfo& before = *by_offset[i - 1];
    const uint64_t end = before.offset + before.n_bytes;
    if (by_offset[i]->offset < end) {
      return Refuse(
          WhereTensor(name_, by_offset[i]->name),
          fmt::format("data at byte {}", by_offset[i]->offset),
          fmt::format("byte {} or later, where tensor {} ends", end, Quoted(before.name)));
    }
  }
  return {};
}

}  // namespace

Result<Directory> Parse(std::span<const std::byte> bytes, const std::string& name) {
  return Parser(bytes, name).Run();
}

}  // namespace facet::gguf
