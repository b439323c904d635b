// SPDX-License-Identifier: Apache-2.0
// Products of many activation rows with packed weights by 8-bit tiles, over a class of tiles: those
// of the processor (matmul_amx.cc) or an emulation of them (matmul_amx_emulated_test.cc), so that
// all but the tile instructions is tested where the processor has none.
//
// A tile product is the integer sums of one block for 12 or 16 activation rows and 16 outputs; the
// floats of the chain are those of the vector kernels. Codes lie in a panel without their offset,
// as signed bytes. Everything lies in an anonymous namespace (vector_math_avx2.h says why).
#pragma once

#include <immintrin.h>

#include "compute/matmul_packed_avx512.h"

namespace facet {
namespace {

/// What ldtilecfg reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

inline constexpr int kTileRows = 16;      // activation rows of a tile at most
inline constexpr int kLeastTileRows = 9;  // fewer rows are faster without tiles
inline constexpr int64_t kTileChunkBytes = int64_t{1} << 20;

// Tiles 0 to 3 hold sums, 4 and 5 activations, 6 and 7 weights: two blocks are under way.
inline constexpr int kActivationTile = 4;
inline constexpr int kWeightTile = 6;

// For products of `n_rows` activation rows with blocks, or with halves of them.
inline TileConfig ConfigOf(int n_rows, int n_halves) {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.rows[tile] = static_cast<uint8_t>(tile < kWeightTile ? n_rows : kQuads / n_halves);
    const bool has_activations = tile == kActivationTile || tile == kActivationTile + 1;
    config.row_bytes[tile] = static_cast<uint16_t>(has_activations ? kBlock / n_halves : 64);
  }
  return config;
}

// --- activations: per block [kN rows][32 values], [kN] scales and [kN] sums (float) ---

inline constexpr int kTileActivationBlock = 40;  // bytes for one row

// Writes rows [row, row + n) as a tile of kN rows; the others are zeros.
template <int kN>
inline void FillActivationTile(const MatMulTask& task, int64_t row, int n, std::byte* out) {
  const int64_t n_blocks = task.n_in / kBlock;
  for (int64_t b = 0; b < n_blocks; ++b, out += kTileActivationBlock * kN) {
    auto* floats = reinterpret_cast<float*>(out + kBlock * kN);
    for (int r = 0; r < kN; ++r) {
      if (r >= n) {
        __builtin_memset(out + kBlock * r, 0, kBlock);
        floats[r] = 0.0f;
        floats[kN + r] = 0.0f;
        continue;
      }
      const int64_t at = (row + r) * n_blocks + b;
      __builtin_memcpy(out + kBlock * r, task.values + kBlock * at, kBlock);
      floats[r] = task.scales[at];
      floats[kN + r] = static_cast<float>(task.sums[at]);
    }
  }
}

// --- weights ---

// A group without offset: [n_blocks][8 quads] vectors of signed bytes, then the sides.
template <typename SideOfType>
struct Panel {
  using Side = SideOfType;
  static constexpr int64_t kBlockBytes = kBlock * kRows + static_cast<int64_t>(sizeof(Side));
  __m512i* codes;
  Side* sides;

  Panel(std::byte* memory, int64_t n_blocks)
      : codes(reinterpret_cast<__m512i*>(memory)),
        sides(reinterpret_cast<Side*>(memory + n_blocks * kBlock * kRows)) {}

  template <typename Type>
  void Fill(const PackedGroup<Type>& group, int64_t n_blocks) const {
    const __m512i offset = _mm512_set1_epi8(static_cast<char>(Type::kOffset));
    for (int64_t b = 0; b < n_blocks; ++b) {
      group.Prefetch(b);
      for (int quad = 0; quad < kQuads; ++quad) {
        codes[kQuads * b + quad] = _mm512_sub_epi8(group.Quad(b, quad), offset);
      }
      sides[b] = group.SideOf(b);
    }
  }
};

// --- products ---

// The 16 outputs of kN rows. A tile product takes some 50 cycles until its sums can be stored, and
// stored sums some more until vectors can read them; hence three steps at a time: while the floats
// of a block run, the sums of the next are stored and the products of the one after that start. All
// of it must be one function, or the accumulators become memory.
template <typename Tiles, typename Side, int kN>
class TileProduct {
 public:
  TileProduct(Tiles& tiles, const Panel<Side>& panel, const std::byte* activations,
              int64_t n_blocks)
      : tiles_(tiles), panel_(panel), activations_(activations), n_blocks_(n_blocks) {}

  // Stores those of the first n rows.
  void Run(const Target& target, int n) {
    __m512 acc[kN];
    for (int r = 0; r < kN; ++r) {
      acc[r] = _mm512_setzero_ps();
    }
    Start<0>(0);
    if (n_blocks_ > 1) {
      Start<1>(1);
    }
    Store<0>();
    for (int64_t b = 0; b < n_blocks_; b += 2) {
      Step<0>(b, acc);
      if (b + 1 < n_blocks_) {
        Step<1>(b + 1, acc);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kN; ++r) {
      if (r < n) {
        _mm512_mask_storeu_ps(target.y + r * target.stride, target.lanes, acc[r]);
      }
    }
  }

 private:
  static constexpr int kHalves = Side::kHalves;

  // Blocks of even and of odd numbers have their own tiles and sums: kParity.
  template <int kParity>
  [[gnu::always_inline]] inline void Step(int64_t b, __m512 (&acc)[kN]) {
    if (b + 1 < n_blocks_) {
      Store<1 - kParity>();
    }
    if (b + 2 < n_blocks_) {
      Start<kParity>(b + 2);
    }
    AddBlock<kParity>(b, acc);
  }

  template <int kParity>
  [[gnu::always_inline]] inline void Start(int64_t b) {
    StartHalf<kParity, 0>(b);
    if constexpr (kHalves == 2) {
      StartHalf<kParity, 1>(b);
    }
  }

  template <int kParity, int kHalf>
  [[gnu::always_inline]] inline void StartHalf(int64_t b) {
    constexpr int kSums = kParity * kHalves + kHalf;
    constexpr int kA = kActivationTile + kParity;
    constexpr int kB = kWeightTile + kParity;
    tiles_.template Zero<kSums>();
    tiles_.template Load<kA>(
        activations_ + b * kTileActivationBlock * kN + kHalf * kBlock / kHalves, kBlock);
    tiles_.template Load<kB>(panel_.codes + kQuads * b + kHalf * kQuads / kHalves, 64);
    tiles_.template Multiply<kSums, kA, kB>();
  }

  template <int kParity>
  [[gnu::always_inline]] inline void Store() {
    tiles_.template Store<kParity * kHalves>(sums_[kParity][0], 64);
    if constexpr (kHalves == 2) {
      tiles_.template Store<kParity * kHalves + 1>(sums_[kParity][1], 64);
    }
  }

  template <int kParity>
  [[gnu::always_inline]] inline void AddBlock(int64_t b, __m512 (&acc)[kN]) const {
    const auto* floats =
        reinterpret_cast<const float*>(activations_ + (b * kTileActivationBlock + kBlock) * kN);
    const Side& side = panel_.sides[b];
#pragma GCC unroll 16
    for (int r = 0; r < kN; ++r) {
      __m512i dots[kHalves];
      for (int half = 0; half < kHalves; ++half) {
        dots[half] = _mm512_load_si512(sums_[kParity][half][r]);
      }
      acc[r] = side.Add(dots, {floats[r], floats[kN + r]}, acc[r]);
    }
  }

  Tiles& tiles_;
  const Panel<Side> panel_;
  const std::byte* activations_;
  int64_t n_blocks_;
  alignas(64) int32_t sums_[2][kHalves][kN][kRows];
};

// Rows [first, first + n) of a task, in tiles of kN.
template <typename Tiles, typename Type, int kN>
void MultiplyChunk(const MatMulTask& task, int64_t first, int n, int64_t begin, int64_t end) {
  using Side = typename Type::Side;
  const int64_t n_blocks = task.n_in / kBlock;
  std::byte* scratch = task.scratch;
  const Panel<Side> panel(scratch, n_blocks);
  std::byte* activations = scratch + n_blocks * Panel<Side>::kBlockBytes;
  const int n_tiles = (n + kN - 1) / kN;
  int borders[kChunkRows / kTileRows + 1];
  std::byte* places[kChunkRows / kTileRows];
  for (int t = 0; t <= n_tiles; ++t) {
    borders[t] = n * t / n_tiles;
  }
  for (int t = 0; t < n_tiles; ++t) {
    places[t] = activations + t * n_blocks * kTileActivationBlock * kN;
    FillActivationTile<kN>(task, first + borders[t], borders[t + 1] - borders[t], places[t]);
  }
  Tiles tiles(ConfigOf(kN, Side::kHalves));
  for (int64_t out = begin; out < end; out += kRows) {
    panel.Fill(PackedGroup<Type>(task, out), n_blocks);
    for (int t = 0; t < n_tiles; ++t) {
      TileProduct<Tiles, Side, kN>(tiles, panel, places[t], n_blocks)
          .Run(TargetOf(task, first + borders[t], out, end), borders[t + 1] - borders[t]);
    }
  }
}

// As many rows as stay in the second cache beside a panel.
inline int64_t TileChunkRows(int64_t n_in) {
  const int64_t fitting = kTileChunkBytes / (n_in / kBlock * kTileActivationBlock);
  return fitting >= kChunkRows ? kChunkRows
         : fitting < kTileRows ? kTileRows
                               : fitting / kTileRows * kTileRows;
}

// Packed products of `kType` with tiles.
template <typename Tiles, TensorType kType, typename Type>
void MatMulTiles(const MatMulTask& task, int64_t begin, int64_t end) {
  if (task.n_rows < kLeastTileRows) {
    for (int i = 0; i < kMatMulAvx512.n_packed; ++i) {
      if (kMatMulAvx512.packed[i].type == kType) {
        return kMatMulAvx512.packed[i].kernel(task, begin, end);
      }
    }
  }
  // Chunks as equal as can be, and their tiles too: 65 rows are 32 and 33, in tiles of 16 and 11.
  const int64_t chunk_rows = TileChunkRows(task.n_in);
  const int64_t n_chunks = (task.n_rows + chunk_rows - 1) / chunk_rows;
  for (int64_t c = 0; c < n_chunks; ++c) {
    const int64_t first = task.n_rows * c / n_chunks;
    const int n = static_cast<int>(task.n_rows * (c + 1) / n_chunks - first);
    const int n_tiles = (n + kTileRows - 1) / kTileRows;
    if (n <= 12 * n_tiles) {
      MultiplyChunk<Tiles, Type, 12>(task, first, n, begin, end);
    } else {
      MultiplyChunk<Tiles, Type, kTileRows>(task, first, n, begin, end);
    }
  }
}

inline constexpr int kNPackedTiles = 11;

// The kernels of every packed type.
template <typename Tiles>
inline constexpr TypeKernel kPackedTiles[kNPackedTiles] = {
    {TensorType::kQ4_0, MatMulTiles<Tiles, TensorType::kQ4_0, PackedQ4_0>},
    {TensorType::kQ4_1, MatMulTiles<Tiles, TensorType::kQ4_1, PackedQ4_1>},
    {TensorType::kQ5_0, MatMulTiles<Tiles, TensorType::kQ5_0, PackedQ5_0>},
    {TensorType::kQ5_1, MatMulTiles<Tiles, TensorType::kQ5_1, PackedQ5_1>},
    {TensorType::kQ8_0, MatMulTiles<Tiles, TensorType::kQ8_0, PackedQ8_0>},
    {TensorType::kQ4_K, MatMulTiles<Tiles, TensorType::kQ4_K, PackedQ4K>},
    {TensorType::kQ5_K, MatMulTiles<Tiles, TensorType::kQ5_K, PackedQ5K>},
    {TensorType::kQ6_K, MatMulTiles<Tiles, TensorType::kQ6_K, PackedQ6K>},
    {TensorType::kIQ4_NL, MatMulTiles<Tiles, TensorType::kIQ4_NL, PackedIQ4NL>},
    {TensorType::kIQ4_XS, MatMulTiles<Tiles, TensorType::kIQ4_XS, PackedIQ4XS>},
    {TensorType::kMXFP4, MatMulTiles<Tiles, TensorType::kMXFP4, PackedMXFP4>}};

}  // namespace
}  // namespace facet
