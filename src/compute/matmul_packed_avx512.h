// SPDX-License-Identifier: Apache-2.0
// What the kernels with 512-bit registers share: activation rows as vpdpbusd reads them, groups of
// 16 weight rows as they are packed, and the product of the two. Up to 8 activation rows run
// together. Everything lies in an anonymous namespace (vector_math_avx2.h says why); include it in
// matmul_*avx512.cc and matmul_amx.cc only.
#pragma once

#include <immintrin.h>

#include "compute/packed_types_avx512.h"

namespace facet {
namespace {

inline constexpr int kTile = 8;        // activation rows that run together
inline constexpr int kChunkRows = 64;  // rows that a group meets while they stay in the cache
inline constexpr int64_t kChunkBytes = int64_t{512} << 10;
// Weights are asked for this far ahead of their use: with fewer bytes the products of 4 and 8 rows
// wait for memory half of the time, with more the first cache loses them again.
inline constexpr int64_t kAhead = 4096;

// --- activations ---

// A tile of kN rows: per block [8 quads][kN] words of 4 activations, [kN] scales, [kN] sums (float)
// and [2][kN] starts, what the integer sums of a block or its halves begin with: −offset · Σ a.
inline constexpr int kActivationBlock = 48;  // bytes for one row

struct ActivationTile {
  const std::byte* data;
  int n;  // rows, 1 .. kTile
};

inline void CopyWord(const void* from, std::byte* to) { __builtin_memcpy(to, from, 4); }

// Writes rows [row, row + n) as a tile.
template <typename Type>
inline void FillTile(const MatMulTask& task, int64_t row, int n, std::byte* out) {
  const int64_t n_blocks = task.n_in / kBlock;
  for (int64_t b = 0; b < n_blocks; ++b) {
    std::byte* block = out + b * kActivationBlock * n;
    for (int r = 0; r < n; ++r) {
      const int64_t at = (row + r) * n_blocks + b;
      for (int quad = 0; quad < kQuads; ++quad) {
        CopyWord(task.values + kBlock * at + 4 * quad, block + 4 * (quad * n + r));
      }
      const auto sum = static_cast<float>(task.sums[at]);
      CopyWord(task.scales + at, block + 4 * (8 * n + r));
      CopyWord(&sum, block + 4 * (9 * n + r));
      const bool has_halves = Type::Side::kHalves == 2;
      const int starts[2] = {-Type::kOffset * (has_halves ? task.half_sums[2 * at] : task.sums[at]),
                             has_halves ? -Type::kOffset * task.half_sums[2 * at + 1] : 0};
      CopyWord(&starts[0], block + 4 * (10 * n + r));
      CopyWord(&starts[1], block + 4 * (11 * n + r));
    }
  }
}

// --- weights ---

// A group as it is packed.
template <typename Type>
struct PackedGroup {
  using Side = typename Type::Side;
  const std::byte* codes;
  const std::byte* sides;

  PackedGroup(const MatMulTask& task, int64_t out)
      : codes(task.w + out / kRows * task.row_bytes),
        sides(codes + task.n_in / kBlock * Type::Codes::kBytes) {}
  // Codes, sides and the next group lie one after the other, so that a distance is enough.
  void Prefetch(int64_t b) const {
    constexpr int kBytes = Type::Codes::kBytes + Side::kBytes / Side::kBlocks;
    for (int i = 0; i < (kBytes + 63) / 64; ++i) {
      _mm_prefetch(codes + b * Type::Codes::kBytes + kAhead + 64 * i, _MM_HINT_T0);
    }
  }
  [[nodiscard]] __m512i Quad(int64_t b, int quad) const {
    return Type::Codes::Quad(codes + b * Type::Codes::kBytes, quad);
  }
  [[nodiscard]] Side SideOf(int64_t b) const {
    return Side::Load(sides + b / Side::kBlocks * Side::kBytes,
                      static_cast<int>(b % Side::kBlocks));
  }
};

// --- products ---

inline float LoadFloat(const std::byte* data) {
  float value;
  __builtin_memcpy(&value, data, sizeof(value));
  return value;
}

// The 16 outputs of kN rows.
template <int kN, typename Group>
inline void Multiply(const Group& group, const std::byte* tile, int64_t n_blocks,
                     __m512 (&acc)[kN]) {
  constexpr int kHalves = Group::Side::kHalves;
  for (int r = 0; r < kN; ++r) {
    acc[r] = _mm512_setzero_ps();
  }
  for (int64_t b = 0; b < n_blocks; ++b) {
    const std::byte* a = tile + b * kActivationBlock * kN;
    __m512i dots[kN][kHalves];
    for (int r = 0; r < kN; ++r) {
      for (int half = 0; half < kHalves; ++half) {
        dots[r][half] = Broadcast32(a + 4 * ((10 + half) * kN + r));
      }
    }
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad) {
      const __m512i w = group.Quad(b, quad);
      for (int r = 0; r < kN; ++r) {
        __m512i& sum = dots[r][quad * kHalves / kQuads];
        sum = _mm512_dpbusd_epi32(sum, w, Broadcast32(a + 4 * (quad * kN + r)));
      }
    }
    group.Prefetch(b);
    const auto& side = group.SideOf(b);
    for (int r = 0; r < kN; ++r) {
      const ActivationScale scale = {LoadFloat(a + 4 * (8 * kN + r)),
                                     LoadFloat(a + 4 * (9 * kN + r))};
      acc[r] = side.Add(dots[r], scale, acc[r]);
    }
  }
}

// Where the outputs of a tile and a group go.
struct Target {
  float* y;  // of the first row
  int64_t stride;
  __mmask16 lanes;
};

template <int kN, typename Group>
void MultiplyRows(const Group& group, const std::byte* tile, int64_t n_blocks,
                  const Target& target) {
  __m512 acc[kN];
  Multiply<kN>(group, tile, n_blocks, acc);
  for (int r = 0; r < kN; ++r) {
    _mm512_mask_storeu_ps(target.y + r * target.stride, target.lanes, acc[r]);
  }
}

template <typename Group>
inline void MultiplyTile(const Group& group, const ActivationTile& tile, int64_t n_blocks,
                         const Target& target) {
  constexpr void (*kMultiply[kTile])(const Group&, const std::byte*, int64_t, const Target&) = {
      MultiplyRows<1, Group>, MultiplyRows<2, Group>, MultiplyRows<3, Group>,
      MultiplyRows<4, Group>, MultiplyRows<5, Group>, MultiplyRows<6, Group>,
      MultiplyRows<7, Group>, MultiplyRows<8, Group>};
  kMultiply[tile.n - 1](group, tile.data, n_blocks, target);
}

inline Target TargetOf(const MatMulTask& task, int64_t row, int64_t out, int64_t end) {
  const int64_t n = end - out < kRows ? end - out : kRows;
  return {task.y + row * task.n_out + out, task.n_out, static_cast<__mmask16>((1u << n) - 1)};
}

// Activation rows of a chunk: as many as stay in the second cache.
inline int64_t ChunkRows(int64_t n_in) {
  const int64_t fitting = kChunkBytes / (n_in / kBlock * kActivationBlock);
  return fitting >= kChunkRows ? kChunkRows : fitting < kTile ? kTile : fitting / kTile * kTile;
}

// At most kChunkRows rows in tiles of sizes as equal as can be: 9 rows are 5 and 4.
struct ActivationChunk {
  const MatMulTask& task;
  int64_t n_blocks;
  std::byte* memory;  // kActivationBlock · n_blocks for each row
  int64_t first = 0;
  int n_tiles = 0;
  int64_t borders[kChunkRows / kTile + 1] = {};

  ActivationChunk(const MatMulTask& of, std::byte* at)
      : task(of), n_blocks(of.n_in / kBlock), memory(at) {}

  [[nodiscard]] std::byte* Tile(int t) const {
    return memory + borders[t] * n_blocks * kActivationBlock;
  }
  [[nodiscard]] int TileRows(int t) const { return static_cast<int>(borders[t + 1] - borders[t]); }

  // Takes rows [row, row + n).
  template <typename Type>
  void Fill(int64_t row, int64_t n) {
    first = row;
    n_tiles = static_cast<int>((n + kTile - 1) / kTile);
    for (int t = 0; t <= n_tiles; ++t) {
      borders[t] = n * t / n_tiles;
    }
    for (int t = 0; t < n_tiles; ++t) {
      FillTile<Type>(task, first + borders[t], TileRows(t), Tile(t));
    }
  }

  // Outputs [out, out + 16) before `end`, of weights in `group`.
  template <typename Group>
  void Multiply(const Group& group, int64_t out, int64_t end) const {
    for (int t = 0; t < n_tiles; ++t) {
      MultiplyTile(group, {Tile(t), TileRows(t)}, n_blocks,
                   TargetOf(task, first + borders[t], out, end));
    }
  }
};

}  // namespace
}  // namespace facet
