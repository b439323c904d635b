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
  /// MatMulScratchBytes(n_in) from a multiple of 64 bytes on, for this thread alone
  std::byte* scratch;
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
  void (*sigmoid_mul)(const float* gate, const float* up, int64_t n, float* out);
  void (*add)(const float* y, int64_t n, float* x);
  void (*scale)(float factor, int64_t n, float* x);
  void (*add_scale)(const float* a, const float* b, float factor, int64_t n, float* out);
  void (*clamp)(const float* x, float low, float high, int64_t n, float* y);
  void (*softcap)(float cap, int64_t n, float* x);
  void (*softmax)(const float* x, int64_t n, float* p);
  void (*rope)(const float* cosine, const float* sine, int64_t n_pairs, int64_t d_head, float* x);
  void (*exp)(const float* x, int64_t n, float* y);
  void (*tanh)(const float* x, int64_t n, float* y);
};

/// K and V of one KV head in one block (attention.h), for kernels of the type they are stored in.
struct KvTile {
  const std::byte* k;         ///< [d_head][32]
  const std::byte* v;         ///< [32][d_head]
  const std::byte* k_scales;  ///< Q8_0 only: [d_head / 32][32] float16
  const std::byte* v_scales;  ///< Q8_0 only: [32][d_head / 32] float16
  int d_head;                 ///< a multiple of 8; of 32 for Q8_0
  /// What will be read next, as large as k or v: to be fetched into a cache while k is read and
  /// while v is read. Null: nothing. A kernel need not do so.
  const std::byte* after_k;
  const std::byte* after_v;
};

/// Queries that one call of a kernel takes at most: heads of a KV head, of one row or several.
inline constexpr int kMaxTileQueries = 8;

/// What a query has seen so far, besides its output.
struct AttentionState {
  float largest;  ///< at first -infinity
  float sum;      ///< at first 0
};

/// Queries that see the same keys [low, high) of a tile, at least one of them.
struct SoftmaxTask {
  float* s;  ///< [n][32]: in scores, out p (0 for other keys)
  AttentionState* states;
  float* corrections;  ///< [n], out: the factor for what a query has summed before
  int n;
  int low;
  int high;
};

/// The same queries, and the channels [begin, end) of their outputs.
struct ValuesTask {
  const float* p;            ///< [n][32]
  const float* corrections;  ///< [n]
  float* const* out;         ///< [n] of [d_head]
  int n;
  int low;
  int high;
  int begin;  ///< a multiple of 32
  int end;    ///< a multiple of 32, or d_head
};

/// Kernels for one stored type. The chains are those of attention.h.
struct KvTypeKernels {
  /// s [n][32] = scores of queries q [d_head][n] with all 32 keys of a tile, visible or not.
  void (*scores)(const KvTile& tile, const float* q, int n, float* s);
  /// out = out · correction, then += p · V for the visible keys.
  void (*values)(const KvTile& tile, const ValuesTask& task);
  /// The tile as floats, in the same order: worth it where many queries meet it. Null for F32.
  void (*unpack)(const KvTile& tile, float* k, float* v);
};

struct AttentionKernels {
  KvTypeKernels f32, f16, bf16, q8_0;
  void (*softmax)(const SoftmaxTask& task);
  void (*divide)(float divisor, int64_t n, float* x);  ///< x /= divisor; n is a multiple of 8
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
extern const AttentionKernels kAttentionAvx512;
extern const MatMulKernels kMatMulAvxVnni;
extern const MatMulKernels kMatMulAvx512;
extern const MatMulKernels kMatMulAmx;

// Only built for 64-bit Arm; the same.
extern const MatMulKernels kMatMulNeon;
extern const RowKernels kRowsNeon;
extern const AttentionKernels kAttentionNeon;

}  // namespace facet
