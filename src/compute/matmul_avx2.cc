// SPDX-License-Identifier: Apache-2.0
// Matrix products with AVX2: equal to matmul_scalar.cc bit for bit. Here the block types with their
// own kernels, and the quantisation of activations. One activation row multiplies weights as they
// lie in the file and adds across (RowDots); several share a panel (matmul_avx2.h). Compiled with
// -mavx2 -mfma -mf16c; uses no inline function of the library or the standard library
// (vector_math_avx2.h says why).
#include "compute/matmul_avx2.h"

#include "compute/block_layout.h"
#include "compute/kernels.h"

namespace facet {
namespace {

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

template <typename Type>
inline void UnpackGroup(const Group& group, int64_t n_in, const Panel<Type>& panel) {
  for (int64_t f = 0; f < n_in / (kBlock * Type::kBlocks); ++f) {
    const Group here = group.At(f * Type::kBytes);
    Type::LoadSide(here, &panel.sides[f]);
    for (int j = 0; j < Type::kBlocks; ++j) {
      __m256i v[kRows];
      for (int i = 0; i < kRows; ++i) {
        v[i] = Type::Values(here.rows[i], j);
      }
      StorePanelBlock(v, panel.values + (f * Type::kBlocks + j) * kPanelBlock);
    }
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
    } else {
      UnpackGroup(group, task.n_in, panel);
      MultiplyPanelRows(task, panel, out, end);
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
    .f32 = MatMulF32Avx2,
    .f16 = MatMulF16Avx2,
    .bf16 = MatMulBf16Avx2,
    .q8_0 = MatMulBlocks<Q8_0>,
    .q4_0 = MatMulBlocks<Q4_0>,
    .q4_k = MatMulBlocks<Q4K>,
    .q6_k = MatMulBlocks<Q6K>,
    .unpacked = MatMulUnpackedAvx2,
    .quantize = Quantize,
};

}  // namespace facet
