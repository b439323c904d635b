// SPDX-License-Identifier: Apache-2.0
// Matrix products with AVX2: equal to matmul_scalar.cc bit for bit. Eight weight rows lie in the
// lanes of a vector, so that each lane runs the chain of its own output element. Dot products of a
// block are exact in integers, hence their order is free: one activation row multiplies weights as
// they lie in the file and adds across (RowDots); several activation rows share a panel of unpacked
// weights with the eight rows interleaved (PanelDots). Compiled with -mavx2 -mfma -mf16c; uses no
// inline function of the library or the standard library (vector_math_avx2.h says why).
#include <immintrin.h>

#include "compute/block_layout.h"
#include "compute/kernels.h"
#include "compute/vector_math_avx2.h"

namespace facet {
namespace {

constexpr int kRows = 8;    // weight rows of a group
constexpr int kBlock = 32;  // values that share an activation scale
constexpr int kQuads = 8;   // groups of 4 values in a block
constexpr int kPanelBlock = kRows * kBlock;

inline __m256i Load256(const void* data) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(data));
}

inline void Store256(void* data, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(data), value);
}

inline int LoadDword(const std::byte* data) {
  int value;
  __builtin_memcpy(&value, data, sizeof(value));
  return value;
}

inline short LoadWord(const std::byte* data) {
  short value;
  __builtin_memcpy(&value, data, sizeof(value));
  return value;
}

// The rows of a group, each at the same block. Beyond the last row of a product the last one is
// repeated.
struct Group {
  const std::byte* rows[kRows];

  [[nodiscard]] Group At(int64_t offset) const {
    Group moved;
    for (int i = 0; i < kRows; ++i) {
      moved.rows[i] = rows[i] + offset;
    }
    return moved;
  }
  // The float16 at `offset` of each row.
  [[nodiscard]] __m256 Halves(int offset) const {
    return _mm256_cvtph_ps(_mm_setr_epi16(LoadWord(rows[0] + offset), LoadWord(rows[1] + offset),
                                          LoadWord(rows[2] + offset), LoadWord(rows[3] + offset),
                                          LoadWord(rows[4] + offset), LoadWord(rows[5] + offset),
                                          LoadWord(rows[6] + offset), LoadWord(rows[7] + offset)));
  }
  [[nodiscard]] __m256i Dwords(int offset) const {
    return _mm256_setr_epi32(LoadDword(rows[0] + offset), LoadDword(rows[1] + offset),
                             LoadDword(rows[2] + offset), LoadDword(rows[3] + offset),
                             LoadDword(rows[4] + offset), LoadDword(rows[5] + offset),
                             LoadDword(rows[6] + offset), LoadDword(rows[7] + offset));
  }
};

// What multiplies the integers of one block of one activation row.
struct ActivationBlock {
  float scale;
  int32_t sum;
  const int16_t* half_sums;  // two
};

// Integer dot products of a block for the eight rows; `second` is the second half's where a type
// needs them apart.
struct Dots {
  __m256i first;
  __m256i second;
};

inline __m256 AddScaled(__m256i dots, __m256 d, float activation_scale, __m256 acc) {
  const __m256 scale = _mm256_mul_ps(d, _mm256_set1_ps(activation_scale));
  return _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), scale, acc);
}

// How far a product of weights (unsigned) and activations can be added up in 16 bits: kNibble 8
// pairs (30480), kHalf 2 pairs (63 · 127 · 4 = 32004) and the halves of a block apart, kByte 1 pair
// (|-128| · 127 · 2 = 32512).
enum class Width { kNibble, kHalf, kByte };

// Each type: Side holds what a file block of eight rows has beside its values; Values gives the 32
// values of block j as bytes (signed for kByte, else without their offset); Add is a step of the
// chain.
struct Q8_0 {
  static constexpr Width kWidth = Width::kByte;
  static constexpr int kBlocks = 1;
  static constexpr int kBytes = layout::kQ8_0Bytes;
  struct Side {
    float d[kRows];
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(0));
  }
  static __m256i Values(const std::byte* block, int) {
    return Load256(block + layout::kQ8_0Values);
  }
  static __m256 Add(const Dots& dots, const Side& side, int, const ActivationBlock& a, __m256 acc) {
    return AddScaled(dots.first, _mm256_loadu_ps(side.d), a.scale, acc);
  }
};

struct Q4_0 {
  static constexpr Width kWidth = Width::kNibble;
  static constexpr int kBlocks = 1;
  static constexpr int kBytes = layout::kQ4_0Bytes;
  struct Side {
    float d[kRows];
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(0));
  }
  static __m256i Values(const std::byte* block, int) {
    const auto* nibbles = reinterpret_cast<const __m128i*>(block + layout::kQ4_0Nibbles);
    const __m256i twice = _mm256_broadcastsi128_si256(_mm_loadu_si128(nibbles));
    const __m256i shifted = _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return _mm256_and_si256(shifted, _mm256_set1_epi8(15));
  }
  // Σ (q − 8) a = Σ q a − 8 Σ a
  static __m256 Add(const Dots& dots, const Side& side, int, const ActivationBlock& a, __m256 acc) {
    const __m256i dot = _mm256_sub_epi32(dots.first, _mm256_set1_epi32(8 * a.sum));
    return AddScaled(dot, _mm256_loadu_ps(side.d), a.scale, acc);
  }
};

struct Q4K {
  static constexpr Width kWidth = Width::kNibble;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = layout::kQ4_KBytes;
  struct Side {
    float d[kRows];
    float dmin[kRows];
    uint32_t scales[2][kRows];  // four 6-bit scales of a row in the bytes of a word
    uint32_t minima[2][kRows];
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(0));
    _mm256_storeu_ps(side->dmin, group.Halves(2));
    const __m256i a = group.Dwords(layout::kQ4_KScales);
    const __m256i b = group.Dwords(layout::kQ4_KScales + 4);
    const __m256i c = group.Dwords(layout::kQ4_KScales + 8);
    const __m256i six = _mm256_set1_epi8(0x3f);
    const __m256i four = _mm256_set1_epi8(0x0f);
    const __m256i two = _mm256_set1_epi8(0x30);
    const __m256i c_high = _mm256_and_si256(_mm256_srli_epi32(c, 4), four);
    Store256(side->scales[0], _mm256_and_si256(a, six));
    Store256(side->minima[0], _mm256_and_si256(b, six));
    Store256(side->scales[1], _mm256_or_si256(_mm256_and_si256(c, four),
                                              _mm256_and_si256(_mm256_srli_epi32(a, 2), two)));
    Store256(side->minima[1],
             _mm256_or_si256(c_high, _mm256_and_si256(_mm256_srli_epi32(b, 2), two)));
  }
  static __m256i Values(const std::byte* block, int j) {
    const __m256i pairs = Load256(block + layout::kQ4_KNibbles + 32 * (j / 2));
    const __m256i shifted = _mm256_srl_epi16(pairs, _mm_cvtsi32_si128(4 * (j % 2)));
    return _mm256_and_si256(shifted, _mm256_set1_epi8(15));
  }
  static __m256 Add(const Dots& dots, const Side& side, int j, const ActivationBlock& a,
                    __m256 acc) {
    const __m128i shift = _mm_cvtsi32_si128(8 * (j % 4));
    const __m256i byte = _mm256_set1_epi32(0xff);
    const __m256i s = _mm256_and_si256(_mm256_srl_epi32(Load256(side.scales[j / 4]), shift), byte);
    const __m256i m = _mm256_and_si256(_mm256_srl_epi32(Load256(side.minima[j / 4]), shift), byte);
    acc = AddScaled(_mm256_mullo_epi32(dots.first, s), _mm256_loadu_ps(side.d), a.scale, acc);
    const __m256i minimum = _mm256_mullo_epi32(m, _mm256_set1_epi32(a.sum));
    const __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(side.dmin), _mm256_set1_ps(a.scale));
    return _mm256_fnmadd_ps(_mm256_cvtepi32_ps(minimum), scale, acc);
  }
};

struct Q6K {
  static constexpr Width kWidth = Width::kHalf;
  static constexpr int kBlocks = 8;
  static constexpr int kBytes = layout::kQ6_KBytes;
  struct Side {
    float d[kRows];
    int32_t scales[4][kRows];  // four int8 scales of a row in the bytes of a word
  };
  static void LoadSide(const Group& group, Side* side) {
    _mm256_storeu_ps(side->d, group.Halves(layout::kQ6_KD));
    for (int i = 0; i < 4; ++i) {
      Store256(side->scales[i], group.Dwords(layout::kQ6_KScales + 4 * i));
    }
  }
  static __m256i Values(const std::byte* block, int j) {
    const __m256i low = Load256(block + 64 * (j / 4) + 32 * (j % 2));
    const __m256i high = Load256(block + layout::kQ6_KHigh + 32 * (j / 4));
    const __m256i nibbles = _mm256_and_si256(
        _mm256_srl_epi16(low, _mm_cvtsi32_si128(j % 4 / 2 * 4)), _mm256_set1_epi8(15));
    const __m256i pairs =
        _mm256_and_si256(_mm256_srl_epi16(high, _mm_cvtsi32_si128(j % 4 * 2)), _mm256_set1_epi8(3));
    return _mm256_or_si256(nibbles, _mm256_slli_epi16(pairs, 4));
  }
  // Σ (q − 32) a = Σ q a − 32 Σ a, per half
  static __m256 Add(const Dots& dots, const Side& side, int j, const ActivationBlock& a,
                    __m256 acc) {
    const __m256i scales = Load256(side.scales[j / 2]);
    const int up = j % 2 * 16;
    const __m256i s0 = _mm256_srai_epi32(_mm256_sll_epi32(scales, _mm_cvtsi32_si128(24 - up)), 24);
    const __m256i s1 = _mm256_srai_epi32(_mm256_sll_epi32(scales, _mm_cvtsi32_si128(16 - up)), 24);
    const __m256i dot0 = _mm256_sub_epi32(dots.first, _mm256_set1_epi32(32 * a.half_sums[0]));
    const __m256i dot1 = _mm256_sub_epi32(dots.second, _mm256_set1_epi32(32 * a.half_sums[1]));
    const __m256i dot =
        _mm256_add_epi32(_mm256_mullo_epi32(s0, dot0), _mm256_mullo_epi32(s1, dot1));
    return AddScaled(dot, _mm256_loadu_ps(side.d), a.scale, acc);
  }
};

// Products of 32 weights with 32 activations, added in pairs: 16 exact sums of 16 bits. A signed
// weight gives its sign to the activation, which has no -128.
template <Width kWidth>
inline __m256i PairSums(__m256i w, __m256i a) {
  if constexpr (kWidth == Width::kByte) {
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
  } else {
    return _mm256_maddubs_epi16(w, a);
  }
}

inline __m256i Widen(__m256i sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }

// Lower and upper halves of a and b: [a.low, b.low] + [a.high, b.high].
inline __m256i AddHalves(__m256i a, __m256i b) {
  return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                          _mm256_permute2x128_si256(a, b, 0x31));
}

// Weights as they lie in the file: sums within each row, then a tree that puts row i's total into
// lane i.
template <typename Type>
inline Dots RowDots(const Group& group, int j, __m256i a) {
  __m256i sums[kRows];
  for (int i = 0; i < kRows; ++i) {
    sums[i] = PairSums<Type::kWidth>(Type::Values(group.rows[i], j), a);
  }
  if constexpr (Type::kWidth == Width::kNibble) {
    __m256i quads[2];  // four rows each, in every half; at most 4 pairs were added
    for (int i = 0; i < 2; ++i) {
      quads[i] = Widen(_mm256_hadd_epi16(_mm256_hadd_epi16(sums[4 * i], sums[4 * i + 1]),
                                         _mm256_hadd_epi16(sums[4 * i + 2], sums[4 * i + 3])));
    }
    return {AddHalves(quads[0], quads[1]), _mm256_setzero_si256()};
  }
  __m256i quads[2];
  for (int i = 0; i < 2; ++i) {
    quads[i] = _mm256_hadd_epi32(_mm256_hadd_epi32(Widen(sums[4 * i]), Widen(sums[4 * i + 1])),
                                 _mm256_hadd_epi32(Widen(sums[4 * i + 2]), Widen(sums[4 * i + 3])));
  }
  if constexpr (Type::kWidth == Width::kHalf) {
    return {_mm256_permute2x128_si256(quads[0], quads[1], 0x20),
            _mm256_permute2x128_si256(quads[0], quads[1], 0x31)};
  }
  return {AddHalves(quads[0], quads[1]), _mm256_setzero_si256()};
}

template <typename Type>
inline __m256 MultiplyRow(const Group& group, const MatMulTask& task, int64_t row) {
  const int8_t* values = task.values + row * task.n_in;
  const float* scales = task.scales + row * task.n_in / kBlock;
  const int32_t* sums = task.sums + row * task.n_in / kBlock;
  const int16_t* half_sums = task.half_sums + row * task.n_in / 16;
  const int64_t n_file_blocks = task.n_in / (kBlock * Type::kBlocks);
  __m256 acc = _mm256_setzero_ps();
  for (int64_t f = 0; f < n_file_blocks; ++f) {
    const Group here = group.At(f * Type::kBytes);
    typename Type::Side side;
    Type::LoadSide(here, &side);
    for (int j = 0; j < Type::kBlocks; ++j) {
      const int64_t b = f * Type::kBlocks + j;
      const Dots dots = RowDots<Type>(here, j, Load256(values + b * kBlock));
      acc = Type::Add(dots, side, j, {scales[b], sums[b], half_sums + 2 * b}, acc);
    }
  }
  return acc;
}

// --- the panel: blocks of [8 quads][8 rows][4 values], then the sides of all file blocks ---

// Dword g of row i goes to dword i of vector g.
inline void Transpose8(__m256i (&v)[kRows]) {
  __m256i pairs[kRows];
  for (int i = 0; i < kRows; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  __m256i fours[kRows];
  for (int i = 0; i < kRows; i += 4) {
    fours[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    v[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

template <typename Type>
struct Panel {
  std::byte* values;
  typename Type::Side* sides;

  explicit Panel(const MatMulTask& task) {
    const auto address = reinterpret_cast<uintptr_t>(task.scratch);
    values = task.scratch + (64 - address % 64) % 64;
    sides = reinterpret_cast<typename Type::Side*>(values + kRows * task.n_in);
  }

  void Unpack(const Group& group, int64_t n_in) const {
    for (int64_t f = 0; f < n_in / (kBlock * Type::kBlocks); ++f) {
      const Group here = group.At(f * Type::kBytes);
      Type::LoadSide(here, &sides[f]);
      for (int j = 0; j < Type::kBlocks; ++j) {
        __m256i v[kRows];
        for (int i = 0; i < kRows; ++i) {
          v[i] = Type::Values(here.rows[i], j);
        }
        Transpose8(v);
        std::byte* block = values + (f * Type::kBlocks + j) * kPanelBlock;
        for (int i = 0; i < kRows; ++i) {
          Store256(block + 32 * i, v[i]);
        }
      }
    }
  }
};

inline __m256i BroadcastQuad(const int8_t* values) {
  int quad;
  __builtin_memcpy(&quad, values, sizeof(quad));
  return _mm256_set1_epi32(quad);
}

// The dot products of one panel block with kN activation rows that lie `stride` apart.
template <Width kWidth, int kN>
inline void PanelDots(const std::byte* block, const int8_t* values, int64_t stride,
                      Dots (&dots)[kN]) {
  constexpr int kPairs = kWidth == Width::kNibble ? 8 : kWidth == Width::kHalf ? 2 : 1;
  for (int r = 0; r < kN; ++r) {
    dots[r] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }
  for (int first = 0; first < kQuads; first += kPairs) {
    __m256i sums[kN];
    for (int r = 0; r < kN; ++r) {
      sums[r] = PairSums<kWidth>(Load256(block + 32 * first),
                                 BroadcastQuad(values + r * stride + 4 * first));
    }
    for (int quad = first + 1; quad < first + kPairs; ++quad) {
      const __m256i w = Load256(block + 32 * quad);
      for (int r = 0; r < kN; ++r) {
        const __m256i a = BroadcastQuad(values + r * stride + 4 * quad);
        sums[r] = _mm256_add_epi16(sums[r], PairSums<kWidth>(w, a));
      }
    }
    for (int r = 0; r < kN; ++r) {
      __m256i& total =
          kWidth == Width::kHalf && first >= kQuads / 2 ? dots[r].second : dots[r].first;
      total = _mm256_add_epi32(total, Widen(sums[r]));
    }
  }
}

// Stores the lanes of outputs [out, end) of one row.
inline void StoreOutputs(const MatMulTask& task, int64_t row, int64_t out, int64_t end,
                         __m256 acc) {
  float* y = task.y + row * task.n_out + out;
  if (end - out >= kRows) {
    _mm256_storeu_ps(y, acc);
  } else {
    _mm256_maskstore_ps(y, FirstLanes(end - out), acc);
  }
}

template <typename Type, int kN>
inline void MultiplyPanel(const MatMulTask& task, const Panel<Type>& panel, int64_t row,
                          int64_t out, int64_t end) {
  const int64_t n_blocks = task.n_in / kBlock;
  const int8_t* values = task.values + row * task.n_in;
  const float* scales = task.scales + row * n_blocks;
  const int32_t* sums = task.sums + row * n_blocks;
  const int16_t* half_sums = task.half_sums + 2 * row * n_blocks;
  __m256 acc[kN];
  for (int r = 0; r < kN; ++r) {
    acc[r] = _mm256_setzero_ps();
  }
  for (int64_t b = 0; b < n_blocks; ++b) {
    Dots dots[kN];
    PanelDots<Type::kWidth, kN>(panel.values + b * kPanelBlock, values + b * kBlock, task.n_in,
                                dots);
    const auto& side = panel.sides[b / Type::kBlocks];
    for (int r = 0; r < kN; ++r) {
      const int64_t at = r * n_blocks + b;
      acc[r] = Type::Add(dots[r], side, static_cast<int>(b % Type::kBlocks),
                         {scales[at], sums[at], half_sums + 2 * at}, acc[r]);
    }
  }
  for (int r = 0; r < kN; ++r) {
    StoreOutputs(task, row + r, out, end, acc[r]);
  }
}

template <int kN>
inline void SetRows(const MatMulTask& task, int64_t out, int64_t end,
                    const std::byte* (&rows)[kN]) {
  for (int i = 0; i < kN; ++i) {
    const int64_t row = out + i < end ? out + i : end - 1;
    rows[i] = task.w + row * task.row_bytes;
  }
}

template <typename Type>
void MatMulBlocks(const MatMulTask& task, int64_t begin, int64_t end) {
  const Panel<Type> panel(task);
  for (int64_t out = begin; out < end; out += kRows) {
    Group group;
    SetRows(task, out, end, group.rows);
    if (task.n_rows == 1) {
      StoreOutputs(task, 0, out, end, MultiplyRow<Type>(group, task, 0));
      continue;
    }
    panel.Unpack(group, task.n_in);
    int64_t row = 0;
    for (; row + 4 <= task.n_rows; row += 4) {
      MultiplyPanel<Type, 4>(task, panel, row, out, end);
    }
    for (; row + 2 <= task.n_rows; row += 2) {
      MultiplyPanel<Type, 2>(task, panel, row, out, end);
    }
    for (; row < task.n_rows; ++row) {
      MultiplyPanel<Type, 1>(task, panel, row, out, end);
    }
  }
}

// --- float types ---

struct F32 {
  static constexpr int kBytes = 4;
  static __m256 Load(const std::byte* w) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(w));
  }
};

struct F16 {
  static constexpr int kBytes = 2;
  static __m256 Load(const std::byte* w) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
};

struct Bf16 {
  static constexpr int kBytes = 2;
  static __m256 Load(const std::byte* w) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

constexpr int kFloatRows = 4;
constexpr int kLanes = 16;

// The last n < 16 products of a row; lanes without one stay as they are.
template <typename Type>
inline void AddTail(const std::byte* w, const float* x, int64_t n, __m256 (&lanes)[2]) {
  alignas(32) std::byte w_tail[kLanes * Type::kBytes] = {};
  alignas(32) float x_tail[kLanes] = {};
  __builtin_memcpy(w_tail, w, static_cast<size_t>(n) * Type::kBytes);
  __builtin_memcpy(x_tail, x, static_cast<size_t>(n) * sizeof(float));
  for (int half = 0; half < 2; ++half) {
    const __m256 sum = _mm256_fmadd_ps(Type::Load(w_tail + half * 8 * Type::kBytes),
                                       _mm256_load_ps(x_tail + half * 8), lanes[half]);
    const __m256 mask = _mm256_castsi256_ps(FirstLanes(n - half * 8));
    lanes[half] = _mm256_blendv_ps(lanes[half], sum, mask);
  }
}

template <typename Type>
inline void FloatDots(const std::byte* const (&rows)[kFloatRows], const float* x, int64_t n_in,
                      float (&dots)[kFloatRows]) {
  __m256 lanes[kFloatRows][2];
  for (int i = 0; i < kFloatRows; ++i) {
    lanes[i][0] = _mm256_setzero_ps();
    lanes[i][1] = _mm256_setzero_ps();
  }
  int64_t k = 0;
  for (; k + kLanes <= n_in; k += kLanes) {
    const __m256 x_low = _mm256_loadu_ps(x + k);
    const __m256 x_high = _mm256_loadu_ps(x + k + 8);
    for (int i = 0; i < kFloatRows; ++i) {
      const std::byte* w = rows[i] + k * Type::kBytes;
      lanes[i][0] = _mm256_fmadd_ps(Type::Load(w), x_low, lanes[i][0]);
      lanes[i][1] = _mm256_fmadd_ps(Type::Load(w + 8 * Type::kBytes), x_high, lanes[i][1]);
    }
  }
  for (int i = 0; i < kFloatRows; ++i) {
    if (k < n_in) {
      AddTail<Type>(rows[i] + k * Type::kBytes, x + k, n_in - k, lanes[i]);
    }
    dots[i] = Tree8(_mm256_add_ps(lanes[i][0], lanes[i][1]));
  }
}

// The rows as floats in the scratch memory, and `rows` to point there.
template <typename Type>
inline void WidenRows(const MatMulTask& task, const std::byte* (&rows)[kFloatRows]) {
  auto* floats = reinterpret_cast<float*>(task.scratch);
  for (int i = 0; i < kFloatRows; ++i, floats += task.n_in) {
    int64_t k = 0;
    for (; k + 8 <= task.n_in; k += 8) {
      _mm256_storeu_ps(floats + k, Type::Load(rows[i] + k * Type::kBytes));
    }
    if (k < task.n_in) {
      alignas(32) std::byte tail[8 * Type::kBytes] = {};
      __builtin_memcpy(tail, rows[i] + k * Type::kBytes,
                       static_cast<size_t>(task.n_in - k) * Type::kBytes);
      _mm256_maskstore_ps(floats + k, FirstLanes(task.n_in - k), Type::Load(tail));
    }
    rows[i] = reinterpret_cast<const std::byte*>(floats);
  }
}

template <typename Type>
inline void MultiplyFloats(const MatMulTask& task, const std::byte* const (&rows)[kFloatRows],
                           int64_t out, int64_t end) {
  const int64_t n = end - out < kFloatRows ? end - out : kFloatRows;
  for (int64_t row = 0; row < task.n_rows; ++row) {
    float dots[kFloatRows];
    FloatDots<Type>(rows, task.x + row * task.n_in, task.n_in, dots);
    for (int64_t i = 0; i < n; ++i) {
      task.y[row * task.n_out + out + i] = dots[i];
    }
  }
}

template <typename Type>
void MatMulFloats(const MatMulTask& task, int64_t begin, int64_t end) {
  for (int64_t out = begin; out < end; out += kFloatRows) {
    const std::byte* rows[kFloatRows];
    SetRows(task, out, end, rows);
    if (task.n_rows == 1 || Type::kBytes == 4) {
      MultiplyFloats<Type>(task, rows, out, end);
    } else {
      WidenRows<Type>(task, rows);
      MultiplyFloats<F32>(task, rows, out, end);
    }
  }
}

// --- activations ---

inline float LargestMagnitude(const __m256 (&x)[4]) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i most = _mm256_setzero_si256();
  for (const __m256& part : x) {
    most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(part), magnitude));
  }
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

inline __m256i QuantizeEight(__m256 x, __m256 inverse) {
  __m256 scaled = _mm256_mul_ps(x, inverse);
  scaled = _mm256_and_ps(scaled, _mm256_cmp_ps(scaled, scaled, _CMP_ORD_Q));
  scaled = _mm256_min_ps(scaled, _mm256_set1_ps(127.0f));
  scaled = _mm256_max_ps(scaled, _mm256_set1_ps(-127.0f));
  return _mm256_cvtps_epi32(scaled);
}

void Quantize(const float* x, int64_t n, int8_t* values, float* scales, int32_t* sums,
              int16_t* half_sums) {
  for (int64_t b = 0; b < n / kBlock; ++b) {
    const float* block = x + kBlock * b;
    const __m256 parts[4] = {_mm256_loadu_ps(block), _mm256_loadu_ps(block + 8),
                             _mm256_loadu_ps(block + 16), _mm256_loadu_ps(block + 24)};
    const float amax = LargestMagnitude(parts);
    const float scale = amax / 127.0f;
    const __m256 inverse = _mm256_set1_ps(scale != 0.0f ? 127.0f / amax : 0.0f);
    const __m256i low =
        _mm256_packs_epi32(QuantizeEight(parts[0], inverse), QuantizeEight(parts[1], inverse));
    const __m256i high =
        _mm256_packs_epi32(QuantizeEight(parts[2], inverse), QuantizeEight(parts[3], inverse));
    // Packing works within 128 bits: dwords come out as 0 2 4 6 1 3 5 7.
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high),
                                                      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    Store256(values + kBlock * b, bytes);
    const __m256i fours = Widen(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes));
    const __m256i twos = _mm256_hadd_epi32(fours, fours);
    const __m256i ones = _mm256_hadd_epi32(twos, twos);
    const int first = _mm256_cvtsi256_si32(ones);
    const int second = _mm_cvtsi128_si32(_mm256_extracti128_si256(ones, 1));
    scales[b] = scale;
    sums[b] = first + second;
    half_sums[2 * b] = static_cast<int16_t>(first);
    half_sums[2 * b + 1] = static_cast<int16_t>(second);
  }
}

}  // namespace

const MatMulKernels kMatMulAvx2 = {
    .f32 = MatMulFloats<F32>,
    .f16 = MatMulFloats<F16>,
    .bf16 = MatMulFloats<Bf16>,
    .q8_0 = MatMulBlocks<Q8_0>,
    .q4_0 = MatMulBlocks<Q4_0>,
    .q4_k = MatMulBlocks<Q4K>,
    .q6_k = MatMulBlocks<Q6K>,
    .quantize = Quantize,
};

}  // namespace facet
