// SPDX-License-Identifier: Apache-2.0
// Attention of queries with a tile in plain C++: the chain of attention.h as it stands there.
// Defines the result of every set.
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "compute/kernels.h"
#include "compute/vector_math.h"

namespace facet {
namespace {

constexpr int kTile = kKvBlockPositions;

uint16_t LoadBits(const std::byte* data, int i) {
  uint16_t bits;
  std::memcpy(&bits, data + 2 * i, sizeof(bits));
  return bits;
}

// Element `i` of a stored array, and for Q8_0 the scale that belongs to it.
float LoadF32(const std::byte* data, const std::byte*, int i, int) {
  float value;
  std::memcpy(&value, data + 4 * i, sizeof(value));
  return value;
}

float LoadF16(const std::byte* data, const std::byte*, int i, int) {
  return FloatFromF16(LoadBits(data, i));
}

float LoadBf16(const std::byte* data, const std::byte*, int i, int) {
  return FloatFromBf16(LoadBits(data, i));
}

float LoadQ8(const std::byte* data, const std::byte* scales, int i, int scale) {
  return static_cast<float>(static_cast<int8_t>(data[i])) * FloatFromF16(LoadBits(scales, scale));
}

using Loader = float (*)(const std::byte* data, const std::byte* scales, int i, int scale);

template <Loader Load>
float Key(const KvTile& tile, int d, int k) {
  return Load(tile.k, tile.k_scales, d * kTile + k, d / 32 * kTile + k);
}

template <Loader Load>
float Value(const KvTile& tile, int k, int d) {
  return Load(tile.v, tile.v_scales, k * tile.d_head + d, k * (tile.d_head / 32) + d / 32);
}

template <Loader Load>
void Scores(const KvTile& tile, const float* q, int n, float* s) {
  for (int i = 0; i < n * kTile; ++i) {
    s[i] = 0.0f;
  }
  for (int d = 0; d < tile.d_head; ++d) {
    for (int k = 0; k < kTile; ++k) {
      const float key = Key<Load>(tile, d, k);
      for (int i = 0; i < n; ++i) {
        s[i * kTile + k] = std::fma(q[d * n + i], key, s[i * kTile + k]);
      }
    }
  }
}

template <Loader Load>
void Values(const KvTile& tile, const ValuesTask& task) {
  for (int i = 0; i < task.n; ++i) {
    for (int d = task.begin; d < task.end; ++d) {
      task.out[i][d] *= task.corrections[i];
    }
  }
  for (int k = task.low; k < task.high; ++k) {
    for (int d = task.begin; d < task.end; ++d) {
      const float value = Value<Load>(tile, k, d);
      for (int i = 0; i < task.n; ++i) {
        task.out[i][d] = std::fma(task.p[i * kTile + k], value, task.out[i][d]);
      }
    }
  }
}

template <Loader Load>
void Unpack(const KvTile& tile, float* k, float* v) {
  for (int d = 0; d < tile.d_head; ++d) {
    for (int key = 0; key < kTile; ++key) {
      k[d * kTile + key] = Key<Load>(tile, d, key);
      v[key * tile.d_head + d] = Value<Load>(tile, key, d);
    }
  }
}

float Tree32(const float* p) {
  float lanes[kTile];
  std::memcpy(lanes, p, sizeof(lanes));
  for (int width = kTile / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

void Softmax(const SoftmaxTask& task) {
  for (int i = 0; i < task.n; ++i) {
    float* p = task.s + i * kTile;
    AttentionState& state = task.states[i];
    float largest = state.largest;
    for (int k = task.low; k < task.high; ++k) {
      largest = p[k] > largest ? p[k] : largest;
    }
    for (int k = 0; k < kTile; ++k) {
      p[k] = k >= task.low && k < task.high ? math::Exp(p[k] - largest) : 0.0f;
    }
    task.corrections[i] = math::Exp(state.largest - largest);
    state = {largest, std::fma(state.sum, task.corrections[i], Tree32(p))};
  }
}

void Divide(float divisor, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) {
    x[i] /= divisor;
  }
}

template <Loader Load>
constexpr KvTypeKernels kTypeKernels = {Scores<Load>, Values<Load>, Unpack<Load>};

}  // namespace

const AttentionKernels kAttentionScalar = {
    .f32 = {Scores<LoadF32>, Values<LoadF32>, nullptr},
    .f16 = kTypeKernels<LoadF16>,
    .bf16 = kTypeKernels<LoadBf16>,
    .q8_0 = kTypeKernels<LoadQ8>,
    .softmax = Softmax,
    .divide = Divide,
};

}  // namespace facet
