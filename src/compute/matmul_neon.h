// SPDX-License-Identifier: Apache-2.0
// What the NEON kernels of integer weights share. Sixteen weight rows are a group; a register holds
// 4 columns of 4 of them, as the packed layout has it (packed_weights.h), so that sdot with a lane
// of the activations adds to 4 outputs, each in a lane of its own, and activations are read as they
// lie. Everything lies in an anonymous namespace (vector_math_neon.h says why); include it in
// matmul_*_neon.cc only.
//
// Two activation rows run against the whole group and up to four against its halves: 20 to 24 of
// the 32 registers hold sums, outputs and activations (28 to 32 where halves of a block are summed
// apart). Per block, row and register of weights that is 8 sdot and 3 float operations of the chain
// for 128 products; each load of weights serves as many sdot as there are rows.
#pragma once

#include <arm_neon.h>

#include "compute/kernels.h"

namespace facet {
namespace {

inline constexpr int kRows = 16;      // weight rows of a group
inline constexpr int kRegisters = 4;  // that they take
inline constexpr int kBlock = 32;     // columns that share an activation scale
inline constexpr int kQuads = 8;      // groups of 4 columns in a block
inline constexpr int kTile = 4;       // activation rows that run together at most
inline constexpr int kPanelBlock = kRows * kBlock;

inline int8x16_t LoadBytes(const void* data) { return vld1q_s8(static_cast<const int8_t*>(data)); }

// What one block of one activation row multiplies, besides its values.
struct ActivationBlock {
  float scale;
  const int16_t* half_sums;  // two
};

// acc + dots · (d · scale)
inline float32x4_t AddScaled(int32x4_t dots, float32x4_t d, float scale, float32x4_t acc) {
  return vfmaq_f32(acc, vcvtq_f32_s32(dots), vmulq_n_f32(d, scale));
}

// acc − sums · (dmin · scale)
inline float32x4_t SubtractMinimum(int32x4_t sums, float32x4_t dmin, float scale, float32x4_t acc) {
  return vfmsq_f32(acc, vcvtq_f32_s32(sums), vmulq_n_f32(dmin, scale));
}

// A group unpacked: values as blocks of [8 quads][16 rows][4 columns], then what each block has
// beside them. `Side` is as below.
template <typename SideOfType>
struct Panel {
  using Side = SideOfType;
  static constexpr int kOffset = 0;
  std::byte* values;
  Side* sides;

  explicit Panel(const MatMulTask& task) {
    values = task.scratch;
    sides = reinterpret_cast<Side*>(values + kRows * task.n_in);
  }
  template <int kQuad>
  [[nodiscard]] int8x16_t Quad(int64_t b, int c) const {
    return LoadBytes(values + kPanelBlock * b + 64 * kQuad + 16 * c);
  }
  [[nodiscard]] const Side& SideOf(int64_t b) const { return sides[b]; }
};

// A piece of a product: kN activation rows from `row` on, with registers [first, first + kC) of a
// group.
struct Piece {
  int64_t row;
  int first;
};

// A Side has kHalves (whether the sums of a block's halves are needed apart) and
// Add(register, dots [kHalves], ActivationBlock, acc), which is a block's step of the chain. A
// Group has Side, Quad, SideOf, and kOffset where value = code − offset.
template <typename Group, int kN, int kC>
struct Product {
  static constexpr int kHalves = Group::Side::kHalves;
  int8x16_t a[kN][2];
  int32x4_t dots[kN][kC][kHalves];
  float32x4_t acc[kN][kC];

  // The integer sums of a block begin with what an offset has too much.
  inline void Begin(const MatMulTask& task, const Piece& piece, int64_t b) {
    for (int r = 0; r < kN; ++r) {
      const int64_t at = (piece.row + r) * (task.n_in / kBlock) + b;
      a[r][0] = LoadBytes(task.values + kBlock * at);
      a[r][1] = LoadBytes(task.values + kBlock * at + 16);
      for (int half = 0; half < kHalves; ++half) {
        const int sum = Group::kOffset == 0 ? 0
                        : kHalves == 2      ? task.half_sums[2 * at + half]
                                            : task.sums[at];
        for (int c = 0; c < kC; ++c) {
          dots[r][c][half] = vdupq_n_s32(-Group::kOffset * sum);
        }
      }
    }
  }

  template <int kQuad>
  inline void AddQuads(const Group& group, int64_t b, int first) {
    if constexpr (kQuad < kQuads) {
      for (int c = 0; c < kC; ++c) {
        const int8x16_t w = group.template Quad<kQuad>(b, first + c);
        for (int r = 0; r < kN; ++r) {
          int32x4_t& sum = dots[r][c][kQuad * kHalves / kQuads];
          sum = vdotq_laneq_s32(sum, w, a[r][kQuad / 4], kQuad % 4);
        }
      }
      AddQuads<kQuad + 1>(group, b, first);
    }
  }

  inline void End(const MatMulTask& task, const Piece& piece, int64_t b,
                  const typename Group::Side& side) {
    for (int r = 0; r < kN; ++r) {
      const int64_t at = (piece.row + r) * (task.n_in / kBlock) + b;
      const ActivationBlock block = {task.scales[at], task.half_sums + 2 * at};
      for (int c = 0; c < kC; ++c) {
        acc[r][c] = side.Add(piece.first + c, dots[r][c], block, acc[r][c]);
      }
    }
  }
};

// Stores up to four outputs of a row: as many as lie before `end`.
inline void StoreOutputs(float* y, float32x4_t values, int64_t n) {
  if (n >= 4) {
    vst1q_f32(y, values);
    return;
  }
  float four[4];
  vst1q_f32(four, values);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = four[i];
  }
}

template <int kN, int kC, typename Group>
inline void MultiplyPiece(const MatMulTask& task, const Group& group, const Piece& piece,
                          int64_t out, int64_t end) {
  Product<Group, kN, kC> product;
  for (int r = 0; r < kN; ++r) {
    for (int c = 0; c < kC; ++c) {
      product.acc[r][c] = vdupq_n_f32(0.0f);
    }
  }
  for (int64_t b = 0; b < task.n_in / kBlock; ++b) {
    product.Begin(task, piece, b);
    product.template AddQuads<0>(group, b, piece.first);
    product.End(task, piece, b, group.SideOf(b));
  }
  for (int r = 0; r < kN; ++r) {
    for (int c = 0; c < kC; ++c) {
      const int64_t first = out + 4 * (piece.first + c);
      StoreOutputs(task.y + (piece.row + r) * task.n_out + first, product.acc[r][c], end - first);
    }
  }
}

// The outputs [out, end) of a group for kN rows. More than two rows fill the registers with half a
// group.
template <int kN, typename Group>
void MultiplyRows(const MatMulTask& task, const Group& group, int64_t row, int64_t out,
                  int64_t end) {
  constexpr int kC = kN > 2 ? kRegisters / 2 : kRegisters;
  for (int first = 0; first < kRegisters; first += kC) {
    MultiplyPiece<kN, kC>(task, group, {row, first}, out, end);
  }
}

// All rows, in tiles of sizes as equal as can be: 5 rows are 3 and 2.
template <typename Group>
inline void MultiplyAllRows(const MatMulTask& task, const Group& group, int64_t out, int64_t end) {
  constexpr void (*kMultiply[kTile])(const MatMulTask&, const Group&, int64_t, int64_t, int64_t) = {
      MultiplyRows<1, Group>, MultiplyRows<2, Group>, MultiplyRows<3, Group>,
      MultiplyRows<4, Group>};
  const int64_t n_tiles = (task.n_rows + kTile - 1) / kTile;
  for (int64_t t = 0; t < n_tiles; ++t) {
    const int64_t row = task.n_rows * t / n_tiles;
    const int64_t n = task.n_rows * (t + 1) / n_tiles - row;
    kMultiply[n - 1](task, group, row, out, end);
  }
}

}  // namespace
}  // namespace facet
