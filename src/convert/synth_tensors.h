// SPDX-License-Identifier: Apache-2.0
// The tensors of a Gemma 4 checkpoint, and of a drafter, by name and shape, from the numbers of the
// model alone: what llama.cpp's converter would write (reference.md 9.1 and 9.2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor_type.h"
#include "model/config.h"
#include "model/drafter_checkpoint.h"

namespace facet {

/// A tensor of the file. Matrices are random with variance 1 / fan_in; vectors are constant.
struct SynthTensor {
  std::string name;
  TensorType type;             ///< BF16, or F32 for what stays so whatever the file's type
  std::vector<int64_t> shape;  ///< slowest axis first
  int64_t fan_in;              ///< 0: a vector
  float value;                 ///< of a vector

  [[nodiscard]] int64_t n_elements() const;
};

std::vector<SynthTensor> ModelTensors(const Config& config);

/// Of a drafter, with the head that it says. The ordering is I32, the tokens in their own order.
std::vector<SynthTensor> DrafterTensors(const DrafterConfig& drafter);

}  // namespace facet
