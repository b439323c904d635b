// SPDX-License-Identifier: Apache-2.0
// The row operations in plain C++. Defines the result of every set.
#include <cmath>
#include <limits>

#include "compute/kernels.h"
#include "compute/vector_math.h"

namespace facet {
namespace {

// Lane i += lane i + 8, + 4, + 2, + 1.
float Tree16(float* lanes) {
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

void RmsNormRow(const float* x, const float* weight, float eps, int64_t n, float* y) {
  float lanes[16] = {};
  for (int64_t k = 0; k < n; ++k) {
    lanes[k % 16] = std::fma(x[k], x[k], lanes[k % 16]);
  }
  const float mean = Tree16(lanes) / static_cast<float>(n);
  const float inverse = 1.0f / std::sqrt(mean + eps);
  for (int64_t k = 0; k < n; ++k) {
    const float normed = x[k] * inverse;
    y[k] = weight != nullptr ? normed * weight[k] : normed;
  }
}

void GeluMulRun(const float* gate, const float* up, int64_t n, float* out) {
  for (int64_t k = 0; k < n; ++k) {
    out[k] = math::GeluTanh(gate[k]) * up[k];
  }
}

void SigmoidMulRun(const float* gate, const float* up, int64_t n, float* out) {
  for (int64_t k = 0; k < n; ++k) {
    out[k] = up[k] / (1.0f + math::Exp(-gate[k]));
  }
}

void AddRun(const float* y, int64_t n, float* x) {
  for (int64_t k = 0; k < n; ++k) {
    x[k] += y[k];
  }
}

void ScaleRun(float factor, int64_t n, float* x) {
  for (int64_t k = 0; k < n; ++k) {
    x[k] *= factor;
  }
}

void AddScaleRun(const float* a, const float* b, float factor, int64_t n, float* out) {
  for (int64_t k = 0; k < n; ++k) {
    out[k] = (a[k] + b[k]) * factor;
  }
}

void ClampRun(const float* x, float low, float high, int64_t n, float* y) {
  for (int64_t k = 0; k < n; ++k) {
    const float raised = low > x[k] ? low : x[k];
    y[k] = high < raised ? high : raised;
  }
}

void SoftcapRun(float cap, int64_t n, float* x) {
  for (int64_t k = 0; k < n; ++k) {
    x[k] = math::Tanh(x[k] / cap) * cap;
  }
}

void SoftmaxRow(const float* x, int64_t n, float* p) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t k = 0; k < n; ++k) {
    largest = x[k] > largest ? x[k] : largest;
  }
  float lanes[16] = {};
  for (int64_t k = 0; k < n; ++k) {
    p[k] = math::Exp(x[k] - largest);
    lanes[k % 16] += p[k];
  }
  const float sum = Tree16(lanes);
  for (int64_t k = 0; k < n; ++k) {
    p[k] /= sum;
  }
}

void RopeHead(const float* cosine, const float* sine, int64_t n_pairs, int64_t d_head, float* x) {
  float* second = x + d_head / 2;
  for (int64_t i = 0; i < n_pairs; ++i) {
    const float a = x[i];
    const float b = second[i];
    x[i] = std::fma(a, cosine[i], -(b * sine[i]));
    second[i] = std::fma(b, cosine[i], a * sine[i]);
  }
}

void ExpRun(const float* x, int64_t n, float* y) {
  for (int64_t k = 0; k < n; ++k) {
    y[k] = math::Exp(x[k]);
  }
}

void TanhRun(const float* x, int64_t n, float* y) {
  for (int64_t k = 0; k < n; ++k) {
    y[k] = math::Tanh(x[k]);
  }
}

}  // namespace

const RowKernels kRowsScalar = {
    .rms_norm = RmsNormRow,
    .gelu_mul = GeluMulRun,
    .sigmoid_mul = SigmoidMulRun,
    .add = AddRun,
    .scale = ScaleRun,
    .add_scale = AddScaleRun,
    .clamp = ClampRun,
    .softcap = SoftcapRun,
    .softmax = SoftmaxRow,
    .rope = RopeHead,
    .exp = ExpRun,
    .tanh = TanhRun,
};

}  // namespace facet
