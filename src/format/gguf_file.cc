// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "format/gguf.h"
#include "format/gguf_layout.h"
#include "format/names.h"

namespace facet::gguf {
namespace {

// Five digits in a shard's name.
constexpr int64_t kMaxShards = 99999;
constexpr std::string_view kArchitectureKey = "general.architecture";

/// What a shard says of itself.
struct Split {
  int64_t number = 0;  ///< from 0
  int64_t count = 1;
  int64_t n_tensors = 0;  ///< of all shards
};

Result<int64_t> SplitValue(const Metadata& metadata, const std::string& file, std::string_view key,
                           int64_t limit) {
  const Value* value = metadata.Find(key);
  if (value == nullptr) {
    return Refuse(WhereKey(file, key), "missing", "an integer in each shard");
  }
  const auto number = value->AsInt();
  if (!number || *number < 0 || *number > limit) {
    return Refuse(WhereKey(file, key),
                  number ? fmt::format("{}", *number) : fmt::format("type {}", NameOf(value->type)),
                  fmt::format("an integer from 0 to {}", limit));
  }
  return *number;
}

Result<Split> SplitOf(const Metadata& metadata, const std::string& file) {
  Split split;
  if (metadata.Find(kSplitCountKey) == nullptr) {
    return split;
  }
  FACET_ASSIGN(split.count, SplitValue(metadata, file, kSplitCountKey, kMaxShards));
  if (split.count <= 1) {
    return Split{};  // 0 stands in files that were merged from shards
  }
  FACET_ASSIGN(split.number, SplitValue(metadata, file, kSplitNumberKey, split.count - 1));
  FACET_ASSIGN(split.n_tensors, SplitValue(metadata, file, kSplitTensorsKey, INT32_MAX));
  return split;
}

/// What stands before "-00001-of-00003.gguf" in the path of that shard.
std::optional<std::string> ShardPrefix(std::string_view path, const Split& split) {
  const std::string suffix = ShardPath("", split.number, split.count);
  if (!path.ends_with(suffix)) {
    return std::nullopt;
  }
  return std::string(path.substr(0, path.size() - suffix.size()));
}

std::string Describe(const Split& split) {
  return fmt::format("shard {} of {}", split.number + 1, split.count);
}

std::string Architecture(const Metadata& metadata) {
  const Value* value = metadata.Find(kArchitectureKey);
  return value != nullptr && value->AsString() != nullptr ? *value->AsString() : "";
}

}  // namespace

void File::Add(Directory directory, std::span<const std::byte> bytes) {
  for (TensorInfo& tensor : directory.tensors) {
    const auto data =
        bytes.subspan(static_cast<size_t>(tensor.offset), static_cast<size_t>(tensor.n_bytes));
    tensors_.push_back({std::move(tensor.name), tensor.type, std::move(tensor.shape), data,
                        maps_.size(), tensor.offset});
  }
  n_bytes_ += bytes.size();
}

Status File::AddShard(const std::string& path, int64_t number, int64_t count) {
  const Split wanted{number, count, *metadata_.Find(kSplitTensorsKey)->AsInt()};
  if (!FileExists(path)) {
    return Refuse(path, "missing", Describe(wanted));
  }
  FACET_ASSIGN(MappedFile map, MappedFile::Open(path));
  FACET_ASSIGN(Directory directory, Parse(map.bytes(), path));
  FACET_ASSIGN(const Split split, SplitOf(directory.metadata, path));
  if (split.number != wanted.number || split.count != wanted.count) {
    return Refuse(path, Describe(split), Describe(wanted));
  }
  if (split.n_tensors != wanted.n_tensors) {
    return Refuse(WhereKey(path, kSplitTensorsKey), fmt::format("{}", split.n_tensors),
                  fmt::format("{} as in the first shard", wanted.n_tensors));
  }
  const std::string architecture = Architecture(directory.metadata);
  if (!architecture.empty() && architecture != Architecture(metadata_)) {
    return Refuse(WhereKey(path, kArchitectureKey), Quoted(architecture),
                  fmt::format("{} as in the first shard", Quoted(Architecture(metadata_))));
  }
  Add(std::move(directory), map.bytes());
  paths_.push_back(path);
  maps_.push_back(std::move(map));
  return {};
}

Result<File> File::FromBytes(std::span<const std::byte> bytes, const std::string& name) {
  FACET_ASSIGN(Directory directory, Parse(bytes, name));
  FACET_ASSIGN(const Split split, SplitOf(directory.metadata, name));
  if (split.count > 1) {
    return Refuse(name, Describe(split), "a whole file when it is read from memory");
  }
  File file;
  file.version_ = directory.version;
  file.alignment_ = directory.alignment;
  file.metadata_ = std::move(directory.metadata);
  file.Add(std::move(directory), bytes);
  FACET_ASSIGN(file.by_name_, IndexShards(NamesOf(file.tensors_), name));
  return file;
}

Result<File> File::Open(const std::string& path) {
  FACET_ASSIGN(MappedFile map, MappedFile::Open(path));
  FACET_ASSIGN(Directory directory, Parse(map.bytes(), path));
  FACET_ASSIGN(const Split split, SplitOf(directory.metadata, path));
  File file;
  file.version_ = directory.version;
  file.alignment_ = directory.alignment;
  file.metadata_ = std::move(directory.metadata);
  file.n_shards_ = static_cast<size_t>(split.count);
  file.Add(std::move(directory), map.bytes());
  file.paths_.push_back(path);
  file.maps_.push_back(std::move(map));
  if (split.count > 1) {
    const auto prefix = ShardPrefix(path, split);
    if (!prefix) {
      return Refuse(path, fmt::format("{} under another name", Describe(split)),
                    ShardPath("NAME", split.number, split.count));
    }
    if (split.number != 0) {
      return Refuse(path, Describe(split),
                    fmt::format("the first, {}", ShardPath(*prefix, 0, split.count)));
    }
    for (int64_t number = 1; number < split.count; ++number) {
      FACET_RETURN_IF_ERROR(
          file.AddShard(ShardPath(*prefix, number, split.count), number, split.count));
    }
    if (file.tensors_.size() != static_cast<size_t>(split.n_tensors)) {
      return Refuse(path, fmt::format("{} tensors in {} shards", file.tensors_.size(), split.count),
                    fmt::format("{} by split.tensors.count", split.n_tensors));
    }
  }
  FACET_ASSIGN(file.by_name_, IndexShards(NamesOf(file.tensors_), path));
  return file;
}

void File::Release(std::span<const std::byte> data) const {
  for (const MappedFile& map : maps_) {
    const auto bytes = map.bytes();
    if (data.data() >= bytes.data() && data.data() < bytes.data() + bytes.size()) {
      map.Release(data);
      return;
    }
  }
}

const TensorView* File::Find(std::string_view tensor_name) const {
  const auto position = FindName(by_name_, tensor_name);
  return position ? &tensors_[*position] : nullptr;
}

}  // namespace facet::gguf
