// SPDX-License-Identifier: Apache-2.0
// safetensors files, single or sharded by an index: a JSON header of names, types, shapes and byte
// ranges, then data. Reads only. Same care as gguf.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "base/tensor_type.h"

namespace facet::safetensors {

struct TensorView {
  std::string name;
  TensorType type;  ///< F32, F16, BF16, F64, I8, I16, I32, I64 (U8 and BOOL are read as I8)
  std::vector<int64_t> shape;       ///< slowest axis first; empty for a scalar
  std::span<const std::byte> data;  ///< at any address: not aligned to the element size
  size_t shard = 0;                 ///< of a File, from 0 by their names
  uint64_t offset = 0;              ///< of a File: from the beginning of that shard
};

/// Reads one file's bytes. Refuses ranges outside the data, overlaps, holes, sizes that do not fit
/// the shape, unknown types, repeated names, headers above 100 MB.
Result<std::vector<TensorView>> Parse(std::span<const std::byte> bytes, const std::string& name);

/// Open files; views live as long as it does.
class File {
 public:
  /// PATH is a .safetensors file, or an index (model.safetensors.index.json) whose shards lie
  /// beside it. Shard names with a directory part are refused. Tensors that the index names and no
  /// shard holds are refused, and so are names that two shards hold.
  static Result<File> Open(const std::string& path);

  [[nodiscard]] const std::vector<TensorView>& tensors() const { return tensors_; }
  [[nodiscard]] const TensorView* Find(std::string_view name) const;
  [[nodiscard]] uint64_t n_bytes() const { return n_bytes_; }
  [[nodiscard]] size_t n_shards() const { return maps_.size(); }

 private:
  Status AddFile(const std::string& path);
  Status OpenIndexed(const std::string& path);

  std::vector<MappedFile> maps_;
  std::vector<TensorView> tensors_;
  std::vector<std::pair<std::string, size_t>> by_name_;  // sorted
  uint64_t n_bytes_ = 0;
};

}  // namespace facet::safetensors
