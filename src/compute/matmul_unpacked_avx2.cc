// SPDX-License-Identifier: Apache-2.0
// Matrix products with AVX2 for every block type without a kernel of its own: equal to
// matmul_scalar.cc bit for bit. The codec unpacks the weight rows of a group, once for all
// activation rows, and the panel does the rest. Compiled with -mavx2 -mfma -mf16c; uses no inline
// function of the library or the standard library (vector_math_avx2.h says why).
#include "compute/kernels.h"
#include "compute/matmul_avx2.h"

namespace facet {
namespace {

template <BlockForm kForm>
struct Unpacked {
  static constexpr Width kWidth = Width::kByteHalf;
  static constexpr int kBlocks = 1;
  struct Side {
    int32_t s[2][kRows];
    int32_t m[2][kRows];
    float d[2][kRows];
    float dmin[kRows];
  };

  static __m256 Add(const Dots& dots, const Side& side, int, const ActivationBlock& a, __m256 acc) {
    const __m256 d = _mm256_loadu_ps(side.d[0]);
    if constexpr (kForm == BlockForm::kTwoScales) {
      acc = AddScaled(dots.first, d, a.scale, acc);
      return AddScaled(dots.second, _mm256_loadu_ps(side.d[1]), a.scale, acc);
    }
    acc = AddScaled(Weighted(side.s, dots.first, dots.second), d, a.scale, acc);
    if constexpr (kForm == BlockForm::kWithMinimum) {
      const __m256i sum =
          Weighted(side.m, _mm256_set1_epi32(a.half_sums[0]), _mm256_set1_epi32(a.half_sums[1]));
      const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(side.dmin), _mm256_set1_ps(a.scale));
      acc = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(sum), scale, acc);
    }
    return acc;
  }

 private:
  static __m256i Weighted(const int32_t (&weights)[2][kRows], __m256i first, __m256i second) {
    return _mm256_add_epi32(_mm256_mullo_epi32(Load256(weights[0]), first),
                            _mm256_mullo_epi32(Load256(weights[1]), second));
  }
};

// Values that are unpacked at once: a multiple of every type's block, small enough for the stack.
constexpr int64_t kChunk = 256;

template <BlockForm kForm>
inline void LoadSide(const UnpackedBlock (&blocks)[kRows][kChunk / kBlock], int64_t j,
                     typename Unpacked<kForm>::Side* side) {
  for (int i = 0; i < kRows; ++i) {
    const UnpackedBlock& block = blocks[i][j];
    for (int half = 0; half < 2; ++half) {
      side->s[half][i] = block.s[half];
      side->m[half][i] = block.m[half];
      side->d[half][i] = block.d[half];
    }
    side->dmin[i] = block.dmin;
  }
}

template <BlockForm kForm>
inline void UnpackGroup(const MatMulTask& task, const std::byte* const (&rows)[kRows],
                        const Panel<Unpacked<kForm>>& panel) {
  UnpackedBlock blocks[kRows][kChunk / kBlock];
  for (int64_t k = 0; k < task.n_in; k += kChunk) {
    const int64_t n = task.n_in - k < kChunk ? task.n_in - k : kChunk;
    for (int i = 0; i < kRows; ++i) {
      task.unpack(rows[i] + task.row_bytes * k / task.n_in, n, blocks[i]);
    }
    for (int64_t j = 0; j < n / kBlock; ++j) {
      const int64_t b = k / kBlock + j;
      __m256i v[kRows];
      for (int i = 0; i < kRows; ++i) {
        v[i] = Load256(blocks[i][j].q);
      }
      StorePanelBlock(v, panel.values + b * kPanelBlock);
      LoadSide<kForm>(blocks, j, &panel.sides[b]);
    }
  }
}

template <BlockForm kForm>
void MatMulForm(const MatMulTask& task, int64_t begin, int64_t end) {
  const Panel<Unpacked<kForm>> panel(task);
  for (int64_t out = begin; out < end; out += kRows) {
    const std::byte* rows[kRows];
    SetRows(task, out, end, rows);
    UnpackGroup<kForm>(task, rows, panel);
    MultiplyPanelRows(task, panel, out, end);
  }
}

}  // namespace

void MatMulUnpackedAvx2(const MatMulTask& task, int64_t begin, int64_t end) {
  switch (task.form) {
    case BlockForm::kScaled:
      return MatMulForm<BlockForm::kScaled>(task, begin, end);
    case BlockForm::kWithMinimum:
      return MatMulForm<BlockForm::kWithMinimum>(task, begin, end);
    case BlockForm::kTwoScales:
      return MatMulForm<BlockForm::kTwoScales>(task, begin, end);
  }
}

}  // namespace facet
