// SPDX-License-Identifier: Apache-2.0
// Attention of queries with a tile, with NEON: keys side by side for the scores of up to 4 queries,
// channels side by side for their outputs, so that each chain is one lane. Equal to
// attention_scalar.cc bit for bit. Compiled for Armv8.2; uses no inline function of the library or
// the standard library (vector_math_neon.h says why).
//
// Sums of up to 4 queries take 8 to 16 of the 32 registers, enough to hide the latency of a fused
// multiply-add on two to four units; for each 16 of them 4 to 8 vectors are loaded and converted
// and 2 to 4 factors broadcast.
#include "compute/kernels.h"
#include "compute/vector_math_neon.h"

namespace facet {
namespace {

constexpr int kTile = kKvBlockPositions;
constexpr int kVectors = kTile / 4;
constexpr int kGroup = 32;       // channels that share a scale
constexpr int kMostQueries = 4;  // that have their sums in registers together

// Vectors of sums for each of n queries.
constexpr int VectorsFor(int n) { return n <= 2 ? 8 : 4; }

// Element i and the 3 after it, as floats without their scale.
struct StoredF32 {
  static constexpr bool kHasScales = false;
  static float32x4_t Load(const std::byte* data, int64_t i) {
    return vld1q_f32(reinterpret_cast<const float*>(data) + i);
  }
};

struct StoredF16 {
  static constexpr bool kHasScales = false;
  static float32x4_t Load(const std::byte* data, int64_t i) { return LoadF16(data + 2 * i); }
};

struct StoredBf16 {
  static constexpr bool kHasScales = false;
  static float32x4_t Load(const std::byte* data, int64_t i) { return LoadBf16(data + 2 * i); }
};

struct StoredQ8 {
  static constexpr bool kHasScales = true;
  static float32x4_t Load(const std::byte* data, int64_t i) {
    int32_t word;
    __builtin_memcpy(&word, data + i, sizeof(word));
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(word)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
  }
};

// The scales of 4 keys for the channels around d, and that of one key's channels around d.
inline float32x4_t KeyScales(const KvTile& tile, int d, int key) {
  return LoadF16(tile.k_scales + 2 * (d / kGroup * kTile + key));
}

inline float32x4_t ValueScale(const KvTile& tile, int key, int d) {
  uint16_t bits;
  __builtin_memcpy(&bits, tile.v_scales + 2 * (key * (tile.d_head / kGroup) + d / kGroup),
                   sizeof(bits));
  return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits)));
}

// --- scores ---

// Scores of queries [first, first + kN) with keys [4 vector, 4 (vector + kC)).
template <typename Stored, int kN, int kC>
inline void AddScores(const KvTile& tile, const float* q, int n, int vector, float* s) {
  float32x4_t sums[kN][kC];
  for (auto& query : sums) {
    for (float32x4_t& sum : query) {
      sum = vdupq_n_f32(0.0f);
    }
  }
  float32x4_t scales[kC] = {};
  for (int d = 0; d < tile.d_head; ++d) {
    if (Stored::kHasScales && d % kGroup == 0) {
      for (int c = 0; c < kC; ++c) {
        scales[c] = KeyScales(tile, d, 4 * (vector + c));
      }
    }
    for (int c = 0; c < kC; ++c) {
      float32x4_t key = Stored::Load(tile.k, int64_t{d} * kTile + 4 * (vector + c));
      if constexpr (Stored::kHasScales) {
        key = vmulq_f32(key, scales[c]);
      }
      for (int i = 0; i < kN; ++i) {
        sums[i][c] = vfmaq_n_f32(sums[i][c], key, q[d * n + i]);
      }
    }
  }
  for (int i = 0; i < kN; ++i) {
    for (int c = 0; c < kC; ++c) {
      vst1q_f32(s + i * kTile + 4 * (vector + c), sums[i][c]);
    }
  }
}

template <typename Stored, int kN>
void ScoreQueries(const KvTile& tile, const float* q, int n, float* s) {
  constexpr int kC = VectorsFor(kN);
  for (int vector = 0; vector < kVectors; vector += kC) {
    AddScores<Stored, kN, kC>(tile, q, n, vector, s);
  }
}

// Queries are taken in pieces of sizes as equal as can be: 5 are 3 and 2.
template <typename Stored>
void Scores(const KvTile& tile, const float* q, int n, float* s) {
  constexpr void (*kScore[kMostQueries])(const KvTile&, const float*, int, float*) = {
      ScoreQueries<Stored, 1>, ScoreQueries<Stored, 2>, ScoreQueries<Stored, 3>,
      ScoreQueries<Stored, 4>};
  const int n_pieces = (n + kMostQueries - 1) / kMostQueries;
  for (int piece = 0; piece < n_pieces; ++piece) {
    const int first = n * piece / n_pieces;
    const int size = n * (piece + 1) / n_pieces - first;
    kScore[size - 1](tile, q + first, n, s + first * kTile);
  }
}

// --- values ---

// Channels [d, d + 4 kC), within one group, of queries [first, first + kN).
template <typename Stored, int kN, int kC>
inline void AddValues(const KvTile& tile, const ValuesTask& task, int first, int d) {
  float32x4_t sums[kN][kC];
  for (int i = 0; i < kN; ++i) {
    for (int c = 0; c < kC; ++c) {
      const float* out = task.out[first + i] + d + 4 * c;
      sums[i][c] = vmulq_n_f32(vld1q_f32(out), task.corrections[first + i]);
    }
  }
  const float* p = task.p + first * kTile;
  for (int k = task.low; k < task.high; ++k) {
    float32x4_t scale = vdupq_n_f32(1.0f);
    if constexpr (Stored::kHasScales) {
      scale = ValueScale(tile, k, d);
    }
    for (int c = 0; c < kC; ++c) {
      float32x4_t value = Stored::Load(tile.v, int64_t{k} * tile.d_head + d + 4 * c);
      if constexpr (Stored::kHasScales) {
        value = vmulq_f32(value, scale);
      }
      for (int i = 0; i < kN; ++i) {
        sums[i][c] = vfmaq_n_f32(sums[i][c], value, p[i * kTile + k]);
      }
    }
  }
  for (int i = 0; i < kN; ++i) {
    for (int c = 0; c < kC; ++c) {
      vst1q_f32(task.out[first + i] + d + 4 * c, sums[i][c]);
    }
  }
}

template <typename Stored, int kN>
void ValueQueries(const KvTile& tile, const ValuesTask& task, int first) {
  constexpr int kC = VectorsFor(kN);
  int d = task.begin;
  for (; d + 4 * kC <= task.end; d += 4 * kC) {
    AddValues<Stored, kN, kC>(tile, task, first, d);
  }
  for (; d < task.end; d += 4) {
    AddValues<Stored, kN, 1>(tile, task, first, d);
  }
}

template <typename Stored>
void Values(const KvTile& tile, const ValuesTask& task) {
  constexpr void (*kValue[kMostQueries])(const KvTile&, const ValuesTask&, int) = {
      ValueQueries<Stored, 1>, ValueQueries<Stored, 2>, ValueQueries<Stored, 3>,
      ValueQueries<Stored, 4>};
  const int n_pieces = (task.n + kMostQueries - 1) / kMostQueries;
  for (int piece = 0; piece < n_pieces; ++piece) {
    const int first = task.n * piece / n_pieces;
    const int size = task.n * (piece + 1) / n_pieces - first;
    kValue[size - 1](tile, task, first);
  }
}

// --- the rest ---

template <typename Stored>
void Unpack(const KvTile& tile, float* k, float* v) {
  for (int d = 0; d < tile.d_head; ++d) {
    for (int key = 0; key < kTile; key += 4) {
      const int64_t at = int64_t{d} * kTile + key;
      float32x4_t value = Stored::Load(tile.k, at);
      if constexpr (Stored::kHasScales) {
        value = vmulq_f32(value, KeyScales(tile, d, key));
      }
      vst1q_f32(k + at, value);
    }
  }
  for (int key = 0; key < kTile; ++key) {
    for (int d = 0; d < tile.d_head; d += 4) {
      const int64_t at = int64_t{key} * tile.d_head + d;
      float32x4_t value = Stored::Load(tile.v, at);
      if constexpr (Stored::kHasScales) {
        value = vmulq_f32(value, ValueScale(tile, key, d));
      }
      vst1q_f32(v + at, value);
    }
  }
}

inline float ExpOne(float x) { return vgetq_lane_f32(Exp4(vdupq_n_f32(x)), 0); }

// The tree of 32 lanes: lane i += lane i + 16, then as 16 lanes.
inline float Tree32(const float32x4_t (&lanes)[kVectors]) {
  float32x4_t half[kVectors / 2];
  for (int c = 0; c < kVectors / 2; ++c) {
    half[c] = vaddq_f32(lanes[c], lanes[c + kVectors / 2]);
  }
  return Tree16(half);
}

// Turns the scores of a query into probabilities relative to the largest so far.
inline void NormalizeQuery(float* p, AttentionState* state, float* correction,
                           const uint32x4_t (&visible)[kVectors]) {
  const float32x4_t least = vdupq_n_f32(-__builtin_inff());
  float32x4_t scores[kVectors];
  float32x4_t most = least;
  for (int c = 0; c < kVectors; ++c) {
    scores[c] = vbslq_f32(visible[c], vld1q_f32(p + 4 * c), least);
    most = Larger(scores[c], most);
  }
  const float tile_largest = vmaxvq_f32(most);
  const float largest = tile_largest > state->largest ? tile_largest : state->largest;
  for (int c = 0; c < kVectors; ++c) {
    const float32x4_t e = Exp4(vsubq_f32(scores[c], vdupq_n_f32(largest)));
    scores[c] = vbslq_f32(visible[c], e, vdupq_n_f32(0.0f));
    vst1q_f32(p + 4 * c, scores[c]);
  }
  *correction = ExpOne(state->largest - largest);
  *state = {largest, __builtin_fmaf(state->sum, *correction, Tree32(scores))};
}

void Softmax(const SoftmaxTask& task) {
  uint32x4_t visible[kVectors];
  for (int c = 0; c < kVectors; ++c) {
    visible[c] = vbicq_u32(FirstLanes(task.high - 4 * c), FirstLanes(task.low - 4 * c));
  }
  for (int i = 0; i < task.n; ++i) {
    NormalizeQuery(task.s + i * kTile, &task.states[i], &task.corrections[i], visible);
  }
}

void Divide(float divisor, int64_t n, float* x) {
  for (int64_t i = 0; i < n; i += 4) {
    vst1q_f32(x + i, vdivq_f32(vld1q_f32(x + i), vdupq_n_f32(divisor)));
  }
}

template <typename Stored>
constexpr KvTypeKernels kTypeKernels = {Scores<Stored>, Values<Stored>, Unpack<Stored>};

}  // namespace

const AttentionKernels kAttentionNeon = {
    .f32 = {Scores<StoredF32>, Values<StoredF32>, nullptr},
    .f16 = kTypeKernels<StoredF16>,
    .bf16 = kTypeKernels<StoredBf16>,
    .q8_0 = kTypeKernels<StoredQ8>,
    .softmax = Softmax,
    .divide = Divide,
};

}  // namespace facet
