// SPDX-License-Identifier: Apache-2.0
#include "model/clipped_linear.h"

#include <algorithm>

#include "compute/ops.h"

namespace facet {

void BindClippedLinear(const std::string& stem, int64_t n_out, int64_t n_in, TensorBinder* binder,
                       ClippedLinear* linear) {
  binder->Matrix(stem + ".weight", n_out, n_in, &linear->weight);
  linear->in_min = binder->Scalar(stem + ".input_min", -ClippedLinear::kNoBound);
  linear->in_max = binder->Scalar(stem + ".input_max", ClippedLinear::kNoBound);
  linear->out_min = binder->Scalar(stem + ".output_min", -ClippedLinear::kNoBound);
  linear->out_max = binder->Scalar(stem + ".output_max", ClippedLinear::kNoBound);
  binder->RefuseUnordered(stem + ".input_min", linear->in_min, linear->in_max);
  binder->RefuseUnordered(stem + ".output_min", linear->out_min, linear->out_max);
}

void ClippedInput::Set(const float* x, int64_t n_rows, int64_t n_in) {
  x_ = x;
  n_rows_ = n_rows;
  n_in_ = n_in;
}

void ClippedInput::Apply(const ComputeContext& context, const ClippedLinear& linear, float* y) {
  const float* x = x_;
  if (linear.in_min != -ClippedLinear::kNoBound || linear.in_max != ClippedLinear::kNoBound) {
    float* clipped = Reserve(&clipped_, n_rows_ * n_in_);
    Clamp(context, x_, {linear.in_min, linear.in_max}, n_rows_ * n_in_, clipped);
    x = clipped;
  }
  activations_.Set(x, n_rows_, n_in_);
  MatMul(context, linear.weight, activations_, y);
  if (linear.out_min != -ClippedLinear::kNoBound || linear.out_max != ClippedLinear::kNoBound) {
    Clamp(context, y, {linear.out_min, linear.out_max}, n_rows_ * linear.weight.n_out, y);
  }
}

}  // namespace facet
