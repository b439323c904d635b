// SPDX-License-Identifier: Apache-2.0
// Attention of one row with AVX2: 32 keys side by side for the scores, channels side by side for
// the output; two query heads share each loaded key and value. Equal to attention_scalar.cc bit for
// bit. Compiled with -mavx2 -mfma -mf16c; uses no inline function of the library or the standard
// library (vector_math_avx2.h says why).
#include <immintrin.h>

#include "compute/kernels.h"
#include "compute/vector_math_avx2.h"

namespace facet {
namespace {

constexpr int kTile = kKvBlockPositions;
constexpr int kVectors = kTile / 8;

// Element i and the 7 after it, as floats without their scale.
struct StoredF32 {
  static constexpr bool kHasScales = false;
  static __m256 Load(const std::byte* data, int64_t i) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(data) + i);
  }
};

struct StoredF16 {
  static constexpr bool kHasScales = false;
  static __m256 Load(const std::byte* data, int64_t i) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 2 * i)));
  }
};

struct StoredBf16 {
  static constexpr bool kHasScales = false;
  static __m256 Load(const std::byte* data, int64_t i) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 2 * i));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

struct StoredQ8 {
  static constexpr bool kHasScales = true;
  static __m256 Load(const std::byte* data, int64_t i) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(data + i));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  }
};

inline float LoadScale(const std::byte* scales, int64_t i) {
  uint16_t bits;
  __builtin_memcpy(&bits, scales + 2 * i, sizeof(bits));
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

struct Tile {
  const std::byte* k;
  const std::byte* v;
  const std::byte* k_scales;
  const std::byte* v_scales;
  int low;  // visible keys [low, high)
  int high;
};

struct Running {
  float largest;
  float sum;
};

// scores[head][key] of all 32 keys, visible or not. Channels [begin, end) have one scale per key.
template <typename Stored, int kHeads>
inline void AddScores(const AttentionTask& task, const Tile& tile, int begin, int end,
                      __m256 (&scores)[kHeads][kVectors]) {
  __m256 key_scales[kVectors];
  if constexpr (Stored::kHasScales) {
    for (int c = 0; c < kVectors; ++c) {
      key_scales[c] = StoredF16::Load(tile.k_scales, begin / 32 * kTile + 8 * c);
    }
  }
  for (int d = begin; d < end; ++d) {
    __m256 q[kHeads];
    for (int head = 0; head < kHeads; ++head) {
      q[head] = _mm256_broadcast_ss(task.q + head * task.d_head + d);
    }
    for (int c = 0; c < kVectors; ++c) {
      __m256 key = Stored::Load(tile.k, d * kTile + 8 * c);
      if constexpr (Stored::kHasScales) {
        key = _mm256_mul_ps(key, key_scales[c]);
      }
      for (int head = 0; head < kHeads; ++head) {
        scores[head][c] = _mm256_fmadd_ps(q[head], key, scores[head][c]);
      }
    }
  }
}

// Turns scores into probabilities relative to the largest so far; returns the factor for what was
// summed before.
inline float Normalize(const __m256 (&scores)[kVectors], const Tile& tile, float* p,
                       Running& running) {
  __m256 masked[kVectors];
  __m256 visible[kVectors];
  __m256 most = _mm256_set1_ps(-__builtin_inff());
  for (int c = 0; c < kVectors; ++c) {
    const __m256i from_low = FirstLanes(tile.low - 8 * c);
    const __m256i to_high = FirstLanes(tile.high - 8 * c);
    visible[c] = _mm256_castsi256_ps(_mm256_andnot_si256(from_low, to_high));
    masked[c] = _mm256_blendv_ps(_mm256_set1_ps(-__builtin_inff()), scores[c], visible[c]);
    most = _mm256_max_ps(masked[c], most);
  }
  const float tile_largest = Max8(most);
  const float largest = tile_largest > running.largest ? tile_largest : running.largest;
  for (int c = 0; c < kVectors; ++c) {
    const __m256 e = Exp8(_mm256_sub_ps(masked[c], _mm256_set1_ps(largest)));
    masked[c] = _mm256_and_ps(e, visible[c]);
    _mm256_storeu_ps(p + 8 * c, masked[c]);
  }
  const __m256 change = _mm256_set1_ps(running.largest - largest);
  const float correction = _mm256_cvtss_f32(Exp8(change));
  const __m256 sum =
      _mm256_add_ps(_mm256_add_ps(masked[0], masked[2]), _mm256_add_ps(masked[1], masked[3]));
  const __m128 folded =
      _mm_fmadd_ss(_mm_set_ss(running.sum), _mm_set_ss(correction), _mm_set_ss(Tree8(sum)));
  running = {largest, _mm_cvtss_f32(folded)};
  return correction;
}

// out[d .. d + 8 kWidth) = out · correction + Σ p_k V_k. The channels lie within one group of 32.
template <typename Stored, int kHeads, int kWidth>
inline void AddValues(const AttentionTask& task, const Tile& tile, const float (&p)[kHeads][kTile],
                      const float (&correction)[kHeads], int d) {
  __m256 sums[kHeads][kWidth];
  for (int head = 0; head < kHeads; ++head) {
    for (int c = 0; c < kWidth; ++c) {
      const float* out = task.out + head * task.d_head + d + 8 * c;
      sums[head][c] = _mm256_mul_ps(_mm256_loadu_ps(out), _mm256_set1_ps(correction[head]));
    }
  }
  for (int k = tile.low; k < tile.high; ++k) {
    __m256 scale = _mm256_setzero_ps();
    if constexpr (Stored::kHasScales) {
      scale = _mm256_set1_ps(LoadScale(tile.v_scales, k * (task.d_head / 32) + d / 32));
    }
    for (int c = 0; c < kWidth; ++c) {
      __m256 value = Stored::Load(tile.v, int64_t{k} * task.d_head + d + 8 * c);
      if constexpr (Stored::kHasScales) {
        value = _mm256_mul_ps(value, scale);
      }
      for (int head = 0; head < kHeads; ++head) {
        sums[head][c] = _mm256_fmadd_ps(_mm256_broadcast_ss(&p[head][k]), value, sums[head][c]);
      }
    }
  }
  for (int head = 0; head < kHeads; ++head) {
    for (int c = 0; c < kWidth; ++c) {
      _mm256_storeu_ps(task.out + head * task.d_head + d + 8 * c, sums[head][c]);
    }
  }
}

template <typename Stored, int kHeads>
inline void AddTile(const AttentionTask& task, const Tile& tile, Running (&running)[kHeads]) {
  __m256 scores[kHeads][kVectors];
  for (int head = 0; head < kHeads; ++head) {
    for (int c = 0; c < kVectors; ++c) {
      scores[head][c] = _mm256_setzero_ps();
    }
  }
  const int step = Stored::kHasScales ? 32 : task.d_head;
  for (int d = 0; d < task.d_head; d += step) {
    AddScores<Stored, kHeads>(task, tile, d, d + step, scores);
  }
  float p[kHeads][kTile];
  float correction[kHeads];
  for (int head = 0; head < kHeads; ++head) {
    correction[head] = Normalize(scores[head], tile, p[head], running[head]);
  }
  int d = 0;
  for (; d + 32 <= task.d_head; d += 32) {
    AddValues<Stored, kHeads, 4>(task, tile, p, correction, d);
  }
  for (; d < task.d_head; d += 8) {
    AddValues<Stored, kHeads, 1>(task, tile, p, correction, d);
  }
}

template <typename Stored, int kHeads>
inline void AttendHeads(const AttentionTask& task) {
  Running running[kHeads];
  for (int head = 0; head < kHeads; ++head) {
    running[head] = {-__builtin_inff(), 0.0f};
  }
  for (int i = 0; i < kHeads * task.d_head; i += 8) {
    _mm256_storeu_ps(task.out + i, _mm256_setzero_ps());
  }
  for (int32_t t = task.begin / kTile; t * kTile < task.end; ++t) {
    const std::byte* block = task.blocks[t];
    const int low = task.begin - t * kTile;
    const int high = task.end - t * kTile;
    const Tile tile = {
        block + task.k_offset,        block + task.v_offset, block + task.k_scales_offset,
        block + task.v_scales_offset, low > 0 ? low : 0,     high < kTile ? high : kTile};
    AddTile<Stored, kHeads>(task, tile, running);
  }
  for (int head = 0; head < kHeads; ++head) {
    const __m256 sum = _mm256_set1_ps(running[head].sum);
    for (int d = 0; d < task.d_head; d += 8) {
      float* out = task.out + head * task.d_head + d;
      _mm256_storeu_ps(out, _mm256_div_ps(_mm256_loadu_ps(out), sum));
    }
  }
}

template <typename Stored>
void Attend(const AttentionTask& task) {
  if (task.n_heads == 2) {
    AttendHeads<Stored, 2>(task);
  } else {
    AttendHeads<Stored, 1>(task);
  }
}

}  // namespace

const AttentionKernels kAttentionAvx2 = {
    .f32 = Attend<StoredF32>,
    .f16 = Attend<StoredF16>,
    .bf16 = Attend<StoredBf16>,
    .q8_0 = Attend<StoredQ8>,
};

}  // namespace facet
