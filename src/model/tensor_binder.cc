// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_binder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/log.h"
#include "quant/codec.h"

namespace facet {
namespace {

std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

TensorBinder::TensorBinder(std::string path, Finder find)
    : path_(std::move(path)), find_(std::move(find)) {}

void TensorBinder::Matrix(const std::string& name, int64_t n_out, int64_t n_in,
                          WeightMatrix* matrix) {
  const CheckpointTensor* tensor = Find(name, {n_out, n_in});
  if (tensor != nullptr) {
    *matrix = {tensor->type, n_out, n_in, tensor->data.data()};
    CheckComputable(*tensor, n_in);
  }
}

void TensorBinder::Projection(const std::string& stem, int64_t n_out, int64_t n_in,
                              WeightMatrix* matrix) {
  Matrix(stem + ".weight", n_out, n_in, matrix);
  matrix->scale = Scalar(stem + ".scale", 1.0F);
}

void TensorBinder::Table(const std::string& name, const std::vector<int64_t>& shape,
                         WeightMatrix* table) {
  const CheckpointTensor* tensor = Find(name, shape);
  if (tensor == nullptr) {
    return;
  }
  int64_t n_rows = 1;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) {
    n_rows *= shape[axis];
  }
  *table = {tensor->type, n_rows, shape.back(), tensor->data.data()};
  CheckComputable(*tensor, shape.back());
}

void TensorBinder::Vector(const std::string& name, int64_t n, std::vector<float>* values) {
  Floats(name, {n}, values);
}

void TensorBinder::Floats(const std::string& name, const std::vector<int64_t>& shape,
                          std::vector<float>* values) {
  const CheckpointTensor* tensor = Find(name, shape);
  if (tensor == nullptr) {
    return;
  }
  const TensorTypeInfo info = InfoOf(tensor->type);
  const Codec* codec = FindCodec(tensor->type);
  if (codec == nullptr || info.block_elements != 1) {
    Fail(Refuse(Where(name), fmt::format("type {}", info.name), "F32, F16 or BF16"));
    return;
  }
  int64_t n = 1;
  for (const int64_t size : shape) {
    n *= size;
  }
  values->resize(static_cast<size_t>(n));
  codec->decode(tensor->data.data(), n, values->data());
}

float TensorBinder::Scalar(const std::string& name, float otherwise) {
  std::vector<float> value;
  if (Has(name)) {
    Vector(name, 1, &value);
  }
  return value.empty() ? otherwise : value[0];
}

void TensorBinder::RefuseUnordered(const std::string& name, float low, float high) {
  if (!(low <= high)) {
    Fail(Refuse(Where(name), fmt::format("{} with {} as the upper bound", low, high),
                "a lower bound that is not above the upper one"));
  }
}

std::string TensorBinder::Where(std::string_view tensor) const {
  return fmt::format("{}, tensor {}", path_, tensor);
}

void TensorBinder::Fail(Error error) {
  if (status_.ok()) {
    status_ = Status(std::move(error));
  }
}

const CheckpointTensor* TensorBinder::Find(const std::string& name,
                                           const std::vector<int64_t>& shape) {
  if (!status_.ok()) {
    return nullptr;
  }
  const CheckpointTensor* tensor = find_(name);
  if (tensor == nullptr) {
    Fail(Refuse(Where(name), "missing", fmt::format("shape {}", ShapeText(shape))));
  } else if (tensor->shape != shape) {
    Fail(Refuse(Where(name), fmt::format("shape {}", ShapeText(tensor->shape)), ShapeText(shape)));
    tensor = nullptr;
  }
  return tensor;
}

void TensorBinder::CheckComputable(const CheckpointTensor& tensor, int64_t n_in) {
  const TensorTypeInfo info = InfoOf(tensor.type);
  if (!IsMatMulType(tensor.type) || FindCodec(tensor.type) == nullptr) {
    Fail(Refuse(Where(tensor.name), fmt::format("type {}", info.name),
                "F32, F16, BF16 or a type of quantised weights (docs/quantization.md)"));
  } else if (n_in % info.block_elements != 0) {
    Fail(Refuse(Where(tensor.name), fmt::format("rows of {} in type {}", n_in, info.name),
                fmt::format("a multiple of {}", info.block_elements)));
  }
}

void WarnOfUnknown(const std::string& path, std::string_view whole,
                   const std::vector<std::string>& unknown) {
  if (!unknown.empty()) {
    Warn(fmt::format("{}: {} tensors are not part of {} and are ignored, the first is {}", path,
                     unknown.size(), whole, unknown.front()));
  }
}

void RowOf(const WeightMatrix& table, int64_t i, float* values) {
  FindCodec(table.type)->decode(table.row(i), table.n_in, values);
}

}  // namespace facet
