// SPDX-License-Identifier: Apache-2.0
// The row operations with AVX2: equal to rows_scalar.cc bit for bit. Compiled with -mavx2 -mfma
// -mf16c; uses no inline function of the library or the standard library (vector_math_avx2.h says
// why).
#include <immintrin.h>

#include "compute/kernels.h"
#include "compute/vector_math_avx2.h"

namespace facet {
namespace {

// Calls body(k, load, store) for each 8 values; at the end load and store touch only the values
// that exist.
struct Part {
  __m256i mask;
  bool is_whole;

  [[nodiscard]] __m256 Load(const float* x) const {
    return is_whole ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, mask);
  }
  void Store(float* x, __m256 value) const {
    if (is_whole) {
      _mm256_storeu_ps(x, value);
    } else {
      _mm256_maskstore_ps(x, mask, value);
    }
  }
};

template <typename Body>
inline void ForEach8(int64_t n, const Body& body) {
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    body(k, Part{_mm256_set1_epi32(-1), true});
  }
  if (k < n) {
    body(k, Part{FirstLanes(n - k), false});
  }
}

// The two registers of 16 lanes that a row sum runs in. `Fold` is a step of one lane: new =
// Fold(value, old); lanes without a value stay as they are.
struct Lanes16 {
  __m256 low;
  __m256 high;
};

template <typename Fold>
inline Lanes16 FoldRow(const float* x, int64_t n, float start, const Fold& fold) {
  Lanes16 lanes = {_mm256_set1_ps(start), _mm256_set1_ps(start)};
  int64_t k = 0;
  for (; k + 16 <= n; k += 16) {
    lanes.low = fold(_mm256_loadu_ps(x + k), lanes.low);
    lanes.high = fold(_mm256_loadu_ps(x + k + 8), lanes.high);
  }
  if (k < n) {
    const __m256i first = FirstLanes(n - k);
    const __m256i second = FirstLanes(n - k - 8);
    const __m256 low = fold(_mm256_maskload_ps(x + k, first), lanes.low);
    lanes.low = _mm256_blendv_ps(lanes.low, low, _mm256_castsi256_ps(first));
    if (n - k > 8) {
      const __m256 high = fold(_mm256_maskload_ps(x + k + 8, second), lanes.high);
      lanes.high = _mm256_blendv_ps(lanes.high, high, _mm256_castsi256_ps(second));
    }
  }
  return lanes;
}

void RmsNormRow(const float* x, const float* weight, float eps, int64_t n, float* y) {
  const Lanes16 squares = FoldRow(
      x, n, 0.0f, [](__m256 value, __m256 sum) { return _mm256_fmadd_ps(value, value, sum); });
  const float mean = Tree8(_mm256_add_ps(squares.low, squares.high)) / static_cast<float>(n);
  const __m128 root = _mm_sqrt_ss(_mm_set_ss(mean + eps));
  const __m256 inverse = _mm256_set1_ps(1.0f / _mm_cvtss_f32(root));
  ForEach8(n, [=](int64_t k, const Part& part) {
    __m256 value = _mm256_mul_ps(part.Load(x + k), inverse);
    if (weight != nullptr) {
      value = _mm256_mul_ps(value, part.Load(weight + k));
    }
    part.Store(y + k, value);
  });
}

void GeluMulRun(const float* gate, const float* up, int64_t n, float* out) {
  ForEach8(n, [=](int64_t k, const Part& part) {
    const __m256 activated = GeluTanh8(part.Load(gate + k));
    part.Store(out + k, _mm256_mul_ps(activated, part.Load(up + k)));
  });
}

void SigmoidMulRun(const float* gate, const float* up, int64_t n, float* out) {
  ForEach8(n, [=](int64_t k, const Part& part) {
    const __m256 minus = _mm256_xor_ps(part.Load(gate + k), _mm256_set1_ps(-0.0f));
    const __m256 divisor = _mm256_add_ps(_mm256_set1_ps(1.0f), Exp8(minus));
    part.Store(out + k, _mm256_div_ps(part.Load(up + k), divisor));
  });
}

void AddRun(const float* y, int64_t n, float* x) {
  ForEach8(n, [=](int64_t k, const Part& part) {
    part.Store(x + k, _mm256_add_ps(part.Load(x + k), part.Load(y + k)));
  });
}

void ScaleRun(float factor, int64_t n, float* x) {
  ForEach8(n, [=](int64_t k, const Part& part) {
    part.Store(x + k, _mm256_mul_ps(part.Load(x + k), _mm256_set1_ps(factor)));
  });
}

void AddScaleRun(const float* a, const float* b, float factor, int64_t n, float* out) {
  ForEach8(n, [=](int64_t k, const Part& part) {
    const __m256 sum = _mm256_add_ps(part.Load(a + k), part.Load(b + k));
    part.Store(out + k, _mm256_mul_ps(sum, _mm256_set1_ps(factor)));
  });
}

void ClampRun(const float* x, float low, float high, int64_t n, float* y) {
  // Of a NaN, and of zeros of both signs, the second operand is taken, as by the comparisons.
  ForEach8(n, [=](int64_t k, const Part& part) {
    const __m256 raised = _mm256_max_ps(_mm256_set1_ps(low), part.Load(x + k));
    part.Store(y + k, _mm256_min_ps(_mm256_set1_ps(high), raised));
  });
}

void SoftcapRun(float cap, int64_t n, float* x) {
  ForEach8(n, [=](int64_t k, const Part& part) {
    const __m256 ratio = _mm256_div_ps(part.Load(x + k), _mm256_set1_ps(cap));
    part.Store(x + k, _mm256_mul_ps(Tanh8(ratio), _mm256_set1_ps(cap)));
  });
}

void ExpRun(const float* x, int64_t n, float* y) {
  ForEach8(n, [=](int64_t k, const Part& part) { part.Store(y + k, Exp8(part.Load(x + k))); });
}

void TanhRun(const float* x, int64_t n, float* y) {
  ForEach8(n, [=](int64_t k, const Part& part) { part.Store(y + k, Tanh8(part.Load(x + k))); });
}

void SoftmaxRow(const float* x, int64_t n, float* p) {
  const Lanes16 most = FoldRow(x, n, -__builtin_inff(), [](__m256 value, __m256 largest) {
    return _mm256_max_ps(value, largest);
  });
  const __m256 largest = _mm256_set1_ps(Max8(_mm256_max_ps(most.low, most.high)));
  ForEach8(n, [=](int64_t k, const Part& part) {
    part.Store(p + k, Exp8(_mm256_sub_ps(part.Load(x + k), largest)));
  });
  const Lanes16 sums =
      FoldRow(p, n, 0.0f, [](__m256 value, __m256 sum) { return _mm256_add_ps(sum, value); });
  const __m256 sum = _mm256_set1_ps(Tree8(_mm256_add_ps(sums.low, sums.high)));
  ForEach8(n, [=](int64_t k, const Part& part) {
    part.Store(p + k, _mm256_div_ps(part.Load(p + k), sum));
  });
}

void RopeHead(const float* cosine, const float* sine, int64_t n_pairs, int64_t d_head, float* x) {
  float* second = x + d_head / 2;
  ForEach8(n_pairs, [=](int64_t i, const Part& part) {
    const __m256 a = part.Load(x + i);
    const __m256 b = part.Load(second + i);
    const __m256 c = part.Load(cosine + i);
    const __m256 s = part.Load(sine + i);
    part.Store(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
    part.Store(second + i, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
  });
}

}  // namespace

const RowKernels kRowsAvx2 = {
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
