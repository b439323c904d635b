// SPDX-License-Identifier: Apache-2.0
// Matrix products with AVX2: equal to matmul_scalar.cc bit for bit. Here the block types with their
// own kernels, and the quantisation of activations. One activation row multiplies weights as they
// lie in the file and adds across (RowDots); several share a panel (matmul_avx2.h). Compiled with
// -mavx2 -mfma -mf16c; uses no inline function of the library or the standard library
// (vector_math_avx2.h says why).
#include "compute/matmul_avx2.h"

#include "compute/block_types_avx2.h"
#include "compute/kernels_avx2.h"

namespace facet {
namespace {

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

}  // namespace

void QuantizeAvx2(const float* x, int64_t n, int8_t* values, float* scales, int32_t* sums,
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

const TypeKernel kBlockKernelsAvx2[kNBlockKernelsAvx2] = {
    {TensorType::kQ8_0, MatMulBlocks<Q8_0>},    {TensorType::kQ5_0, MatMulBlocks<Q5_0>},
    {TensorType::kQ5_1, MatMulBlocks<Q5_1>},    {TensorType::kQ4_0, MatMulBlocks<Q4_0>},
    {TensorType::kQ4_1, MatMulBlocks<Q4_1>},    {TensorType::kQ6_K, MatMulBlocks<Q6K>},
    {TensorType::kQ5_K, MatMulBlocks<Q5K>},     {TensorType::kQ4_K, MatMulBlocks<Q4K>},
    {TensorType::kQ3_K, MatMulBlocks<Q3K>},     {TensorType::kQ2_K, MatMulBlocks<Q2K>},
    {TensorType::kIQ4_NL, MatMulBlocks<IQ4NL>}, {TensorType::kIQ4_XS, MatMulBlocks<IQ4XS>},
    {TensorType::kMXFP4, MatMulBlocks<MXFP4>}};

const MatMulKernels kMatMulAvx2 = {
    .f32 = MatMulF32Avx2,
    .f16 = MatMulF16Avx2,
    .bf16 = MatMulBf16Avx2,
    .unpacked = MatMulUnpackedAvx2,
    .quantize = QuantizeAvx2,
    .blocks = kBlockKernelsAvx2,
    .n_blocks = kNBlockKernelsAvx2,
    .packed = kPackedKernelsAvx2,
    .n_packed = kNPackedKernelsAvx2,
};

}  // namespace facet
