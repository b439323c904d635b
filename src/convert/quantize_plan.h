// SPDX-License-Identifier: Apache-2.0
// Which tensor of a quantised file gets which type, from names and shapes alone. The table that it
// follows stands in docs/quantization.md, "Files": it depends on nothing else, so that two files of
// one type hold the same types.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/tensor_type.h"

namespace facet {

/// A tensor as planning sees it. `shape` has the slowest axis first.
struct TensorOutline {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;
};

/// What the user asks for.
struct QuantizeChoice {
  std::string file_type = {};  ///< "q4_k_m": one of FileTypeNames()
  /// "NAME=TYPE": the type of the matrices whose name matches NAME (* stands for anything); the
  /// last that matches counts.
  std::vector<std::string> overrides = {};
  bool is_pure = false;            ///< the same type for every matrix
  bool allows_requantize = false;  ///< of tensors that are quantised already
};

struct QuantizePlan {
  uint32_t file_type_id = 0;      ///< general.file_type
  std::vector<TensorType> types;  ///< of each tensor, in their order
};

/// Refuses an unknown type, an override that matches no matrix or does not fit its rows, and,
/// unless it is allowed, giving another type to a quantised tensor. Tensors that a Gemma 4 text
/// model does not have, and vectors, take no part. `file` is what errors call the input.
Result<QuantizePlan> PlanQuantization(const std::string& file,
                                      std::span<const TensorOutline> tensors,
                                      const QuantizeChoice& choice);

/// "q4_k_m, q4_k_s, ...": what a user may ask for.
std::string FileTypeNames();

/// Whether `text` matches `pattern`, in which * stands for any run of characters, also none.
bool MatchesGlob(std::string_view pattern, std::string_view text);

}  // namespace facet
