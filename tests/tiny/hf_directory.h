// SPDX-License-Identifier: Apache-2.0
// A Hugging Face checkpoint of testdata/ in memory, to be changed by a test and written to a fresh
// directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace facet::testing {

struct HfTensor {
  std::string name;
  std::string dtype;  ///< as in the header: "BF16"
  std::vector<int64_t> shape;
  std::string data;
};

class HfDirectory {
 public:
  /// "tiny-hf" or "text/NAME" below testdata/; those without a tokenizer get that of tiny-hf.
  explicit HfDirectory(std::string_view relative);

  Json config;
  std::vector<HfTensor> tensors;

  /// The tensor whose name ends so; aborts unless there is one.
  HfTensor& Find(std::string_view name_end);
  void Remove(std::string_view name_end);

  /// Writes DIRECTORY/NAME with the weights in `n_shards` files (with an index when there are
  /// several); returns the path.
  [[nodiscard]] std::string Write(const std::string& name, size_t n_shards = 1) const;

 private:
  std::string source_;
};

}  // namespace facet::testing
