// SPDX-License-Identifier: Apache-2.0
// Matrix products with NEON of weights of any block type as they lie in the file: equal to
// matmul_scalar.cc bit for bit. The codec unpacks the weight rows of a group, once for all
// activation rows, and the panel of matmul_neon.h does the rest. Compiled for Armv8.2 with dot
// products; uses no inline function of the library or the standard library (vector_math_neon.h says
// why).
#include "compute/kernels_neon.h"
#include "compute/matmul_neon.h"

namespace facet {
namespace {

template <BlockForm kForm>
struct UnpackedSide {
  static constexpr int kHalves = 2;
  int32_t s[2][kRows];
  int32_t m[2][kRows];
  float d[2][kRows];
  float dmin[kRows];

  [[nodiscard]] float32x4_t Add(int c, const int32x4_t (&dots)[2], const ActivationBlock& a,
                                float32x4_t acc) const {
    const float32x4_t first = vld1q_f32(d[0] + 4 * c);
    if constexpr (kForm == BlockForm::kTwoScales) {
      acc = AddScaled(dots[0], first, a.scale, acc);
      return AddScaled(dots[1], vld1q_f32(d[1] + 4 * c), a.scale, acc);
    }
    const int32x4_t dot = vmulq_s32(vld1q_s32(s[0] + 4 * c), dots[0]);
    acc = AddScaled(vmlaq_s32(dot, vld1q_s32(s[1] + 4 * c), dots[1]), first, a.scale, acc);
    if constexpr (kForm == BlockForm::kWithMinimum) {
      const int32x4_t sum = vmulq_n_s32(vld1q_s32(m[0] + 4 * c), a.half_sums[0]);
      acc = SubtractMinimum(vmlaq_n_s32(sum, vld1q_s32(m[1] + 4 * c), a.half_sums[1]),
                            vld1q_f32(dmin + 4 * c), a.scale, acc);
    }
    return acc;
  }
};

// Values that are unpacked at once: a multiple of every type's block, small enough for the stack.
constexpr int64_t kChunk = 256;
using Chunk = UnpackedBlock[kRows][kChunk / kBlock];

template <BlockForm kForm>
inline void FillSide(const Chunk& blocks, int64_t j, UnpackedSide<kForm>* side) {
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

// Four columns of row i go to lane i, from 16 values of each of four rows to four registers.
inline void StoreQuads(const int8x16_t (&rows)[4], std::byte* quad) {
  const int32x4_t a = vreinterpretq_s32_s8(rows[0]);
  const int32x4_t b = vreinterpretq_s32_s8(rows[1]);
  const int32x4_t c = vreinterpretq_s32_s8(rows[2]);
  const int32x4_t d = vreinterpretq_s32_s8(rows[3]);
  const int64x2_t ab[2] = {vreinterpretq_s64_s32(vtrn1q_s32(a, b)),
                           vreinterpretq_s64_s32(vtrn2q_s32(a, b))};
  const int64x2_t cd[2] = {vreinterpretq_s64_s32(vtrn1q_s32(c, d)),
                           vreinterpretq_s64_s32(vtrn2q_s32(c, d))};
  for (int i = 0; i < 2; ++i) {
    auto* first = reinterpret_cast<int64_t*>(quad + 64 * i);
    auto* third = reinterpret_cast<int64_t*>(quad + 64 * (i + 2));
    vst1q_s64(first, vtrn1q_s64(ab[i], cd[i]));
    vst1q_s64(third, vtrn2q_s64(ab[i], cd[i]));
  }
}

inline void FillValues(const Chunk& blocks, int64_t j, std::byte* values) {
  for (int c = 0; c < kRegisters; ++c) {
    for (int half = 0; half < 2; ++half) {
      int8x16_t rows[4];
      for (int i = 0; i < 4; ++i) {
        rows[i] = LoadBytes(blocks[4 * c + i][j].q + 16 * half);
      }
      StoreQuads(rows, values + 64 * 4 * half + 16 * c);
    }
  }
}

template <BlockForm kForm>
inline void FillPanel(const MatMulTask& task, int64_t out, int64_t end,
                      const Panel<UnpackedSide<kForm>>& panel) {
  Chunk blocks;
  for (int64_t k = 0; k < task.n_in; k += kChunk) {
    const int64_t n = task.n_in - k < kChunk ? task.n_in - k : kChunk;
    for (int i = 0; i < kRows; ++i) {
      const int64_t row = out + i < end ? out + i : end - 1;
      task.unpack(task.w + row * task.row_bytes + task.row_bytes * k / task.n_in, n, blocks[i]);
    }
    for (int64_t j = 0; j < n / kBlock; ++j) {
      const int64_t b = k / kBlock + j;
      FillValues(blocks, j, panel.values + b * kPanelBlock);
      FillSide(blocks, j, &panel.sides[b]);
    }
  }
}

template <BlockForm kForm>
void MatMulForm(const MatMulTask& task, int64_t begin, int64_t end) {
  const Panel<UnpackedSide<kForm>> panel(task);
  for (int64_t out = begin; out < end; out += kRows) {
    FillPanel(task, out, end, panel);
    MultiplyAllRows(task, panel, out, end);
  }
}

}  // namespace

void MatMulUnpackedNeon(const MatMulTask& task, int64_t begin, int64_t end) {
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
