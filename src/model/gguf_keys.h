// SPDX-License-Identifier: Apache-2.0
// Typed access to the metadata of one model in a GGUF file, "PREFIX.KEY", with errors that name
// file and key. For the readers of configurations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/gguf.h"

namespace facet {

class GgufKeys {
 public:
  /// `metadata` and `file_name` must outlive the keys.
  GgufKeys(const gguf::Metadata& metadata, const std::string& file_name, std::string_view prefix)
      : metadata_(metadata), file_name_(file_name), prefix_(prefix) {}

  [[nodiscard]] const gguf::Value* Find(std::string_view key) const;
  /// "FILE, PREFIX.KEY"
  [[nodiscard]] std::string Where(std::string_view key) const;

  /// Refused where the key is missing, unless `otherwise` says what that means.
  Result<int> Int(std::string_view key, std::optional<int> otherwise) const;
  Result<float> Float(std::string_view key, float otherwise) const;
  /// One number per layer: an array of n_layers, or a scalar that holds for all.
  Result<std::vector<int>> PerLayer(std::string_view key, int n_layers,
                                    std::optional<int> otherwise) const;

 private:
  [[nodiscard]] std::string Full(std::string_view key) const;
  Result<int> Narrow(std::string_view key, std::optional<int64_t> number,
                     const gguf::Value& value) const;

  const gguf::Metadata& metadata_;
  const std::string& file_name_;
  std::string prefix_;
};

}  // namespace facet
