// SPDX-License-Identifier: Apache-2.0
// A GGUF file with its matrices in another type. Everything that can be refused is refused before
// the first byte is written; then tensors are decoded and encoded some rows at a time, so that
// memory does not grow with the model. The bytes do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/tensor_type.h"
#include "convert/quantize_plan.h"

namespace facet {

struct QuantizeOptions {
  std::string in;   ///< a GGUF file, or the first of its parts
  std::string out;  ///< file to be written; it appears only when it is complete
  QuantizeChoice choice;
  std::string imatrix;  ///< file that says how much each column matters (imatrix.h); empty: none
  int n_threads = 1;
};

/// One line of what is to be done.
struct QuantizedTensor {
  std::string name;
  std::vector<int64_t> shape;  ///< slowest axis first
  TensorType from;
  TensorType to;
  uint64_t from_bytes;
  uint64_t to_bytes;
};

class Quantization {
 public:
  /// Opens, plans and checks. Refuses files of other models, an output that is the input, a type
  /// that Facet does not write, and an importance matrix of another model. Matrices that get fewer
  /// bits and are not in the importance matrix are counted in one warning.
  static Result<Quantization> Prepare(const QuantizeOptions& options);
  Quantization(Quantization&&) noexcept;
  ~Quantization();

  [[nodiscard]] const std::vector<QuantizedTensor>& tensors() const;

  /// Writes the output. Refuses values that are not finite or that the type cannot hold, naming
  /// tensor and position. `on_progress`, when set, is told the bytes written and those in all.
  Status Write(const std::function<void(uint64_t n_written, uint64_t n_total)>& on_progress) const;

 private:
  struct State;
  explicit Quantization(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace facet
