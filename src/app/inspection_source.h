// SPDX-License-Identifier: Apache-2.0
// A file of tensors as `facet inspect` sees it: whatever it is, a model, a drafter, a projector, a
// matrix of importance, it has metadata and tensors. Nothing is asked of either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "format/gguf.h"
#include "format/safetensors.h"

namespace facet {

struct SourceTensor {
  std::string name;         ///< GGUF's where a text model has one, else as in the file
  std::string source_name;  ///< as in the file
  TensorType type;
  std::vector<int64_t> shape;  ///< slowest axis first; may be empty
  std::span<const std::byte> data;
  size_t shard;     ///< from 0
  uint64_t offset;  ///< from the beginning of that shard

  [[nodiscard]] int64_t n_elements() const;
  /// Of a row, the fastest axis; 1 without axes.
  [[nodiscard]] int64_t n_columns() const { return shape.empty() ? 1 : shape.back(); }
};

/// An open file, or a directory of them. The data lies in mapped files that live as long as this
/// does; moving keeps it in place.
class InspectionSource {
 public:
  /// A GGUF file, the first of its shards, a safetensors file or its index, or a Hugging Face
  /// directory. Empty: the embedded model.
  static Result<InspectionSource> Open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_gguf() const { return gguf_.has_value(); }
  [[nodiscard]] std::string format() const;  ///< "GGUF v3"
  [[nodiscard]] size_t n_files() const;
  [[nodiscard]] uint64_t n_bytes() const;  ///< of all files of tensors
  /// Of a directory: the members of its config.json, the inner ones with dots in their names.
  [[nodiscard]] const gguf::Metadata& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<SourceTensor>& tensors() const { return tensors_; }
  [[nodiscard]] const SourceTensor* Find(std::string_view name) const;
  /// The text under a key, or "".
  [[nodiscard]] std::string TextOf(std::string_view key) const;

 private:
  Status OpenGguf();
  Status OpenSafetensors(const std::string& path);
  Status ReadConfig();

  std::string path_;
  std::optional<gguf::File> gguf_;
  std::optional<safetensors::File> safetensors_;
  gguf::Metadata metadata_;
  std::vector<SourceTensor> tensors_;
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace facet
