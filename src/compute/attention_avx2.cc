// SPDX-License-Identifier: Apache-2.0
// Attention of queries with a tile, with AVX2: 16 keys side by side for the scores of up to 4
// queries, 16 channels side by side for their outputs, so that each chain is one lane. Equal to
// attention_scalar.cc bit for bit. Compiled with -mavx2 -mfma -mf16c; uses no inline function of
// the library or the standard library (vector_math_avx2.h says why).
//
// What bounds it: 8 of the 16 registers are sums, as the latency of a multiply-add wants at two a
// cycle. For each 8 of them 2 vectors are loaded and converted and 4 factors broadcast, mostly in
// the shadow of the arithmetic: 70 % of the multiply-adds that a Zen 5 can do with this set.
#include <immintrin.h>

#include "compute/kernels.h"
#include "compute/vector_math_avx2.h"

namespace facet {
namespace {

constexpr int kTile = kKvBlockPositions;
constexpr int kVectors = kTile / 8;
constexpr int kGroup = 32;    // channels that share a scale
constexpr int kMostSums = 4;  // queries that have their sums in registers together

// Element i and the 7 after it, as floats without their scale.
struct StoredF32 {
  static constexpr int kBytes = 4;
  static constexpr bool kHasScales = false;
  static __m256 Load(const std::byte* data, int64_t i) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(data) + i);
  }
};

struct StoredF16 {
  static constexpr int kBytes = 2;
  static constexpr bool kHasScales = false;
  static __m256 Load(const std::byte* data, int64_t i) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 2 * i)));
  }
};

struct StoredBf16 {
  static constexpr int kBytes = 2;
  static constexpr bool kHasScales = false;
  static __m256 Load(const std::byte* data, int64_t i) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 2 * i));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

struct StoredQ8 {
  static constexpr int kBytes = 1;
  static constexpr bool kHasScales = true;
  static __m256 Load(const std::byte* data, int64_t i) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(data + i));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
};

// The scales of a group of channels for each of the 32 positions.
struct GroupScales {
  float of[kTile];
};

template <typename Stored>
inline void LoadKeyScales(const KvTile& tile, int d, GroupScales* scales) {
  for (int k = 0; Stored::kHasScales && k < kTile; k += 8) {
    _mm256_storeu_ps(scales->of + k, StoredF16::Load(tile.k_scales, d / kGroup * kTile + k));
  }
}

template <typename Stored>
inline void LoadValueScales(const KvTile& tile, int d, GroupScales* scales) {
  const int64_t n_groups = tile.d_head / kGroup;
  for (int k = 0; Stored::kHasScales && k < kTile; ++k) {
    uint16_t bits;
    __builtin_memcpy(&bits, tile.v_scales + 2 * (k * n_groups + d / kGroup), sizeof(bits));
    scales->of[k] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
  }
}

// Fetches element i of what is read next into the second cache: the first would lose what is being
// read.
template <typename Stored>
inline void Fetch(const std::byte* next, int64_t i) {
  _mm_prefetch(next + Stored::kBytes * i, _MM_HINT_T1);
}

// Channel d of keys [k, k + 8).
template <typename Stored>
inline __m256 Key(const KvTile& tile, const GroupScales& scales, int d, int k) {
  const __m256 key = Stored::Load(tile.k, int64_t{d} * kTile + k);
  return Stored::kHasScales ? _mm256_mul_ps(key, _mm256_loadu_ps(scales.of + k)) : key;
}

// Channels [d, d + 8) of the value of position k.
template <typename Stored>
inline __m256 Value(const KvTile& tile, const GroupScales& scales, int d, int k) {
  const __m256 value = Stored::Load(tile.v, int64_t{k} * tile.d_head + d);
  return Stored::kHasScales ? _mm256_mul_ps(value, _mm256_set1_ps(scales.of[k])) : value;
}

// --- scores ---

// Keys [k, k + 16) and queries [first, first + kN) of n.
struct ScoresPart {
  const float* q;  // [d_head][n]
  float* s;        // [n][32]
  int n;
  int first;
  int k;
};

template <typename Stored, int kN>
void AddScores(const KvTile& tile, const ScoresPart& part) {
  __m256 sums[kN][2];
#pragma GCC unroll 4
  for (int i = 0; i < kN; ++i) {
    sums[i][0] = sums[i][1] = _mm256_setzero_ps();
  }
  GroupScales scales;
  const std::byte* next = tile.after_k != nullptr ? tile.after_k : tile.k;
  const float* q = part.q + part.first;
  const int step = Stored::kHasScales ? kGroup : tile.d_head;
  for (int begin = 0; begin < tile.d_head; begin += step) {
    LoadKeyScales<Stored>(tile, begin, &scales);
    for (int d = begin; d < begin + step; ++d, q += part.n) {
      Fetch<Stored>(next, int64_t{d} * kTile + part.k);
#pragma GCC unroll 2
      for (int c = 0; c < 2; ++c) {
        const __m256 key = Key<Stored>(tile, scales, d, part.k + 8 * c);
#pragma GCC unroll 4
        for (int i = 0; i < kN; ++i) {
          sums[i][c] = _mm256_fmadd_ps(_mm256_broadcast_ss(q + i), key, sums[i][c]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kN; ++i) {
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      _mm256_storeu_ps(part.s + (part.first + i) * kTile + part.k + 8 * c, sums[i][c]);
    }
  }
}

// Queries of the first of at most two equal groups.
inline int GroupOf(int n) { return n > kMostSums ? (n + 1) / 2 : n; }

template <typename Stored>
void Scores(const KvTile& tile, const float* q, int n, float* s) {
  constexpr void (*kAdd[kMostSums])(const KvTile&, const ScoresPart&) = {
      AddScores<Stored, 1>, AddScores<Stored, 2>, AddScores<Stored, 3>, AddScores<Stored, 4>};
  const int group = GroupOf(n);
  for (int k = 0; k < kTile; k += 16) {
    for (int first = 0; first < n; first += group) {
      const int size = n - first < group ? n - first : group;
      kAdd[size - 1](tile, {q, s, n, first, k});
    }
  }
}

// --- softmax ---

// Turns scores into probabilities relative to the largest so far; returns their sum.
inline float Normalize(float* s, __m256 largest, const __m256 (&visible)[kVectors]) {
  __m256 p[kVectors];
  for (int c = 0; c < kVectors; ++c) {
    const __m256 e = Exp8(_mm256_sub_ps(_mm256_loadu_ps(s + 8 * c), largest));
    p[c] = _mm256_and_ps(e, visible[c]);
    _mm256_storeu_ps(s + 8 * c, p[c]);
  }
  return Tree8(_mm256_add_ps(_mm256_add_ps(p[0], p[2]), _mm256_add_ps(p[1], p[3])));
}

void Softmax(const SoftmaxTask& task) {
  const __m256 nothing = _mm256_set1_ps(-__builtin_inff());
  __m256 visible[kVectors];
  for (int c = 0; c < kVectors; ++c) {
    visible[c] = _mm256_castsi256_ps(
        _mm256_andnot_si256(FirstLanes(task.low - 8 * c), FirstLanes(task.high - 8 * c)));
  }
  float largest[kMaxTileQueries];
  float change[kMaxTileQueries] = {};
  for (int i = 0; i < task.n; ++i) {
    __m256 most = nothing;
    for (int c = 0; c < kVectors; ++c) {
      const __m256 s = _mm256_loadu_ps(task.s + i * kTile + 8 * c);
      // A NaN is passed over: max returns its second operand then.
      most = _mm256_max_ps(_mm256_blendv_ps(nothing, s, visible[c]), most);
    }
    const float before = task.states[i].largest;
    const float found = Max8(most);
    largest[i] = found > before ? found : before;
    change[i] = before - largest[i];
  }
  _mm256_storeu_ps(change, Exp8(_mm256_loadu_ps(change)));
  for (int i = 0; i < task.n; ++i) {
    const float sum = Normalize(task.s + i * kTile, _mm256_set1_ps(largest[i]), visible);
    const float before = task.states[i].sum;
    task.corrections[i] = change[i];
    task.states[i] = {largest[i], __builtin_fmaf(before, change[i], sum)};
  }
}

// --- values ---

// Channels [d, d + 8 kVectorsWide) of queries [first, first + kN).
struct ValuesPart {
  const ValuesTask& task;
  const GroupScales& scales;  // of the channels' group
  int first;
  int d;
};

template <typename Stored, int kN, int kWide>
void AddValues(const KvTile& tile, const ValuesPart& part) {
  const ValuesTask& task = part.task;
  const float* p = task.p + part.first * kTile;
  __m256 sums[kN][kWide];
#pragma GCC unroll 4
  for (int i = 0; i < kN; ++i) {
    const __m256 correction = _mm256_broadcast_ss(task.corrections + part.first + i);
#pragma GCC unroll 2
    for (int c = 0; c < kWide; ++c) {
      const float* out = task.out[part.first + i] + part.d + 8 * c;
      sums[i][c] = _mm256_mul_ps(_mm256_loadu_ps(out), correction);
    }
  }
  const std::byte* next = tile.after_v != nullptr ? tile.after_v : tile.v;
  for (int k = task.low; k < task.high; ++k) {
    Fetch<Stored>(next, int64_t{k} * tile.d_head + part.d);
#pragma GCC unroll 2
    for (int c = 0; c < kWide; ++c) {
      const __m256 value = Value<Stored>(tile, part.scales, part.d + 8 * c, k);
#pragma GCC unroll 4
      for (int i = 0; i < kN; ++i) {
        sums[i][c] = _mm256_fmadd_ps(_mm256_broadcast_ss(p + i * kTile + k), value, sums[i][c]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kN; ++i) {
#pragma GCC unroll 2
    for (int c = 0; c < kWide; ++c) {
      _mm256_storeu_ps(task.out[part.first + i] + part.d + 8 * c, sums[i][c]);
    }
  }
}

template <typename Stored, int kWide>
inline void AddAllValues(const KvTile& tile, const ValuesTask& task, const GroupScales& scales,
                         int d) {
  constexpr void (*kAdd[kMostSums])(const KvTile&, const ValuesPart&) = {
      AddValues<Stored, 1, kWide>, AddValues<Stored, 2, kWide>, AddValues<Stored, 3, kWide>,
      AddValues<Stored, 4, kWide>};
  const int group = GroupOf(task.n);
  for (int first = 0; first < task.n; first += group) {
    const int size = task.n - first < group ? task.n - first : group;
    kAdd[size - 1](tile, {task, scales, first, d});
  }
}

template <typename Stored>
void Values(const KvTile& tile, const ValuesTask& task) {
  for (int begin = task.begin; begin < task.end; begin += kGroup) {
    const int end = begin + kGroup < task.end ? begin + kGroup : task.end;
    GroupScales scales;
    LoadValueScales<Stored>(tile, begin, &scales);
    int d = begin;
    for (; d + 16 <= end; d += 16) {
      AddAllValues<Stored, 2>(tile, task, scales, d);
    }
    if (d < end) {
      AddAllValues<Stored, 1>(tile, task, scales, d);
    }
  }
}

// --- floats ---

template <typename Stored>
void Unpack(const KvTile& tile, float* k, float* v) {
  for (int begin = 0; begin < tile.d_head; begin += kGroup) {
    const int end = begin + kGroup < tile.d_head ? begin + kGroup : tile.d_head;
    GroupScales scales;
    LoadKeyScales<Stored>(tile, begin, &scales);
    for (int d = begin; d < end; ++d) {
      for (int key = 0; key < kTile; key += 8) {
        _mm256_storeu_ps(k + d * kTile + key, Key<Stored>(tile, scales, d, key));
      }
    }
    LoadValueScales<Stored>(tile, begin, &scales);
    for (int key = 0; key < kTile; ++key) {
      for (int d = begin; d < end; d += 8) {
        _mm256_storeu_ps(v + key * tile.d_head + d, Value<Stored>(tile, scales, d, key));
      }
    }
  }
}

void Divide(float divisor, int64_t n, float* x) {
  for (int64_t i = 0; i < n; i += 8) {
    _mm256_storeu_ps(x + i, _mm256_div_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(divisor)));
  }
}

template <typename Stored>
constexpr KvTypeKernels kTypeKernels = {Scores<Stored>, Values<Stored>, Unpack<Stored>};

}  // namespace

const AttentionKernels kAttentionAvx2 = {
    .f32 = {Scores<StoredF32>, Values<StoredF32>, nullptr},
    .f16 = kTypeKernels<StoredF16>,
    .bf16 = kTypeKernels<StoredBf16>,
    .q8_0 = kTypeKernels<StoredQ8>,
    .softmax = Softmax,
    .divide = Divide,
};

}  // namespace facet
