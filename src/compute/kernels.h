// SPDX-License-Identifier: Apache-2.0
// The seam between operations and instruction sets: one table of functions per family (matmul,
// rows, attention) and set. Arguments are plain pointers and numbers, because a file compiled for
// AVX2 must not instantiate inline code that another file could then be linked with. The scalar set
// defines every result; the others equal it bit for bit (except for the payload of a NaN).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"
#include "compute/attention.h"
#include "compute/cpu.h"
#include "quant/codec.h"

namespace facet {

/// A matrix product over weight rows [begin, end) of one call.
struct MatMulTask {
  /// [n_out] rows of `row_bytes` as in the file; for a packed kernel groups of 16 rows, each of
  /// `row_bytes` (packed_weights.h)
  const std::byte* w;
  int64_t row_bytes;
  int64_t n_in;
  int64_t n_out;  ///< also the stride of y
  int64_t n_rows;
  UnpackFunction unpack;     ///< of the weights: integer types only
  BlockForm form;            ///< of what `unpack` writes
  const float* x;            ///< [n_rows, n_in]: float types only
  const int8_t* values;      ///< [n_rows, n_in], the int8 form: integer types only
  const float* scales;       ///< [n_rows, n_in / 32]
  const int32_t* sums;       ///< [n_rows, n_in / 32]: sum of each 32 values
  const int16_t* half_sums;  ///< [n_rows, n_in / 16]: sum of each 16 values
  float* y;                  ///< [n_rows, n_out]
  std::byte* scratch;        ///< MatMulScratchBytes(n_in), for this thread alone
};

/// Room for 16 unpacked weight rows with their scales, aligned for any type, and as much for
/// activations.
constexpr size_t MatMulScratchBytes(int64_t n_in) { return static_cast<size_t>(n_in) * 128 + 1024; }

/// `begin` is a multiple of 8, of 16 for packed weights; `end` is one too or n_out.
using MatMulKernel = void (*)(const MatMulTask& task, int64_t begin, int64_t end);

/// A kernel for one block type.
struct TypeKernel {
  TensorType type;
  MatMulKernel kernel;
};

/// Every kernel gives the results of the scalar set's `unpacked`.
struct MatMulKernels {
  MatMulKernel f32, f16, bf16;
  MatMulKernel unpacked;  ///< any block type, by way of its codec
  /// Per 32 values: scale = amax / 127; value = nearest even integer of x · (127 / amax), 0 when
  /// scale is 0. A NaN in a block makes its scale NaN, so that it reaches the result; n is a
  /// multiple of 32.
  void (*quantize)(const float* x, int64_t n, int8_t* values, float* scales, int32_t* sums,
                   int16_t* half_sums);
  const TypeKernel* blocks = nullptr;  ///< kernels of one type, weights as in the file
  int n_blocks = 0;
  const TypeKernel* packed = nullptr;  ///< kernels of one type, weights packed
  int n_packed = 0;
};

/// What ops.h documents, for one row or a run of values. In place where ops.h allows it.
struct RowKernels {
  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* y);
  void (*gelu_mul)(const float* gate, const float* up, int64_t n, float* out);
  void (*add)(const float* y, int64_t n, float* x);
  void (*scale)(float factor, int64_t n, float* x);
  void (*add_scale)(const float* a, const float* b, float factor, int64_t n, float* out);
  void (*softcap)(float cap, int64_t n, float* x);
  void (*softmax)(const float* x, int64_t n, float* p);
  void (*rope)(const float* cosine, const float* sine, int64_t n_pairs, int64_t d_head, float* x);
  void (*exp)(const float* x, int64_t n, float* y);
  void (*tanh)(const float* x, int64_t n, float* y);
};

/// One or two query heads of one row that read the same KV head.
struct AttentionTask {
  const float* q;  ///< [n_heads, d_head]
  float* out;      ///< [n_heads, d_head]
  int n_heads;     ///< 1 or 2
  int d_head;      ///< a multiple of 8; of 32 for Q8_0
  int32_t begin;
  int32_t end;
  std::byte* const* blocks;  ///< by position / 32
  size_t k_offset;           ///< from a block's beginning to this KV head's values
  size_t v_offset;
  size_t k_scales_offset;  ///< Q8_0 only: [d_head / 32][32] float16
  size_t v_scales_offset;  ///< Q8_0 only: [32][d_head / 32] float16
};

using AttentionKernel = void (*)(const AttentionTask& task);

struct AttentionKernels {
  AttentionKernel f32, f16, bf16, q8_0;
};

struct Kernels {
  Isa isa;
  const MatMulKernels* matmul;
  const RowKernels* rows;
  const AttentionKernels* attention;
};

extern const MatMulKernels kMatMulScalar;
extern const RowKernels kRowsScalar;
extern const AttentionKernels kAttentionScalar;

// Only built for x86-64; to be called only where SupportedIsas() has the set.
extern const MatMulKernels kMatMulAvx2;
extern const RowKernels kRowsAvx2;
extern const AttentionKernels kAttentionAvx2;
extern const MatMulKernels kMatMulAvx512;

}  // namespace facet
