// SPDX-License-Identifier: Apache-2.0
#include "format/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "format/names.h"

namespace facet::safetensors {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 26;
constexpr int kMaxHeaderDepth = 3;  // directory, tensor, shape
constexpr int kMaxIndexDepth = 8;   // free metadata
constexpr size_t kMaxDims = 8;
constexpr uint64_t kMaxElements = uint64_t{1} << 60;
constexpr size_t kMaxShards = 1000;
constexpr std::string_view kMetadataName = "__metadata__";

struct Dtype {
  std::string_view name;
  TensorType type;
};
constexpr Dtype kDtypes[] = {
    {"F64", TensorType::kF64},   {"F32", TensorType::kF32}, {"F16", TensorType::kF16},
    {"BF16", TensorType::kBF16}, {"I64", TensorType::kI64}, {"I32", TensorType::kI32},
    {"I16", TensorType::kI16},   {"I8", TensorType::kI8},   {"U8", TensorType::kI8},
    {"BOOL", TensorType::kI8},
};

std::string WhereTensor(const std::string& file, std::string_view name) {
  return fmt::format("{}, tensor {}", file, Quoted(name));
}

std::vector<std::string_view> KeysOf(const Json& object) {
  std::vector<std::string_view> keys;
  keys.reserve(object.members().size());
  for (const auto& [key, value] : object.members()) {
    keys.push_back(key);
  }
  return keys;
}

/// A list of integers of 0 or more.
Result<std::vector<int64_t>> ReadIntegers(const std::string& where, std::string_view key,
                                          const Json& json) {
  const auto is_fitting = [](const Json& item) { return item.is_integer() && item.as_int() >= 0; };
  if (!json.is_array() || !std::all_of(json.items().begin(), json.items().end(), is_fitting)) {
    return Refuse(where, fmt::format("{} {}", key, Quoted(json.Dump())),
                  "a list of integers of 0 or more");
  }
  std::vector<int64_t> integers;
  for (const Json& item : json.items()) {
    integers.push_back(item.as_int());
  }
  return integers;
}

Result<TensorType> ReadDtype(const std::string& where, const Json& json) {
  for (const Dtype& dtype : kDtypes) {
    if (json.is_string() && json.as_string() == dtype.name) {
      return dtype.type;
    }
  }
  return Refuse(
      where, fmt::format("dtype {}", json.is_string() ? Quoted(json.as_string()) : json.KindName()),
      "F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL");
}

/// Bytes of a tensor of this shape.
Result<uint64_t> SizeOf(const std::string& where, TensorType type,
                        const std::vector<int64_t>& shape) {
  if (shape.size() > kMaxDims) {
    return Refuse(where, fmt::format("{} dimensions", shape.size()),
                  fmt::format("at most {}", kMaxDims));
  }
  uint64_t n_elements = 1;
  for (const int64_t dim : shape) {
    const auto size = static_cast<uint64_t>(dim);
    if (size != 0 && n_elements > kMaxElements / size) {
      return Refuse(where, "more elements than the limit", "at most 2^60");
    }
    n_elements *= size;
  }
  return n_elements * static_cast<uint64_t>(InfoOf(type).block_bytes);
}

/// `data` is everything behind the header.
Result<TensorView> ReadTensor(const std::string& file, const Json::Member& member,
                              std::span<const std::byte> data) {
  const auto& [name, json] = member;
  const std::string where = WhereTensor(file, name);
  std::vector<std::string_view> keys = KeysOf(json);
  std::sort(keys.begin(), keys.end());
  if (keys != std::vector<std::string_view>{"data_offsets", "dtype", "shape"}) {
    return Refuse(where, Quoted(json.Dump()), "an object of dtype, shape and data_offsets");
  }
  TensorView tensor;
  tensor.name = name;
  FACET_ASSIGN(tensor.type, ReadDtype(where, json["dtype"]));
  FACET_ASSIGN(tensor.shape, ReadIntegers(where, "shape", json["shape"]));
  FACET_ASSIGN(const uint64_t size, SizeOf(where, tensor.type, tensor.shape));
  FACET_ASSIGN(const auto offsets, ReadIntegers(where, "data_offsets", json["data_offsets"]));
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      static_cast<uint64_t>(offsets[1]) > data.size()) {
    return Refuse(where, fmt::format("data_offsets {}", Quoted(json["data_offsets"].Dump())),
                  fmt::format("begin and end within the {} bytes of data", data.size()));
  }
  tensor.data =
      data.subspan(static_cast<size_t>(offsets[0]), static_cast<size_t>(offsets[1] - offsets[0]));
  if (tensor.data.size() != size) {
    return Refuse(where, fmt::format("{} bytes of data", tensor.data.size()),
                  fmt::format("{} for {} of shape {}", size, json["dtype"].as_string(),
                              json["shape"].Dump()));
  }
  return tensor;
}

/// The tensors must cover the data without overlap and without holes.
Status CheckCover(const std::string& file, const std::vector<TensorView>& tensors,
                  std::span<const std::byte> data) {
  struct Range {
    size_t begin;
    size_t end;
    std::string_view name;
  };
  std::vector<Range> ranges;
  ranges.reserve(tensors.size());
  for (const TensorView& tensor : tensors) {
    const auto begin = static_cast<size_t>(tensor.data.data() - data.data());
    ranges.push_back({begin, begin + tensor.data.size(), tensor.name});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  size_t end = 0;
  for (const Range& range : ranges) {
    if (range.begin != end) {
      return Refuse(WhereTensor(file, range.name), fmt::format("data at offset {}", range.begin),
                    fmt::format("{}, where the data before it ends", end));
    }
    end = range.end;
  }
  if (end != data.size()) {
    return Refuse(file, fmt::format("{} bytes of data", data.size()),
                  fmt::format("{} as the tensors take", end));
  }
  return {};
}

/// A file name without a directory, ending in ".safetensors".
bool IsShardName(std::string_view name) {
  constexpr std::string_view kSuffix = ".safetensors";
  return name.size() > kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

/// The tensors that an index names, each with the shard that should hold it.
Result<std::vector<std::pair<std::string, std::string>>> ReadIndex(const std::string& path) {
  FACET_ASSIGN(const std::string text, ReadFile(path, kMaxIndexBytes));
  FACET_ASSIGN(const Json index, ParseJson(text, path, {kMaxIndexBytes, kMaxIndexDepth}));
  const Json& map = index["weight_map"];
  if (!map.is_object() || map.members().empty()) {
    return Refuse(path, fmt::format("weight_map is {}", map.KindName()),
                  "an object that names tensors");
  }
  if (const auto repeated = FindRepeated(KeysOf(map))) {
    return Refuse(path, fmt::format("tensor {} twice", Quoted(*repeated)), "each name once");
  }
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [tensor, shard] : map.members()) {
    if (!shard.is_string() || !IsShardName(shard.as_string())) {
      return Refuse(WhereTensor(path, tensor), fmt::format("shard {}", Quoted(shard.Dump())),
                    "a file name NAME.safetensors without a directory");
    }
    entries.emplace_back(tensor, shard.as_string());
  }
  return entries;
}

}  // namespace

Result<std::vector<TensorView>> Parse(std::span<const std::byte> bytes, const std::string& name) {
  ByteCursor cursor(bytes, name);
  FACET_ASSIGN(const auto header_size, cursor.Read<uint64_t>("header length"));
  if (header_size > kMaxHeaderBytes) {
    return Refuse(name, fmt::format("a header of {} bytes", header_size),
                  fmt::format("at most {}", kMaxHeaderBytes));
  }
  FACET_ASSIGN(const auto header, cursor.Take(header_size, "header"));
  const auto data = bytes.subspan(cursor.position());
  FACET_ASSIGN(const Json root,
               ParseJson(AsText(header), name, {kMaxHeaderBytes, kMaxHeaderDepth}));
  if (!root.is_object()) {
    return Refuse(name, fmt::format("a header that is {}", root.KindName()), "an object");
  }
  if (const auto repeated = FindRepeated(KeysOf(root))) {
    return Refuse(name, fmt::format("tensor {} twice", Quoted(*repeated)), "each name once");
  }
  std::vector<TensorView> tensors;
  tensors.reserve(root.members().size());
  for (const Json::Member& member : root.members()) {
    if (member.first == kMetadataName) {
      continue;  // free text of whoever wrote the file
    }
    FACET_ASSIGN(TensorView tensor, ReadTensor(name, member, data));
    tensors.push_back(std::move(tensor));
  }
  FACET_RETURN_IF_ERROR(CheckCover(name, tensors, data));
  return tensors;
}

Status File::AddFile(const std::string& path) {
  FACET_ASSIGN(MappedFile map, MappedFile::Open(path));
  FACET_ASSIGN(std::vector<TensorView> tensors, Parse(map.bytes(), path));
  for (TensorView& tensor : tensors) {
    tensor.shard = maps_.size();
    tensor.offset = static_cast<uint64_t>(tensor.data.data() - map.bytes().data());
  }
  std::move(tensors.begin(), tensors.end(), std::back_inserter(tensors_));
  n_bytes_ += map.bytes().size();
  maps_.push_back(std::move(map));
  return {};
}

Status File::OpenIndexed(const std::string& path) {
  FACET_ASSIGN(const auto entries, ReadIndex(path));
  std::vector<std::string> shards;
  shards.reserve(entries.size());
  for (const auto& [tensor, shard] : entries) {
    shards.push_back(shard);
  }
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  if (shards.size() > kMaxShards) {
    return Refuse(path, fmt::format("{} shards", shards.size()),
                  fmt::format("at most {}", kMaxShards));
  }
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::vector<size_t> shard_ends;  // tensors_.size() after each shard
  for (const std::string& shard : shards) {
    if (!FileExists(directory + shard)) {
      return Refuse(directory + shard, "missing", fmt::format("a shard that {} names", path));
    }
    FACET_RETURN_IF_ERROR(AddFile(directory + shard));
    shard_ends.push_back(tensors_.size());
  }
  FACET_ASSIGN(by_name_, IndexShards(NamesOf(tensors_), path));
  for (const auto& [tensor, shard] : entries) {
    const auto position = FindName(by_name_, tensor);
    const auto holder =
        std::upper_bound(shard_ends.begin(), shard_ends.end(), position.value_or(tensors_.size()));
    if (holder == shard_ends.end() ||
        shards[static_cast<size_t>(holder - shard_ends.begin())] != shard) {
      return Refuse(WhereTensor(path, tensor), fmt::format("not in {}", Quoted(shard)),
                    "a shard that holds it");
    }
  }
  return {};
}

Result<File> File::Open(const std::string& path) {
  File file;
  if (path.ends_with(".json")) {
    FACET_RETURN_IF_ERROR(file.OpenIndexed(path));
  } else {
    FACET_RETURN_IF_ERROR(file.AddFile(path));
    FACET_ASSIGN(file.by_name_, IndexShards(NamesOf(file.tensors_), path));
  }
  return file;
}

const TensorView* File::Find(std::string_view name) const {
  const auto position = FindName(by_name_, name);
  return position ? &tensors_[*position] : nullptr;
}

}  // namespace facet::safetensors
