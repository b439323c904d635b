// SPDX-License-Identifier: Apache-2.0
// Matrix products of packed weights with AVX-512 VNNI: equal to matmul_scalar.cc bit for bit.
// Compiled with -mavx512*; uses no inline function of the library or the standard library
// (vector_math_avx2.h says why).
//
// Up to 8 activation rows at a time run against a group of 16 weight rows: per block and activation
// row 8 vpdpbusd (the 4 activations come by an embedded broadcast, one load each) and 3 float
// operations of the chain. With 8 rows that is 88 arithmetic operations for 4096 products and 12 to
// unpack 4-bit codes; so from 9 rows on a group is unpacked once into a panel, which stays in the
// first or second cache while all rows of a chunk pass. One row is bound by memory: 288 bytes of
// Q4_0 take about 14 cycles of arithmetic.
#include <immintrin.h>

#include "compute/kernels_avx2.h"
#include "compute/packed_types_avx512.h"

namespace facet {
namespace {

constexpr int kTile = 8;        // activation rows that run together
constexpr int kChunkRows = 64;  // activation rows that a panel meets while they stay in the cache
constexpr int64_t kChunkBytes = int64_t{512} << 10;

// --- activations ---

// A tile of kN rows: per block [8 quads][kN] words of 4 activations, [kN] scales, [kN] sums (float)
// and [2][kN] starts, what the integer sums of a block or its halves begin with: −offset · Σ a.
constexpr int kActivationBlock = 48;  // bytes for one row

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
  [[nodiscard]] __m512i Quad(int64_t b, int quad) const {
    return Type::Codes::Quad(codes + b * Type::Codes::kBytes, quad);
  }
  [[nodiscard]] Side SideOf(int64_t b) const {
    return Side::Load(sides + b / Side::kBlocks * Side::kBytes,
                      static_cast<int>(b % Side::kBlocks));
  }
};

// A group unpacked: [n_blocks][8 quads] vectors, then the sides.
template <typename SideOfType>
struct Panel {
  using Side = SideOfType;
  __m512i* codes;
  Side* sides;

  Panel(std::byte* memory, int64_t n_blocks)
      : codes(reinterpret_cast<__m512i*>(memory)),
        sides(reinterpret_cast<Side*>(memory + n_blocks * kBlock * kRows)) {}
  [[nodiscard]] __m512i Quad(int64_t b, int quad) const { return codes[kQuads * b + quad]; }
  [[nodiscard]] const Side& SideOf(int64_t b) const { return sides[b]; }
  template <typename Type>
  void Fill(const PackedGroup<Type>& group, int64_t n_blocks) {
    for (int64_t b = 0; b < n_blocks; ++b) {
      for (int quad = 0; quad < kQuads; ++quad) {
        codes[kQuads * b + quad] = group.Quad(b, quad);
      }
      sides[b] = group.SideOf(b);
    }
  }
};

// --- products ---

inline __m512i Broadcast32(const std::byte* data) {
  int word;
  __builtin_memcpy(&word, data, sizeof(word));
  return _mm512_set1_epi32(word);
}

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

// Activation rows of a chunk: as many as stay in the second cache beside a panel.
inline int64_t ChunkRows(int64_t n_in) {
  const int64_t fitting = kChunkBytes / (n_in / kBlock * kActivationBlock);
  return fitting >= kChunkRows ? kChunkRows : fitting < kTile ? kTile : fitting / kTile * kTile;
}

template <typename Type>
void MatMulPacked(const MatMulTask& task, int64_t begin, int64_t end) {
  const int64_t n_blocks = task.n_in / kBlock;
  const auto address = reinterpret_cast<uintptr_t>(task.scratch);
  std::byte* scratch = task.scratch + (64 - address % 64) % 64;
  Panel<typename Type::Side> panel(scratch, n_blocks);
  std::byte* activations =
      scratch + n_blocks * (kBlock * kRows + static_cast<int64_t>(sizeof(typename Type::Side)));
  const int64_t chunk_rows = ChunkRows(task.n_in);
  for (int64_t first = 0; first < task.n_rows; first += chunk_rows) {
    const int64_t n_rows = task.n_rows - first < chunk_rows ? task.n_rows - first : chunk_rows;
    // Tiles of sizes as equal as can be: 9 rows are 5 and 4.
    const int n_tiles = static_cast<int>((n_rows + kTile - 1) / kTile);
    int64_t borders[kChunkRows / kTile + 1];
    for (int t = 0; t <= n_tiles; ++t) {
      borders[t] = n_rows * t / n_tiles;
    }
    const int64_t row_bytes = n_blocks * kActivationBlock;
    for (int t = 0; t < n_tiles; ++t) {
      FillTile<Type>(task, first + borders[t], static_cast<int>(borders[t + 1] - borders[t]),
                     activations + borders[t] * row_bytes);
    }
    for (int64_t out = begin; out < end; out += kRows) {
      const PackedGroup<Type> group(task, out);
      if (n_tiles == 1) {
        MultiplyTile(group, {activations, static_cast<int>(n_rows)}, n_blocks,
                     TargetOf(task, first, out, end));
        continue;
      }
      panel.Fill(group, n_blocks);
      for (int t = 0; t < n_tiles; ++t) {
        const ActivationTile tile = {activations + borders[t] * row_bytes,
                                     static_cast<int>(borders[t + 1] - borders[t])};
        MultiplyTile(panel, tile, n_blocks, TargetOf(task, first + borders[t], out, end));
      }
    }
  }
}

const TypeKernel kPacked[] = {{TensorType::kQ4_0, MatMulPacked<PackedQ4_0>},
                              {TensorType::kQ4_1, MatMulPacked<PackedQ4_1>},
                              {TensorType::kQ5_0, MatMulPacked<PackedQ5_0>},
                              {TensorType::kQ5_1, MatMulPacked<PackedQ5_1>},
                              {TensorType::kQ8_0, MatMulPacked<PackedQ8_0>},
                              {TensorType::kQ4_K, MatMulPacked<PackedQ4K>},
                              {TensorType::kQ5_K, MatMulPacked<PackedQ5K>},
                              {TensorType::kQ6_K, MatMulPacked<PackedQ6K>},
                              {TensorType::kIQ4_NL, MatMulPacked<PackedIQ4NL>},
                              {TensorType::kIQ4_XS, MatMulPacked<PackedIQ4XS>},
                              {TensorType::kMXFP4, MatMulPacked<PackedMXFP4>}};

}  // namespace

const MatMulKernels kMatMulAvx512 = {
    .f32 = MatMulF32Avx2,
    .f16 = MatMulF16Avx2,
    .bf16 = MatMulBf16Avx2,
    .unpacked = MatMulUnpackedAvx2,
    .quantize = QuantizeAvx2,
    .blocks = kBlockKernelsAvx2,
    .n_blocks = kNBlockKernelsAvx2,
    .packed = kPacked,
    .n_packed = sizeof(kPacked) / sizeof(kPacked[0]),
};

}  // namespace facet
