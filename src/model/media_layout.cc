// SPDX-License-Identifier: Apache-2.0
#include "model/media_layout.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "quant/codec.h"

namespace facet {
namespace {

constexpr int64_t kChannels = 3;
constexpr int64_t kMaxElements = int64_t{1} << 28;

/// The values as floats, or nothing when there is no telling them.
AlignedVector<float> Decode(const CheckpointTensor& tensor) {
  AlignedVector<float> values;
  const Codec* codec = FindCodec(tensor.type);
  int64_t n = 1;
  for (const int64_t size : tensor.shape) {
    n = n > kMaxElements ? n : n * size;  // sizes are at most 2^60 together (format/)
  }
  if (codec != nullptr && n <= kMaxElements) {
    values.resize(static_cast<size_t>(n));
    codec->decode(tensor.data.data(), n, values.data());
  }
  return values;
}

void Own(AlignedVector<std::byte> bytes, CheckpointTensor* tensor, OwnedTensors* owned) {
  owned->push_back(std::move(bytes));
  tensor->data = owned->back();
}

void OwnFloats(const AlignedVector<float>& values, CheckpointTensor* tensor, OwnedTensors* owned) {
  AlignedVector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  tensor->type = TensorType::kF32;
  Own(std::move(bytes), tensor, owned);
}

/// The side of a patch with so many values, or 0.
int64_t SideOf(int64_t n_values) {
  for (const int64_t side : {int64_t{16}, int64_t{48}}) {
    if (n_values == side * side * kChannels) {
      return side;
    }
  }
  return 0;
}

/// Columns from (channel, row, column) to (row, column, channel).
void PlanesToPixels(CheckpointTensor* tensor, OwnedTensors* owned) {
  const bool is_vector = tensor->shape.size() == 1;
  const int64_t n_rows = is_vector ? 1 : tensor->shape[0];
  int64_t n_columns = 1;
  for (size_t axis = is_vector ? 0 : 1; axis < tensor->shape.size(); ++axis) {
    n_columns = n_columns > kMaxElements ? n_columns : n_columns * tensor->shape[axis];
  }
  const int64_t side = SideOf(n_columns);
  const AlignedVector<float> planes = side > 0 ? Decode(*tensor) : AlignedVector<float>();
  if (planes.empty()) {
    return;
  }
  AlignedVector<float> pixels(planes.size());
  const int64_t area = side * side;
  for (int64_t row = 0; row < n_rows; ++row) {
    const float* from = planes.data() + row * n_columns;
    float* to = pixels.data() + row * n_columns;
    for (int64_t i = 0; i < area; ++i) {
      for (int64_t c = 0; c < kChannels; ++c) {
        to[i * kChannels + c] = from[c * area + i];
      }
    }
  }
  tensor->shape =
      is_vector ? std::vector<int64_t>{n_columns} : std::vector<int64_t>{n_rows, n_columns};
  OwnFloats(pixels, tensor, owned);
}

/// [n_positions, 2, n] to [2, n_positions, n].
void AxesFirst(CheckpointTensor* tensor, OwnedTensors* owned) {
  if (tensor->shape.size() != 3 || tensor->shape[1] != 2 || tensor->data.empty()) {
    return;
  }
  const auto n_positions = static_cast<size_t>(tensor->shape[0]);
  const size_t row_bytes = tensor->data.size() / (2 * n_positions);
  AlignedVector<std::byte> bytes(tensor->data.size());
  for (size_t position = 0; position < n_positions; ++position) {
    for (size_t axis = 0; axis < 2; ++axis) {
      std::memcpy(bytes.data() + (axis * n_positions + position) * row_bytes,
                  tensor->data.data() + (position * 2 + axis) * row_bytes, row_bytes);
    }
  }
  tensor->shape = {2, tensor->shape[0], tensor->shape[2]};
  Own(std::move(bytes), tensor, owned);
}

void ApplySoftplus(CheckpointTensor* tensor, OwnedTensors* owned) {
  AlignedVector<float> values = Decode(*tensor);
  if (values.empty()) {
    return;
  }
  for (float& value : values) {
    const double x = value;
    value = static_cast<float>(x > 20 ? x : std::log1p(std::exp(x)));  // the same number in float
  }
  OwnFloats(values, tensor, owned);
}

}  // namespace

void ArrangeFromGguf(CheckpointTensor* tensor, OwnedTensors* owned) {
  static constexpr std::array<std::string_view, 3> kOfPixels = {
      "v.patch_embd.weight", "v.patch_norm.1.weight", "v.patch_norm.1.bias"};
  for (const std::string_view name : kOfPixels) {
    if (tensor->name == name) {
      PlanesToPixels(tensor, owned);
    }
  }
}

void ArrangeFromHf(CheckpointTensor* tensor, OwnedTensors* owned) {
  const std::string_view name = tensor->name;
  std::vector<int64_t>* shape = &tensor->shape;
  if (shape->empty()) {  // bounds of linears are scalars there
    *shape = {1};
  } else if (std::string_view(tensor->source_name).ends_with(".pos_embedding")) {
    AxesFirst(tensor, owned);
  } else if (name.ends_with(".per_dim_scale.weight")) {
    ApplySoftplus(tensor, owned);
  } else if (name.ends_with(".conv_dw.weight") && shape->size() == 3 && (*shape)[1] == 1) {
    shape->erase(shape->begin() + 1);
  }
}

}  // namespace facet
