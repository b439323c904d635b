// SPDX-License-Identifier: Apache-2.0
// Matrix products of packed weights with NEON, and the quantisation of activations: equal to
// matmul_scalar.cc bit for bit. Compiled for Armv8.2 with dot products; uses no inline function of
// the library or the standard library (vector_math_neon.h says why).
//
// Up to 8 activation rows, as tiles of up to 4 (matmul_neon.h), read the packed group itself:
// unpacking a register of 4-bit codes is one operation for each sdot of a row. More rows share a
// panel of the unpacked group, which has 16 bytes for each column and stays in a second cache. One
// row is bound by memory: 288 bytes of Q4_0 take 32 sdot, 32 operations to unpack and 20 of the
// chain and its side. Counted, not measured: the tests run in an emulator.
#include "compute/kernels_neon.h"
#include "compute/packed_types_neon.h"

namespace facet {
namespace {

constexpr int kDirectRows = 8;  // activation rows that are not worth a panel

// A group as it is packed.
template <typename Type>
struct PackedGroup {
  using Side = typename Type::Side;
  static constexpr int kOffset = Type::kOffset;
  const std::byte* codes;
  const std::byte* sides;

  PackedGroup(const MatMulTask& task, int64_t out)
      : codes(task.w + out / kRows * task.row_bytes),
        sides(codes + task.n_in / kBlock * Type::Codes::kBytes) {}
  template <int kQuad>
  [[nodiscard]] int8x16_t Quad(int64_t b, int c) const {
    return Type::Codes::template Quad<kQuad>(codes + b * Type::Codes::kBytes, c);
  }
  [[nodiscard]] Side SideOf(int64_t b) const {
    return Side::Load(sides + b / Side::kBlocks * Side::kBytes,
                      static_cast<int>(b % Side::kBlocks));
  }
};

// A panel whose values still have their offset.
template <typename Type>
struct PackedPanel : Panel<typename Type::Side> {
  static constexpr int kOffset = Type::kOffset;
  using Panel<typename Type::Side>::Panel;

  void Fill(const PackedGroup<Type>& group, int64_t n_blocks) const {
    for (int64_t b = 0; b < n_blocks; ++b) {
      FillQuads<0>(group, b);
      this->sides[b] = group.SideOf(b);
    }
  }

 private:
  template <int kQuad>
  inline void FillQuads(const PackedGroup<Type>& group, int64_t b) const {
    if constexpr (kQuad < kQuads) {
      std::byte* quad = this->values + kPanelBlock * b + 64 * kQuad;
      for (int c = 0; c < kRegisters; ++c) {
        vst1q_s8(reinterpret_cast<int8_t*>(quad + 16 * c), group.template Quad<kQuad>(b, c));
      }
      FillQuads<kQuad + 1>(group, b);
    }
  }
};

template <typename Type>
void MatMulPacked(const MatMulTask& task, int64_t begin, int64_t end) {
  const PackedPanel<Type> panel(task);
  for (int64_t out = begin; out < end; out += kRows) {
    const PackedGroup<Type> group(task, out);
    if (task.n_rows <= kDirectRows) {
      MultiplyAllRows(task, group, out, end);
    } else {
      panel.Fill(group, task.n_in / kBlock);
      MultiplyAllRows(task, panel, out, end);
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

// --- activations ---

inline float LargestMagnitude(const float32x4_t (&x)[8]) {
  uint32x4_t most = vdupq_n_u32(0);
  for (const float32x4_t& part : x) {
    most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(part)));
  }
  return vgetq_lane_f32(vreinterpretq_f32_u32(vdupq_n_u32(vmaxvq_u32(most))), 0);
}

// The conversion rounds to the nearest even integer, gives 0 for a NaN and saturates; then the
// limits matter only where the inverse is infinite.
inline int16x4_t QuantizeFour(float32x4_t x, float32x4_t inverse) {
  const int32x4_t rounded = vcvtnq_s32_f32(vmulq_f32(x, inverse));
  return vmovn_s32(vmaxq_s32(vminq_s32(rounded, vdupq_n_s32(127)), vdupq_n_s32(-127)));
}

void Quantize(const float* x, int64_t n, int8_t* values, float* scales, int32_t* sums,
              int16_t* half_sums) {
  for (int64_t b = 0; b < n / kBlock; ++b) {
    float32x4_t parts[8];
    for (int i = 0; i < 8; ++i) {
      parts[i] = vld1q_f32(x + kBlock * b + 4 * i);
    }
    const float amax = LargestMagnitude(parts);
    const float scale = amax / 127.0f;
    const float32x4_t inverse = vdupq_n_f32(scale != 0.0f ? 127.0f / amax : 0.0f);
    for (int half = 0; half < 2; ++half) {
      const int16x8_t low = vcombine_s16(QuantizeFour(parts[4 * half], inverse),
                                         QuantizeFour(parts[4 * half + 1], inverse));
      const int16x8_t high = vcombine_s16(QuantizeFour(parts[4 * half + 2], inverse),
                                          QuantizeFour(parts[4 * half + 3], inverse));
      const int8x16_t bytes = vcombine_s8(vmovn_s16(low), vmovn_s16(high));
      vst1q_s8(values + kBlock * b + 16 * half, bytes);
      half_sums[2 * b + half] = vaddlvq_s8(bytes);
    }
    scales[b] = scale;
    sums[b] = half_sums[2 * b] + half_sums[2 * b + 1];
  }
}

}  // namespace

const MatMulKernels kMatMulNeon = {
    .f32 = MatMulF32Neon,
    .f16 = MatMulF16Neon,
    .bf16 = MatMulBf16Neon,
    .unpacked = MatMulUnpackedNeon,
    .quantize = Quantize,
    .packed = kPacked,
    .n_packed = sizeof(kPacked) / sizeof(kPacked[0]),
};

}  // namespace facet
