// SPDX-License-Identifier: Apache-2.0
// Matrix products of activations with weights as they lie in the file. The numbers contract
// (ARCHITECTURE.md): an output element is one fixed chain of operations, whatever the number of
// rows, threads or the instruction set.
//
// Integer-weight types (every block type, unpacked as quant/codec.h says): the activation row is
// quantised per 32-block to int8 (scale d_a = amax / 127, round to nearest even), and over
// ascending 32-blocks
//   acc = fma(float(s0 * dot0 + s1 * dot1), d * d_a, acc)
//   acc = fma(-float(m0 * sum0 + m1 * sum1), dmin * d_a, acc)     for types with a minimum
// or, for types whose halves have float scales,
//   acc = fma(float(dot0), d0 * d_a, acc);  acc = fma(float(dot1), d1 * d_a, acc)
// with dot and sum those of the two halves of 16 values. The integers are exact: at most 2 * 128 *
// (16 * 128 * 127) < 2^27. acc starts at +0.
// Float types (F32, F16, BF16): 16 lanes by k mod 16, each acc = fma(w, a, acc) over ascending k,
// then a fixed tree: lane i += lane i + 8, then + 4, + 2, + 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_vector.h"
#include "base/tensor_type.h"
#include "compute/context.h"

namespace facet {

/// Weights [n_out, n_in], rows one after the other as in the file. Does not own.
struct WeightMatrix {
  TensorType type = TensorType::kF32;
  int64_t n_out = 0;
  int64_t n_in = 0;
  const std::byte* data = nullptr;
  float scale = 1.0f;                 ///< multiplies every output, after its chain
  const std::byte* packed = nullptr;  ///< the same in groups of 16 rows (packed_weights.h), or null

  [[nodiscard]] int64_t row_bytes() const { return BytesOf(type, n_in); }
  [[nodiscard]] const std::byte* row(int64_t i) const { return data + i * row_bytes(); }
};

/// Whether MatMul can read this type: every type that has a codec. Others are refused when a model
/// is bound.
bool IsMatMulType(TensorType type);

/// The int8 form of activation rows.
struct QuantizedRows {
  AlignedVector<int8_t> values;      // [n_rows, n_in]
  AlignedVector<float> scales;       // [n_rows, n_in / 32]
  AlignedVector<int32_t> sums;       // [n_rows, n_in / 32]: sum of the block's values
  AlignedVector<int16_t> half_sums;  // [n_rows, n_in / 16]: sum of each half of a block
};

/// Input rows of a product: floats, and their int8 form once a product needs it. Reused from call
/// to call so that memory is allocated once. For one thread; the products inside use the pool.
class Activations {
 public:
  /// Refers to `x` [n_rows, n_in], which must stay until the next Set. Forgets the former int8
  /// form.
  void Set(const float* x, int64_t n_rows, int64_t n_in);

  /// Refers to some rows of `source`, which must stay until the next Set, in the order of `rows`.
  /// Their int8 form is copied, not computed again.
  void SetRowsOf(Activations* source, std::span<const int64_t> rows);

  [[nodiscard]] int64_t n_rows() const { return n_rows_; }
  [[nodiscard]] int64_t n_in() const { return n_in_; }
  /// [n_rows, n_in]
  const float* Floats();
  /// Makes the int8 form on the first call after Set. n_in is a multiple of 32.
  const QuantizedRows& Quantized(const ComputeContext& context);

 private:
  void QuantizeFloats(const ComputeContext& context);
  void CopyQuantized(const QuantizedRows& all);

  const float* x_ = nullptr;  // null: rows of source_ that nobody asked for as floats
  int64_t n_rows_ = 0;
  int64_t n_in_ = 0;
  Activations* source_ = nullptr;
  std::vector<int64_t> rows_;
  AlignedVector<float> copied_;
  bool is_quantized_ = false;
  QuantizedRows quantized_;
};

/// y [n_rows, n_out] = x · wᵀ · scale. `y` must not overlap the input.
void MatMul(const ComputeContext& context, const WeightMatrix& w, Activations& x, float* y);

}  // namespace facet
