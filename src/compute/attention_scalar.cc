// SPDX-License-Identifier: Apache-2.0
// Attention of one row in plain C++: the chain of attention.h as it stands there. Defines the
// result of every set.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

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

// One KV head of one block: element `i` of the stored array, and for Q8_0 the scale that belongs to
// it.
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

float Tree32(float* lanes) {
  for (int width = 16; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

// The keys [low, high) of a tile that are visible.
struct Visible {
  int low;
  int high;
};

struct Running {
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0.0f;
};

// Adds the visible keys of one tile to the output of one head.
template <Loader Load>
void AddTile(const AttentionTask& task, const std::byte* block, Visible keys, const float* q,
             float* out, Running& running) {
  const auto [low, high] = keys;
  float p[kTile] = {};
  float largest = running.largest;
  for (int k = low; k < high; ++k) {
    for (int d = 0; d < task.d_head; ++d) {
      const float key = Load(block + task.k_offset, block + task.k_scales_offset, d * kTile + k,
                             d / 32 * kTile + k);
      p[k] = std::fma(q[d], key, p[k]);
    }
    largest = p[k] > largest ? p[k] : largest;
  }
  for (int k = low; k < high; ++k) {
    p[k] = math::Exp(p[k] - largest);
  }
  const float correction = math::Exp(running.largest - largest);
  for (int d = 0; d < task.d_head; ++d) {
    float value = out[d] * correction;
    for (int k = low; k < high; ++k) {
      const float v = Load(block + task.v_offset, block + task.v_scales_offset, k * task.d_head + d,
                           k * (task.d_head / 32) + d / 32);
      value = std::fma(p[k], v, value);
    }
    out[d] = value;
  }
  running.sum = std::fma(running.sum, correction, Tree32(p));
  running.largest = largest;
}

template <Loader Load>
void Attend(const AttentionTask& task) {
  for (int head = 0; head < task.n_heads; ++head) {
    const float* q = task.q + head * task.d_head;
    float* out = task.out + head * task.d_head;
    std::fill_n(out, task.d_head, 0.0f);
    Running running;
    for (int32_t tile = task.begin / kTile; tile * kTile < task.end; ++tile) {
      const int low = std::max(0, task.begin - tile * kTile);
      const int high = std::min(kTile, task.end - tile * kTile);
      AddTile<Load>(task, task.blocks[tile], {low, high}, q, out, running);
    }
    for (int d = 0; d < task.d_head; ++d) {
      out[d] /= running.sum;
    }
  }
}

}  // namespace

const AttentionKernels kAttentionScalar = {
    .f32 = Attend<LoadF32>,
    .f16 = Attend<LoadF16>,
    .bf16 = Attend<LoadBf16>,
    .q8_0 = Attend<LoadQ8>,
};

}  // namespace facet
