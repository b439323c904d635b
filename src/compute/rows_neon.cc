// SPDX-License-Identifier: Apache-2.0
// The row operations with NEON: equal to rows_scalar.cc bit for bit. Compiled for Armv8.2; uses no
// inline function of the library or the standard library (vector_math_neon.h says why).
#include "compute/kernels.h"
#include "compute/vector_math_neon.h"

namespace facet {
namespace {

// What body(k, part) sees of four values; at the end load and store touch only the values that
// exist.
struct Part {
  int64_t n;  // 4 or fewer

  [[nodiscard]] float32x4_t Load(const float* x) const {
    return n == 4 ? vld1q_f32(x) : LoadFirst(x, n);
  }
  void Store(float* x, float32x4_t value) const {
    if (n == 4) {
      vst1q_f32(x, value);
    } else {
      StoreFirst(x, value, n);
    }
  }
};

template <typename Body>
inline void ForEach4(int64_t n, const Body& body) {
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    body(k, Part{4});
  }
  if (k < n) {
    body(k, Part{n - k});
  }
}

// The 16 lanes that a row sum runs in. `Fold` is a step of one lane: new = Fold(value, old); lanes
// without a value stay as they are.
template <typename Fold>
inline void FoldRow(const float* x, int64_t n, const Fold& fold, float32x4_t (&lanes)[4]) {
  int64_t k = 0;
  for (; k + 16 <= n; k += 16) {
    for (int i = 0; i < 4; ++i) {
      lanes[i] = fold(vld1q_f32(x + k + 4 * i), lanes[i]);
    }
  }
  for (int i = 0; k < n; k += 4, ++i) {
    const Part part = {n - k < 4 ? n - k : 4};
    lanes[i] = vbslq_f32(FirstLanes(part.n), fold(part.Load(x + k), lanes[i]), lanes[i]);
  }
}

inline void FillLanes(float value, float32x4_t (&lanes)[4]) {
  for (float32x4_t& lane : lanes) {
    lane = vdupq_n_f32(value);
  }
}

void RmsNormRow(const float* x, const float* weight, float eps, int64_t n, float* y) {
  float32x4_t squares[4];
  FillLanes(0.0f, squares);
  FoldRow(
      x, n, [](float32x4_t value, float32x4_t sum) { return vfmaq_f32(sum, value, value); },
      squares);
  const float mean = Tree16(squares) / static_cast<float>(n);
  const float root = vget_lane_f32(vsqrt_f32(vdup_n_f32(mean + eps)), 0);
  const float32x4_t inverse = vdupq_n_f32(1.0f / root);
  ForEach4(n, [=](int64_t k, const Part& part) {
    float32x4_t value = vmulq_f32(part.Load(x + k), inverse);
    if (weight != nullptr) {
      value = vmulq_f32(value, part.Load(weight + k));
    }
    part.Store(y + k, value);
  });
}

void GeluMulRun(const float* gate, const float* up, int64_t n, float* out) {
  ForEach4(n, [=](int64_t k, const Part& part) {
    const float32x4_t activated = GeluTanh4(part.Load(gate + k));
    part.Store(out + k, vmulq_f32(activated, part.Load(up + k)));
  });
}

void SigmoidMulRun(const float* gate, const float* up, int64_t n, float* out) {
  ForEach4(n, [=](int64_t k, const Part& part) {
    const float32x4_t divisor = vaddq_f32(vdupq_n_f32(1.0f), Exp4(vnegq_f32(part.Load(gate + k))));
    part.Store(out + k, vdivq_f32(part.Load(up + k), divisor));
  });
}

void AddRun(const float* y, int64_t n, float* x) {
  ForEach4(n, [=](int64_t k, const Part& part) {
    part.Store(x + k, vaddq_f32(part.Load(x + k), part.Load(y + k)));
  });
}

void ScaleRun(float factor, int64_t n, float* x) {
  ForEach4(n, [=](int64_t k, const Part& part) {
    part.Store(x + k, vmulq_n_f32(part.Load(x + k), factor));
  });
}

void AddScaleRun(const float* a, const float* b, float factor, int64_t n, float* out) {
  ForEach4(n, [=](int64_t k, const Part& part) {
    part.Store(out + k, vmulq_n_f32(vaddq_f32(part.Load(a + k), part.Load(b + k)), factor));
  });
}

void ClampRun(const float* x, float low, float high, int64_t n, float* y) {
  // Not vmaxq and vminq, which would tell zeros of both signs apart.
  const float32x4_t lowest = vdupq_n_f32(low);
  const float32x4_t highest = vdupq_n_f32(high);
  ForEach4(n, [=](int64_t k, const Part& part) {
    const float32x4_t value = part.Load(x + k);
    const float32x4_t raised = vbslq_f32(vcgtq_f32(lowest, value), lowest, value);
    part.Store(y + k, vbslq_f32(vcltq_f32(highest, raised), highest, raised));
  });
}

void SoftcapRun(float cap, int64_t n, float* x) {
  ForEach4(n, [=](int64_t k, const Part& part) {
    const float32x4_t ratio = vdivq_f32(part.Load(x + k), vdupq_n_f32(cap));
    part.Store(x + k, vmulq_n_f32(Tanh4(ratio), cap));
  });
}

void ExpRun(const float* x, int64_t n, float* y) {
  ForEach4(n, [=](int64_t k, const Part& part) { part.Store(y + k, Exp4(part.Load(x + k))); });
}

void TanhRun(const float* x, int64_t n, float* y) {
  ForEach4(n, [=](int64_t k, const Part& part) { part.Store(y + k, Tanh4(part.Load(x + k))); });
}

void SoftmaxRow(const float* x, int64_t n, float* p) {
  float32x4_t lanes[4];
  FillLanes(-__builtin_inff(), lanes);
  FoldRow(x, n, Larger, lanes);
  const float32x4_t most = Larger(Larger(lanes[0], lanes[1]), Larger(lanes[2], lanes[3]));
  const float32x4_t largest = vdupq_n_f32(vmaxvq_f32(most));
  ForEach4(n, [=](int64_t k, const Part& part) {
    part.Store(p + k, Exp4(vsubq_f32(part.Load(x + k), largest)));
  });
  FillLanes(0.0f, lanes);
  FoldRow(
      p, n, [](float32x4_t value, float32x4_t sum) { return vaddq_f32(sum, value); }, lanes);
  const float32x4_t sum = vdupq_n_f32(Tree16(lanes));
  ForEach4(
      n, [=](int64_t k, const Part& part) { part.Store(p + k, vdivq_f32(part.Load(p + k), sum)); });
}

void RopeHead(const float* cosine, const float* sine, int64_t n_pairs, int64_t d_head, float* x) {
  float* second = x + d_head / 2;
  ForEach4(n_pairs, [=](int64_t i, const Part& part) {
    const float32x4_t a = part.Load(x + i);
    const float32x4_t b = part.Load(second + i);
    const float32x4_t c = part.Load(cosine + i);
    const float32x4_t s = part.Load(sine + i);
    part.Store(x + i, vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c));
    part.Store(second + i, vfmaq_f32(vmulq_f32(a, s), b, c));
  });
}

}  // namespace

const RowKernels kRowsNeon = {
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
