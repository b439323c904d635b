// SPDX-License-Identifier: Apache-2.0
// Attention of queries with a tile, with AVX-512: all 32 keys side by side for the scores of up to
// 8 queries, 32 channels side by side for their outputs, so that each chain is one lane. Equal to
// attention_scalar.cc bit for bit. Compiled with -mavx512*; uses no inline function of the library
// or the standard library (vector_math_avx2.h says why).
//
// What bounds it: 8 queries have 16 sums for each 2 loaded vectors and 8 broadcasts, hence the
// multiply-adds, two a cycle. With keys and values in the caches: 70 % of what a Zen 5 can do, at
// 256 and at 512 channels. That reads 18 GB/s of F16 when 8 heads share a KV head, less than the
// memory gives one core; but without fetching ahead its latency halved the speed.
#include <immintrin.h>

#include "compute/kernels.h"
#include "compute/vector_math_avx512.h"

namespace facet {
namespace {

constexpr int kTile = kKvBlockPositions;
constexpr int kGroup = 32;  // channels that share a scale
constexpr int kLanes = 16;

// Element i and the 15 after it, as floats without their scale; those without a bit in `lanes` are
// not read.
struct StoredF32 {
  static constexpr int kBytes = 4;
  static constexpr bool kHasScales = false;
  static __m512 Load(const std::byte* data, int64_t i, __mmask16 lanes) {
    return _mm512_maskz_loadu_ps(lanes, data + 4 * i);
  }
};

struct StoredF16 {
  static constexpr int kBytes = 2;
  static constexpr bool kHasScales = false;
  static __m512 Load(const std::byte* data, int64_t i, __mmask16 lanes) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, data + 2 * i));
  }
};

struct StoredBf16 {
  static constexpr int kBytes = 2;
  static constexpr bool kHasScales = false;
  static __m512 Load(const std::byte* data, int64_t i, __mmask16 lanes) {
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, data + 2 * i));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
};

struct StoredQ8 {
  static constexpr int kBytes = 1;
  static constexpr bool kHasScales = true;
  static __m512 Load(const std::byte* data, int64_t i, __mmask16 lanes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(lanes, data + i)));
  }
};

constexpr __mmask16 kAll = 0xffff;

inline __mmask16 FirstOf(int n) {
  return n >= kLanes ? kAll : static_cast<__mmask16>(n > 0 ? (1u << n) - 1 : 0u);
}

// The scales of a group of channels for each of the 32 positions.
struct GroupScales {
  float of[kTile];
};

template <typename Stored>
inline void LoadKeyScales(const KvTile& tile, int d, GroupScales* scales) {
  for (int k = 0; Stored::kHasScales && k < kTile; k += kLanes) {
    _mm512_storeu_ps(scales->of + k, StoredF16::Load(tile.k_scales, d / kGroup * kTile + k, kAll));
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

// Channel d of keys [k, k + 16).
template <typename Stored>
inline __m512 Key(const KvTile& tile, const GroupScales& scales, int d, int k) {
  const __m512 key = Stored::Load(tile.k, int64_t{d} * kTile + k, kAll);
  return Stored::kHasScales ? _mm512_mul_ps(key, _mm512_loadu_ps(scales.of + k)) : key;
}

// Channels [d, d + 16) of the value of position k, or as many of them as `lanes` says.
template <typename Stored>
inline __m512 Value(const KvTile& tile, const GroupScales& scales, int d, int k, __mmask16 lanes) {
  const __m512 value = Stored::Load(tile.v, int64_t{k} * tile.d_head + d, lanes);
  return Stored::kHasScales ? _mm512_mul_ps(value, _mm512_set1_ps(scales.of[k])) : value;
}

// --- scores ---

template <typename Stored, int kN>
void ScoresOf(const KvTile& tile, const float* q, float* s) {
  __m512 sums[kN][2];
#pragma GCC unroll 8
  for (int i = 0; i < kN; ++i) {
    sums[i][0] = sums[i][1] = _mm512_setzero_ps();
  }
  GroupScales scales;
  const std::byte* next = tile.after_k != nullptr ? tile.after_k : tile.k;
  const int step = Stored::kHasScales ? kGroup : tile.d_head;
  for (int begin = 0; begin < tile.d_head; begin += step) {
    LoadKeyScales<Stored>(tile, begin, &scales);
    for (int d = begin; d < begin + step; ++d, q += kN) {
      const __m512 keys[2] = {Key<Stored>(tile, scales, d, 0),
                              Key<Stored>(tile, scales, d, kLanes)};
      Fetch<Stored>(next, int64_t{d} * kTile);
#pragma GCC unroll 8
      for (int i = 0; i < kN; ++i) {
        const __m512 factor = _mm512_set1_ps(q[i]);
        sums[i][0] = _mm512_fmadd_ps(factor, keys[0], sums[i][0]);
        sums[i][1] = _mm512_fmadd_ps(factor, keys[1], sums[i][1]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kN; ++i) {
    _mm512_storeu_ps(s + i * kTile, sums[i][0]);
    _mm512_storeu_ps(s + i * kTile + kLanes, sums[i][1]);
  }
}

template <typename Stored>
void Scores(const KvTile& tile, const float* q, int n, float* s) {
  constexpr void (*kScores[kMaxTileQueries])(const KvTile&, const float*, float*) = {
      ScoresOf<Stored, 1>, ScoresOf<Stored, 2>, ScoresOf<Stored, 3>, ScoresOf<Stored, 4>,
      ScoresOf<Stored, 5>, ScoresOf<Stored, 6>, ScoresOf<Stored, 7>, ScoresOf<Stored, 8>};
  kScores[n - 1](tile, q, s);
}

// --- softmax ---

void Softmax(const SoftmaxTask& task) {
  const __m512 nothing = _mm512_set1_ps(-__builtin_inff());
  const auto visible =
      static_cast<uint32_t>((uint64_t{1} << task.high) - (uint64_t{1} << task.low));
  const auto first = static_cast<__mmask16>(visible);
  const auto second = static_cast<__mmask16>(visible >> kLanes);
  float largest[kMaxTileQueries];
  float change[kLanes] = {};
  for (int i = 0; i < task.n; ++i) {
    const float* s = task.s + i * kTile;
    // A NaN is passed over: max returns its second operand then.
    __m512 most = _mm512_max_ps(_mm512_mask_loadu_ps(nothing, first, s), nothing);
    most = _mm512_max_ps(_mm512_mask_loadu_ps(nothing, second, s + kLanes), most);
    const float before = task.states[i].largest;
    const float found = Max16(most);
    largest[i] = found > before ? found : before;
    change[i] = before - largest[i];
  }
  _mm512_storeu_ps(change, Exp16(_mm512_loadu_ps(change)));
  for (int i = 0; i < task.n; ++i) {
    float* s = task.s + i * kTile;
    const __m512 top = _mm512_set1_ps(largest[i]);
    const __m512 low = _mm512_maskz_mov_ps(first, Exp16(_mm512_sub_ps(_mm512_loadu_ps(s), top)));
    const __m512 high =
        _mm512_maskz_mov_ps(second, Exp16(_mm512_sub_ps(_mm512_loadu_ps(s + kLanes), top)));
    _mm512_storeu_ps(s, low);
    _mm512_storeu_ps(s + kLanes, high);
    const float sum = Tree16(_mm512_add_ps(low, high));
    task.corrections[i] = change[i];
    task.states[i] = {largest[i], __builtin_fmaf(task.states[i].sum, change[i], sum)};
  }
}

// --- values ---

// Channels [d, d + 32) of all queries, or as many of them as `lanes` says.
struct ValuesPart {
  const GroupScales& scales;
  int d;
  __mmask16 lanes[2];
};

template <typename Stored, int kN>
void ValuesOf(const KvTile& tile, const ValuesTask& task, const ValuesPart& part) {
  const __mmask16 lanes[2] = {part.lanes[0], part.lanes[1]};
  __m512 sums[kN][2];
#pragma GCC unroll 8
  for (int i = 0; i < kN; ++i) {
    const __m512 correction = _mm512_set1_ps(task.corrections[i]);
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      const float* out = task.out[i] + part.d + kLanes * c;
      sums[i][c] = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes[c], out), correction);
    }
  }
  const float* p = task.p;
  const std::byte* next = tile.after_v != nullptr ? tile.after_v : tile.v;
  for (int k = task.low; k < task.high; ++k) {
    const __m512 values[2] = {Value<Stored>(tile, part.scales, part.d, k, lanes[0]),
                              Value<Stored>(tile, part.scales, part.d + kLanes, k, lanes[1])};
    Fetch<Stored>(next, int64_t{k} * tile.d_head + part.d);
#pragma GCC unroll 8
    for (int i = 0; i < kN; ++i) {
      const __m512 factor = _mm512_set1_ps(p[i * kTile + k]);
      sums[i][0] = _mm512_fmadd_ps(factor, values[0], sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(factor, values[1], sums[i][1]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kN; ++i) {
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      _mm512_mask_storeu_ps(task.out[i] + part.d + kLanes * c, lanes[c], sums[i][c]);
    }
  }
}

template <typename Stored>
void Values(const KvTile& tile, const ValuesTask& task) {
  constexpr void (*kValues[kMaxTileQueries])(const KvTile&, const ValuesTask&,
                                             const ValuesPart&) = {
      ValuesOf<Stored, 1>, ValuesOf<Stored, 2>, ValuesOf<Stored, 3>, ValuesOf<Stored, 4>,
      ValuesOf<Stored, 5>, ValuesOf<Stored, 6>, ValuesOf<Stored, 7>, ValuesOf<Stored, 8>};
  for (int d = task.begin; d < task.end; d += kGroup) {
    GroupScales scales;
    LoadValueScales<Stored>(tile, d, &scales);
    const __mmask16 lanes[2] = {FirstOf(task.end - d), FirstOf(task.end - d - kLanes)};
    kValues[task.n - 1](tile, task, {scales, d, {lanes[0], lanes[1]}});
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
      for (int key = 0; key < kTile; key += kLanes) {
        _mm512_storeu_ps(k + d * kTile + key, Key<Stored>(tile, scales, d, key));
      }
    }
    LoadValueScales<Stored>(tile, begin, &scales);
    for (int key = 0; key < kTile; ++key) {
      for (int d = begin; d < end; d += kLanes) {
        const __mmask16 lanes = FirstOf(end - d);
        _mm512_mask_storeu_ps(v + key * tile.d_head + d, lanes,
                              Value<Stored>(tile, scales, d, key, lanes));
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

const AttentionKernels kAttentionAvx512 = {
    .f32 = {Scores<StoredF32>, Values<StoredF32>, nullptr},
    .f16 = kTypeKernels<StoredF16>,
    .bf16 = kTypeKernels<StoredBf16>,
    .q8_0 = kTypeKernels<StoredQ8>,
    .softmax = Softmax,
    .divide = Divide,
};

}  // namespace facet
