// SPDX-License-Identifier: Apache-2.0
// Matrix products with AVX-512 VNNI for block types as they lie in the file: equal to
// matmul_scalar.cc bit for bit. The codec unpacks 16 weight rows into a panel, once for all
// activation rows, which then run at the speed of vpdpbusd. Compiled with -mavx512*; uses no inline
// function of the library or the standard library (vector_math_avx2.h says why).
//
// The codec, in plain C++, bounds few rows: of IQ2_XS a row of 2048 x 2048 takes 1.3 ms, of which
// 0.02 ms are products, and 64 rows take 2.5 ms (6.8 with AVX2).
//
// Scales of halves multiply in float: |s · q| is at most 4096 in every type (Q6_K: 128 · 32), so
// that what a block sums to stays below 2^24 and is exact (packed_types_avx512.h).
#include <immintrin.h>

#include "compute/kernels_avx512.h"
#include "compute/packed_types_avx512.h"

namespace facet {
namespace {

constexpr int kTile = 8;      // activation rows that run together
constexpr int kRaised = 128;  // what a signed byte of the panel is raised by

// --- sides: what a block of the panel has beside its bytes ---

// One block of one activation row. `half_sums` holds the sums of both halves in each lane.
struct ActivationBlock {
  __m512i half_sums;
  float scale;
};

struct ScaledPanelSide {
  HalvesSide side;
  void Set(const UnpackedBlock* const (&rows)[kRows]) {
    float d[kRows];
    float s[2][kRows];
    for (int i = 0; i < kRows; ++i) {
      d[i] = rows[i]->d[0];
      s[0][i] = static_cast<float>(rows[i]->s[0]);
      s[1][i] = static_cast<float>(rows[i]->s[1]);
    }
    side = {_mm512_loadu_ps(d), {_mm512_loadu_ps(s[0]), _mm512_loadu_ps(s[1])}};
  }
  [[nodiscard]] __m512 Add(const __m512i (&dots)[2], const ActivationBlock& a, __m512 acc) const {
    return side.Add(dots, {a.scale, 0.0f}, acc);
  }
};

struct MinimumPanelSide {
  ScaledPanelSide scaled;
  __m512 dmin;
  __m512i m;  // of both halves in each lane
  void Set(const UnpackedBlock* const (&rows)[kRows]) {
    scaled.Set(rows);
    float minima[kRows];
    int16_t words[kRows][2];
    for (int i = 0; i < kRows; ++i) {
      minima[i] = rows[i]->dmin;
      words[i][0] = static_cast<int16_t>(rows[i]->m[0]);
      words[i][1] = static_cast<int16_t>(rows[i]->m[1]);
    }
    dmin = _mm512_loadu_ps(minima);
    m = Load512(words);
  }
  [[nodiscard]] __m512 Add(const __m512i (&dots)[2], const ActivationBlock& a, __m512 acc) const {
    acc = scaled.Add(dots, a, acc);
    const __m512i sum = _mm512_dpwssd_epi32(_mm512_setzero_si512(), a.half_sums, m);
    return SubtractMinimum(_mm512_cvtepi32_ps(sum), dmin, a.scale, acc);
  }
};

struct TwoScalesPanelSide {
  __m512 d[2];
  void Set(const UnpackedBlock* const (&rows)[kRows]) {
    float scales[2][kRows];
    for (int i = 0; i < kRows; ++i) {
      scales[0][i] = rows[i]->d[0];
      scales[1][i] = rows[i]->d[1];
    }
    d[0] = _mm512_loadu_ps(scales[0]);
    d[1] = _mm512_loadu_ps(scales[1]);
  }
  [[nodiscard]] __m512 Add(const __m512i (&dots)[2], const ActivationBlock& a, __m512 acc) const {
    acc = AddScaled(_mm512_cvtepi32_ps(dots[0]), d[0], a.scale, acc);
    return AddScaled(_mm512_cvtepi32_ps(dots[1]), d[1], a.scale, acc);
  }
};

// --- the panel: [n_blocks] of [8 quads][16 rows][4 columns] bytes, raised, and a side ---

template <typename Side>
struct PanelBlock {
  __m512i quads[kQuads];
  Side side;
};

// Dword q of row i goes to dword i of vector q. Rows i and i + 8 share a register.
inline void Transpose(const UnpackedBlock* const (&rows)[kRows], __m512i (&quads)[kQuads]) {
  __m512i v[kQuads];
  for (int i = 0; i < kQuads; ++i) {
    const auto* low = reinterpret_cast<const __m256i*>(rows[i]->q);
    const auto* high = reinterpret_cast<const __m256i*>(rows[i + 8]->q);
    v[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(low)),
                              _mm256_loadu_si256(high), 1);
  }
  __m512i pairs[kQuads];
  for (int i = 0; i < kQuads; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  __m512i fours[kQuads];
  for (int i = 0; i < kQuads; i += 4) {
    fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  for (int i = 0; i < 4; ++i) {
    quads[i] = _mm512_permutex2var_epi64(fours[i], low, fours[i + 4]);
    quads[i + 4] = _mm512_permutex2var_epi64(fours[i], high, fours[i + 4]);
  }
}

// Values that are unpacked at once: a multiple of every type's block, small enough for the stack.
constexpr int64_t kPiece = 256;

// Weight rows from `out` on; rows from `end` on repeat the last.
template <typename Side>
inline void FillPanel(const MatMulTask& task, int64_t out, int64_t end, PanelBlock<Side>* panel) {
  UnpackedBlock blocks[kRows][kPiece / kBlock];
  for (int64_t k = 0; k < task.n_in; k += kPiece) {
    const int64_t n = task.n_in - k < kPiece ? task.n_in - k : kPiece;
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = out + i < end ? out + i : end - 1;
      const std::byte* w = task.w + row * task.row_bytes;
      task.unpack(w + task.row_bytes * k / task.n_in, n, blocks[i]);
    }
    for (int64_t j = 0; j < n / kBlock; ++j, ++panel) {
      const UnpackedBlock* rows[kRows];
      for (int i = 0; i < kRows; ++i) {
        rows[i] = &blocks[i][j];
      }
      Transpose(rows, panel->quads);
      for (__m512i& quad : panel->quads) {
        quad = _mm512_xor_si512(quad, _mm512_set1_epi8(static_cast<char>(kRaised)));
      }
      panel->side.Set(rows);
    }
  }
}

// --- products ---

// The 16 outputs of rows [row, row + kN).
template <typename Side, int kN>
void MultiplyRows(const MatMulTask& task, const PanelBlock<Side>* panel, int64_t row, float* y,
                  __mmask16 lanes) {
  const int64_t n_blocks = task.n_in / kBlock;
  const int8_t* values = task.values + row * task.n_in;
  const int16_t* half_sums = task.half_sums + 2 * row * n_blocks;
  const float* scales = task.scales + row * n_blocks;
  const __m512i first_half = _mm512_set1_epi32(-kRaised & 0xffff);
  const __m512i second_half = _mm512_slli_epi32(first_half, 16);
  __m512 acc[kN];
  for (int r = 0; r < kN; ++r) {
    acc[r] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < n_blocks; ++b) {
    const PanelBlock<Side>& block = panel[b];
    __m512i dots[kN][2];
    for (int r = 0; r < kN; ++r) {
      const __m512i sums = Broadcast32(half_sums + 2 * (r * n_blocks + b));
      dots[r][0] = _mm512_dpwssd_epi32(_mm512_setzero_si512(), sums, first_half);
      dots[r][1] = _mm512_dpwssd_epi32(_mm512_setzero_si512(), sums, second_half);
    }
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad) {
      for (int r = 0; r < kN; ++r) {
        const __m512i a = Broadcast32(values + r * task.n_in + kBlock * b + 4 * quad);
        __m512i& sum = dots[r][quad / (kQuads / 2)];
        sum = _mm512_dpbusd_epi32(sum, block.quads[quad], a);
      }
    }
    for (int r = 0; r < kN; ++r) {
      const int64_t at = r * n_blocks + b;
      acc[r] = block.side.Add(dots[r], {Broadcast32(half_sums + 2 * at), scales[at]}, acc[r]);
    }
  }
  for (int r = 0; r < kN; ++r) {
    _mm512_mask_storeu_ps(y + r * task.n_out, lanes, acc[r]);
  }
}

template <typename Side>
void MatMulForm(const MatMulTask& task, int64_t begin, int64_t end) {
  constexpr void (*kMultiply[kTile])(const MatMulTask&, const PanelBlock<Side>*, int64_t, float*,
                                     __mmask16) = {
      MultiplyRows<Side, 1>, MultiplyRows<Side, 2>, MultiplyRows<Side, 3>, MultiplyRows<Side, 4>,
      MultiplyRows<Side, 5>, MultiplyRows<Side, 6>, MultiplyRows<Side, 7>, MultiplyRows<Side, 8>};
  auto* panel = reinterpret_cast<PanelBlock<Side>*>(task.scratch);
  const int64_t n_tiles = (task.n_rows + kTile - 1) / kTile;
  for (int64_t out = begin; out < end; out += kRows) {
    FillPanel(task, out, end, panel);
    const int64_t n_outputs = end - out < kRows ? end - out : kRows;
    const auto lanes = static_cast<__mmask16>((1u << n_outputs) - 1);
    for (int64_t t = 0; t < n_tiles; ++t) {
      const int64_t row = task.n_rows * t / n_tiles;
      const int64_t n = task.n_rows * (t + 1) / n_tiles - row;
      kMultiply[n - 1](task, panel, row, task.y + row * task.n_out + out, lanes);
    }
  }
}

// --- types with a kernel for few rows ---

// Activation rows from which on a panel pays although the codec fills it. Q2_K and Q3_K have no
// other way to be fast; the others are packed, unless packing is refused.
constexpr int64_t PanelRows(TensorType type) {
  return type == TensorType::kQ2_K || type == TensorType::kQ3_K ? 16 : 40;
}

template <TensorType kType>
void MatMulBlocks(const MatMulTask& task, int64_t begin, int64_t end) {
  if (task.n_rows < PanelRows(kType)) {
    for (const TypeKernel& few : kBlockKernelsAvx2) {
      if (few.type == kType) {
        return few.kernel(task, begin, end);
      }
    }
  }
  MatMulUnpackedAvx512(task, begin, end);
}

}  // namespace

void MatMulUnpackedAvx512(const MatMulTask& task, int64_t begin, int64_t end) {
  switch (task.form) {
    case BlockForm::kScaled:
      return MatMulForm<ScaledPanelSide>(task, begin, end);
    case BlockForm::kWithMinimum:
      return MatMulForm<MinimumPanelSide>(task, begin, end);
    case BlockForm::kTwoScales:
      return MatMulForm<TwoScalesPanelSide>(task, begin, end);
  }
}

const TypeKernel kBlockKernelsAvx512[kNBlockKernelsAvx512] = {
    {TensorType::kQ8_0, MatMulBlocks<TensorType::kQ8_0>},
    {TensorType::kQ5_0, MatMulBlocks<TensorType::kQ5_0>},
    {TensorType::kQ5_1, MatMulBlocks<TensorType::kQ5_1>},
    {TensorType::kQ4_0, MatMulBlocks<TensorType::kQ4_0>},
    {TensorType::kQ4_1, MatMulBlocks<TensorType::kQ4_1>},
    {TensorType::kQ6_K, MatMulBlocks<TensorType::kQ6_K>},
    {TensorType::kQ5_K, MatMulBlocks<TensorType::kQ5_K>},
    {TensorType::kQ4_K, MatMulBlocks<TensorType::kQ4_K>},
    {TensorType::kQ3_K, MatMulBlocks<TensorType::kQ3_K>},
    {TensorType::kQ2_K, MatMulBlocks<TensorType::kQ2_K>},
    {TensorType::kIQ4_NL, MatMulBlocks<TensorType::kIQ4_NL>},
    {TensorType::kIQ4_XS, MatMulBlocks<TensorType::kIQ4_XS>},
    {TensorType::kMXFP4, MatMulBlocks<TensorType::kMXFP4>}};

}  // namespace facet
