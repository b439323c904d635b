// SPDX-License-Identifier: Apache-2.0
// Matrix products of packed weights with 256-bit registers, for AVX2 and AVX-VNNI: equal to
// matmul_scalar.cc bit for bit.
//
// Up to 3 activation rows run against a group of 16 weight rows: 6 chains, 6 integer sums, 2
// vectors of weights and a broadcast activation are 15 of the 16 registers, and 40 loads serve 48
// products of vectors. One row of Q4_0 is bound by memory: a block of 288 bytes takes 66 vector
// operations with AVX2 and 48 with AVX-VNNI, which passed 40 to 45 GB/s from the second cache where
// the memory gave 16; asking for what is read a strip later was worth a quarter. Three rows are
// bound by arithmetic: 120 operations for a block with AVX2, two for each product, and 66 with
// AVX-VNNI, where the ports for loads are as busy.
//
// More rows go over a group strip by strip, while the chains wait in memory. Where unpacking the
// strip for each tile costs more (kDirectTiles), it is unpacked once into a panel, which stays in
// the first cache while all rows of a chunk pass.
//
// A class Sums<Type> says how a set adds products up in integers:
//   kParts           sums that a block needs; Parts is an array of them
//   Weights(c, q, v) codes as Add wants them
//   Starts           what the parts begin with, as 32-bit words to broadcast; zeros where
//                    kHasStarts is false
//   Add(w, a, sum)   adds the products of 4 columns
//   Total(parts)     value · activation over the block, as floats
//   Scaled(parts, s) the same where blocks or halves have scales, which LoadScale reads
// Everything lies in an anonymous namespace (vector_math_avx2.h says why); include it in
// matmul_packed_*.cc only.
#pragma once

#include <immintrin.h>

#include "compute/packed_types_avx2.h"
#include "compute/vector_math_avx2.h"

namespace facet {
namespace {

inline constexpr int kTile = 3;          // activation rows that run together
inline constexpr int kStripBlocks = 16;  // blocks of a panel
inline constexpr int kChunkRows = 64;    // activation rows that a panel meets
inline constexpr int64_t kChunkBytes = int64_t{512} << 10;

// --- integer sums of 32 bits ---

// What Sums of 32 bits share: scales multiply in float, which is as exact, because |s · dot| of a
// block stays below 2^24 in every type (Q6_K: 2 · 128 · 16 · 32 · 127).
template <int kNParts>
struct DwordSums {
  static constexpr int kParts = kNParts;
  using Parts = __m256i[kParts];
  using Scale = __m256;
  static Scale LoadScale(const std::byte* scales) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(Load64(scales)));
  }
  static __m256 Total(const Parts& sums) { return _mm256_cvtepi32_ps(sums[0]); }
  static __m256 Scaled(const Parts& sums, const Scale (&s)[kParts]) {
    __m256 total = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[0]), s[0]);
    for (int part = 1; part < kParts; ++part) {
      total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[part]), s[part], total);
    }
    return total;
  }
};

// --- activations ---

// A tile of n rows: per block [8 quads][n] words of 4 activations, [n] scales, [n] sums (float) and
// [2][n] starts.
inline constexpr int kActivationBlock = 48;  // bytes for one row

inline void CopyWord(const void* from, std::byte* to) { __builtin_memcpy(to, from, 4); }

// Some blocks of the rows.
struct Strip {
  int64_t first;
  int64_t n_blocks;
};

// Writes a strip of rows [row, row + n) as a tile.
template <typename Sums>
inline void FillTile(const MatMulTask& task, const Strip& strip, int64_t row, int n,
                     std::byte* out) {
  for (int64_t b = 0; b < strip.n_blocks; ++b) {
    std::byte* block = out + b * kActivationBlock * n;
    for (int r = 0; r < n; ++r) {
      const int64_t at = (row + r) * (task.n_in / kBlock) + strip.first + b;
      for (int quad = 0; quad < kQuads; ++quad) {
        CopyWord(task.values + kBlock * at + 4 * quad, block + 4 * (quad * n + r));
      }
      const auto sum = static_cast<float>(task.sums[at]);
      int32_t starts[2] = {0, 0};
      Sums::Starts(task, at, starts);
      CopyWord(task.scales + at, block + 4 * (8 * n + r));
      CopyWord(&sum, block + 4 * (9 * n + r));
      CopyWord(&starts[0], block + 4 * (10 * n + r));
      CopyWord(&starts[1], block + 4 * (11 * n + r));
    }
  }
}

inline __m256i BroadcastWord(const std::byte* data) {
  int word;
  __builtin_memcpy(&word, data, sizeof(word));
  return _mm256_set1_epi32(word);
}

inline __m256 BroadcastFloat(const std::byte* data) {
  return _mm256_castsi256_ps(BroadcastWord(data));
}

// --- weights ---

// Asks for bytes [begin, end), which may lie beyond the weights, to come to the first cache.
inline void PrefetchBytes(const std::byte* begin, const std::byte* end) {
  for (; begin < end; begin += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(begin), _MM_HINT_T0);
  }
}

// A group as it is packed.
template <typename Type, typename Sums>
struct PackedGroup {
  using Side = typename Type::template Side<Sums>;
  const std::byte* codes;
  const std::byte* sides;

  PackedGroup(const MatMulTask& task, int64_t out)
      : codes(task.w + out / kRows * task.row_bytes),
        sides(codes + task.n_in / kBlock * Type::Codes::kBytes) {}
  // From block `first` on, the first one of a side.
  [[nodiscard]] PackedGroup From(int64_t first) const {
    PackedGroup rest = *this;
    rest.codes += first * Type::Codes::kBytes;
    rest.sides += first / Side::kBlocks * Side::kBytes;
    return rest;
  }
  // Before block b is read: what is read a strip later.
  void Prefetch(int64_t b) const {
    const std::byte* ahead = codes + (b + kStripBlocks) * Type::Codes::kBytes;
    PrefetchBytes(ahead, ahead + Type::Codes::kBytes);
  }
  static void PrefetchShare(int, int) {}
  // The order in which quads are read: those that share bytes, one after the other.
  static constexpr int QuadAt(int step) { return step / 2 + 4 * (step % 2); }
  [[nodiscard]] __m256i Quad(int64_t b, int quad, int v) const {
    return Sums::Weights(codes + b * Type::Codes::kBytes, quad, v);
  }
  [[nodiscard]] Side SideOf(int64_t b, int v) const {
    return Side::Load(sides + b / Side::kBlocks * Side::kBytes, static_cast<int>(b % Side::kBlocks),
                      v);
  }
};

// A strip of a group, unpacked.
template <typename Type, typename Sums>
struct Panel {
  using Side = typename Type::template Side<Sums>;
  __m256i codes[kStripBlocks][kQuads][kVectors];
  Side sides[kStripBlocks][kVectors];
  const std::byte* next_codes;  // of the next strip, packed
  int64_t next_bytes;

  static void Prefetch(int64_t) {}
  // Before each of n_shares tiles: its share of the next strip, so that memory never waits for
  // arithmetic.
  void PrefetchShare(int share, int n_shares) const {
    PrefetchBytes(next_codes + next_bytes * share / n_shares,
                  next_codes + next_bytes * (share + 1) / n_shares);
  }
  static constexpr int QuadAt(int step) { return step; }
  [[nodiscard]] __m256i Quad(int64_t b, int quad, int v) const { return codes[b][quad][v]; }
  [[nodiscard]] const Side& SideOf(int64_t b, int v) const { return sides[b][v]; }
  void Fill(const PackedGroup<Type, Sums>& group, int64_t n_blocks) {
    next_bytes = n_blocks * Type::Codes::kBytes;
    next_codes = group.codes + next_bytes;
    for (int64_t b = 0; b < n_blocks; ++b) {
#pragma GCC unroll 8
      for (int step = 0; step < kQuads; ++step) {
        const int quad = group.QuadAt(step);
        codes[b][quad][0] = group.Quad(b, quad, 0);
        codes[b][quad][1] = group.Quad(b, quad, 1);
      }
      sides[b][0] = group.SideOf(b, 0);
      sides[b][1] = group.SideOf(b, 1);
    }
  }
};

// --- products ---

// Continues the chains [kN][16] of kN rows and a group over n_blocks blocks; `tile` begins at the
// first of them.
template <int kN, typename Sums, typename Group>
void Multiply(const Group& group, const std::byte* tile, int64_t n_blocks, float* chains) {
  __m256 acc[kN][kVectors];
  for (int r = 0; r < kN; ++r) {
    acc[r][0] = _mm256_loadu_ps(chains + kRows * r);
    acc[r][1] = _mm256_loadu_ps(chains + kRows * r + 8);
  }
  for (int64_t b = 0; b < n_blocks; ++b) {
    const std::byte* a = tile + b * kActivationBlock * kN;
    group.Prefetch(b);
    typename Sums::Parts sums[kN][kVectors];
    for (int r = 0; r < kN; ++r) {
      for (int part = 0; part < Sums::kParts; ++part) {
        const __m256i start = Sums::kHasStarts ? BroadcastWord(a + 4 * ((10 + part) * kN + r))
                                               : _mm256_setzero_si256();
        sums[r][0][part] = start;
        sums[r][1][part] = start;
      }
    }
#pragma GCC unroll 8
    for (int step = 0; step < kQuads; ++step) {
      const int quad = Group::QuadAt(step);
      const int part = quad * Sums::kParts / kQuads;
      const __m256i first = group.Quad(b, quad, 0);
      const __m256i second = group.Quad(b, quad, 1);
      for (int r = 0; r < kN; ++r) {
        const __m256i four = BroadcastWord(a + 4 * (quad * kN + r));
        sums[r][0][part] = Sums::Add(first, four, sums[r][0][part]);
        sums[r][1][part] = Sums::Add(second, four, sums[r][1][part]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      const auto& side = group.SideOf(b, v);
      for (int r = 0; r < kN; ++r) {
        const ActivationScale scale = {BroadcastFloat(a + 4 * (8 * kN + r)),
                                       BroadcastFloat(a + 4 * (9 * kN + r))};
        acc[r][v] = side.Add(sums[r][v], scale, acc[r][v]);
      }
    }
  }
  for (int r = 0; r < kN; ++r) {
    _mm256_storeu_ps(chains + kRows * r, acc[r][0]);
    _mm256_storeu_ps(chains + kRows * r + 8, acc[r][1]);
  }
}

template <typename Sums, typename Group>
inline void MultiplyTile(const Group& group, int n, const std::byte* tile, int64_t n_blocks,
                         float* chains) {
  constexpr void (*kMultiply[kTile])(const Group&, const std::byte*, int64_t, float*) = {
      Multiply<1, Sums, Group>, Multiply<2, Sums, Group>, Multiply<3, Sums, Group>};
  kMultiply[n - 1](group, tile, n_blocks, chains);
}

// The activation rows that meet a group while it is at hand, as tiles of sizes as equal as can be:
// 4 rows are 2 and 2. Tiles of a strip lie one after the other, in the order in which they are
// read.
struct Chunk {
  int64_t first;  // row
  int64_t n_blocks;
  std::byte* activations;
  int n_rows;
  int n_tiles;
  int borders[kChunkRows / kTile + 2];  // in rows

  Chunk(const MatMulTask& task, int64_t first_row, int n)
      : first(first_row),
        n_blocks(task.n_in / kBlock),
        activations(task.scratch),
        n_rows(n),
        n_tiles((n + kTile - 1) / kTile) {
    for (int t = 0; t <= n_tiles; ++t) {
      borders[t] = n_rows * t / n_tiles;
    }
  }
  [[nodiscard]] int size(int tile) const { return borders[tile + 1] - borders[tile]; }
  [[nodiscard]] std::byte* at(const Strip& strip, int tile) const {
    return activations + (strip.first * n_rows + strip.n_blocks * borders[tile]) * kActivationBlock;
  }
  // The strip that begins at block `first_block`: for one tile the whole.
  [[nodiscard]] Strip strip_at(int64_t first_block) const {
    const int64_t left = n_blocks - first_block;
    return {first_block, n_tiles == 1 || left < kStripBlocks ? left : kStripBlocks};
  }
};

template <typename Sums>
inline void FillTiles(const MatMulTask& task, const Chunk& chunk) {
  Strip strip = {0, 0};
  while (strip.first < chunk.n_blocks) {
    strip = chunk.strip_at(strip.first);
    for (int t = 0; t < chunk.n_tiles; ++t) {
      FillTile<Sums>(task, strip, chunk.first + chunk.borders[t], chunk.size(t),
                     chunk.at(strip, t));
    }
    strip.first += strip.n_blocks;
  }
}

// Continues the chains of all rows over a strip of a group.
template <typename Sums, typename Group>
inline void MultiplyStrip(const Chunk& chunk, const Group& group, const Strip& strip,
                          float* chains) {
  for (int t = 0; t < chunk.n_tiles; ++t) {
    group.PrefetchShare(t, chunk.n_tiles);
    MultiplyTile<Sums>(group, chunk.size(t), chunk.at(strip, t), strip.n_blocks,
                       chains + kRows * chunk.borders[t]);
  }
}

// chains [n_rows][16] of a group.
template <typename Type, typename Sums>
inline void MultiplyChunk(const Chunk& chunk, const PackedGroup<Type, Sums>& group, float* chains) {
  for (int64_t i = 0; i < chunk.n_rows * kRows; ++i) {
    chains[i] = 0.0f;
  }
  Panel<Type, Sums> panel;
  int64_t done = 0;
  while (done < chunk.n_blocks) {
    const Strip strip = chunk.strip_at(done);
    const PackedGroup<Type, Sums> rest = group.From(done);
    if (chunk.n_tiles <= Type::Codes::kDirectTiles) {
      MultiplyStrip<Sums>(chunk, rest, strip, chains);
    } else {
      panel.Fill(rest, strip.n_blocks);
      MultiplyStrip<Sums>(chunk, panel, strip, chains);
    }
    done += strip.n_blocks;
  }
}

inline void StoreChains(const MatMulTask& task, const Chunk& chunk, int64_t out, int64_t end,
                        const float* chains) {
  for (int64_t row = 0; row < chunk.n_rows; ++row) {
    float* y = task.y + (chunk.first + row) * task.n_out + out;
    for (int v = 0; v < kVectors; ++v) {
      _mm256_maskstore_ps(y + 8 * v, FirstLanes(end - out - 8 * v),
                          _mm256_loadu_ps(chains + kRows * row + 8 * v));
    }
  }
}

// Activation rows of a chunk: as many as stay in the second cache.
inline int ChunkRows(int64_t n_in) {
  const int64_t fitting = kChunkBytes / (n_in / kBlock * kActivationBlock);
  const auto whole = static_cast<int>(fitting < kChunkRows ? fitting : kChunkRows);
  return whole == kChunkRows ? whole : whole < kTile ? kTile : whole / kTile * kTile;
}

template <typename Type, template <typename> typename SumsOf>
void MatMulPacked(const MatMulTask& task, int64_t begin, int64_t end) {
  using Sums = SumsOf<Type>;
  float chains[kChunkRows * kRows];
  const int chunk_rows = ChunkRows(task.n_in);
  for (int64_t first = 0; first < task.n_rows; first += chunk_rows) {
    const int64_t left = task.n_rows - first;
    const Chunk chunk(task, first, left < chunk_rows ? static_cast<int>(left) : chunk_rows);
    FillTiles<Sums>(task, chunk);
    for (int64_t out = begin; out < end; out += kRows) {
      MultiplyChunk(chunk, PackedGroup<Type, Sums>(task, out), chains);
      StoreChains(task, chunk, out, end, chains);
    }
  }
}

}  // namespace
}  // namespace facet
