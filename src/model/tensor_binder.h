// SPDX-License-Identifier: Apache-2.0
// Tensors of a checkpoint, taken by name and shape. The first failure is kept and later calls do
// nothing, so that a list of bindings reads without a test after each line. What a model needs is
// said by those who bind: weights.cc and the encoders.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compute/matmul.h"
#include "model/checkpoint.h"

namespace facet {

class TensorBinder {
 public:
  using Finder = std::function<const CheckpointTensor*(std::string_view gguf_name)>;

  /// `path` is what errors call the checkpoint. The tensors must outlive what is bound to them.
  TensorBinder(std::string path, Finder find);

  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] bool Has(const std::string& name) const { return find_(name) != nullptr; }

  /// [n_out, n_in], where it lies in the file, of any type that MatMul reads.
  void Matrix(const std::string& name, int64_t n_out, int64_t n_in, WeightMatrix* matrix);
  /// The matrix `stem`.weight and, where the file has one, `stem`.scale [1], which multiplies its
  /// products: NVFP4 files keep the range of a matrix there.
  void Projection(const std::string& stem, int64_t n_out, int64_t n_in, WeightMatrix* matrix);
  /// [..., n], where it lies, as rows of n: a table for RowOf.
  void Table(const std::string& name, const std::vector<int64_t>& shape, WeightMatrix* table);
  /// [n], as floats. Refused: quantised ones.
  void Vector(const std::string& name, int64_t n, std::vector<float>* values);
  /// Any shape, likewise: slowest axis first, as in the file.
  void Floats(const std::string& name, const std::vector<int64_t>& shape,
              std::vector<float>* values);
  /// One value, or `otherwise` where the file has none.
  float Scalar(const std::string& name, float otherwise);
  /// Refuses bounds, the lower one of tensor `name`, unless low <= high.
  void RefuseUnordered(const std::string& name, float low, float high);

 protected:
  [[nodiscard]] std::string Where(std::string_view tensor) const;
  void Fail(Error error);
  /// Null when it is missing or misshapen, or when something failed before.
  const CheckpointTensor* Find(const std::string& name, const std::vector<int64_t>& shape);
  void CheckComputable(const CheckpointTensor& tensor, int64_t n_in);

 private:
  std::string path_;
  Finder find_;
  Status status_;
};

/// One warning for all tensors of a checkpoint that belong to no part of `whole`; none, none.
void WarnOfUnknown(const std::string& path, std::string_view whole,
                   const std::vector<std::string>& unknown);

/// values [table.n_in] = row `i` of a table.
void RowOf(const WeightMatrix& table, int64_t i, float* values);

}  // namespace facet
