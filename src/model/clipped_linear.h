// SPDX-License-Identifier: Apache-2.0
// The linear layer of the encoders, with bounds on its input and output as the small towers were
// trained with (reference.md 3.5). Bounds that a file does not have do not clip.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/aligned_vector.h"
#include "compute/context.h"
#include "compute/matmul.h"
#include "model/tensor_binder.h"

namespace facet {

struct ClippedLinear {
  static constexpr float kNoBound = std::numeric_limits<float>::infinity();

  WeightMatrix weight;
  float in_min = -kNoBound;
  float in_max = kNoBound;
  float out_min = -kNoBound;
  float out_max = kNoBound;
};

/// The matrix `stem`.weight [n_out, n_in] and, where the file has them, `stem`.input_min,
/// .input_max, .output_min and .output_max. A lower bound above its upper bound, or one that is no
/// number, is refused.
void BindClippedLinear(const std::string& stem, int64_t n_out, int64_t n_in, TensorBinder* binder,
                       ClippedLinear* linear);

/// Rows that meet several linears: clipped to the bounds of each in memory that is kept from call
/// to call. For one thread; the work inside uses the pool.
class ClippedInput {
 public:
  /// Refers to `x` [n_rows, n_in], which must stay until the next Set.
  void Set(const float* x, int64_t n_rows, int64_t n_in);

  /// y [n_rows, n_out] = clip(W · clip(x)), each row alone. NaN stays NaN.
  void Apply(const ComputeContext& context, const ClippedLinear& linear, float* y);

 private:
  const float* x_ = nullptr;
  int64_t n_rows_ = 0;
  int64_t n_in_ = 0;
  AlignedVector<float> clipped_;
  Activations activations_;
};

}  // namespace facet
