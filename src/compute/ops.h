// SPDX-License-Identifier: Apache-2.0
// The elementwise and row operations of the forward pass. Each row is computed alone, by the same
// code for one row and for many. Sums run in 16 lanes (k mod 16) with a fixed tree at the end; exp
// and tanh are our own (error within 2 ulp of the exact value), the same bits in every instruction
// set.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/context.h"

namespace facet {

struct NormParams {
  const float* weight;  ///< [n], or null
  float eps;
};

/// y = x / sqrt(mean(x²) + eps) · weight per row of n (reference.md 1.0). y may be x.
void RmsNorm(const ComputeContext& context, const float* x, NormParams params, int64_t n_rows,
             int64_t n, float* y);

struct LayerNormParams {
  const float* weight;  ///< [n]
  const float* bias;    ///< [n], or null
  float eps;
};

/// y = (x − mean) / sqrt(variance + eps) · weight + bias per row of n. The variance is the mean of
/// (x − mean)². y may be x.
void LayerNorm(const ComputeContext& context, const float* x, LayerNormParams params,
               int64_t n_rows, int64_t n, float* y);

/// out = gelu_tanh(gate) · up, n values (reference.md 1.4). out may be gate or up.
void GeluMul(const ComputeContext& context, const float* gate, const float* up, int64_t n,
             float* out);

/// out = up · sigmoid(gate), as up / (1 + exp(-gate)), n values. out may be gate or up; with up =
/// gate it is SiLU.
void SigmoidMul(const ComputeContext& context, const float* gate, const float* up, int64_t n,
                float* out);

/// x += y
void Add(const ComputeContext& context, const float* y, int64_t n, float* x);

/// x *= factor
void Scale(const ComputeContext& context, float factor, int64_t n, float* x);

struct Bounds {
  float low;
  float high;
};

/// y = x, raised to `low` where it is less and then lowered to `high` where it is more, n values; a
/// NaN stays. y may be x.
void Clamp(const ComputeContext& context, const float* x, Bounds bounds, int64_t n, float* y);

/// out = (a + b) · factor; out may be a or b.
void AddScale(const ComputeContext& context, const float* a, const float* b, float factor,
              int64_t n, float* out);

/// One weight for each row of x: weight of row r at first[r * stride].
struct RowWeights {
  const float* first;
  int64_t stride;
};

/// x[rows[i]] += y[i] · weight of row rows[i], the product rounded first. y [rows.size(), n] is
/// overwritten; `rows` are distinct rows of x.
void AddWeightedRows(const ComputeContext& context, float* y, std::span<const int64_t> rows,
                     const RowWeights& weights, int64_t n, float* x);

/// x = cap · tanh(x / cap), as x / cap, tanh, · cap (reference.md 1.4)
void Softcap(const ComputeContext& context, float cap, int64_t n, float* x);

/// p = softmax(x) per row of n. p may be x.
void Softmax(const ComputeContext& context, const float* x, int64_t n_rows, int64_t n, float* p);

/// Cosines and sines of the angles position · frequency, in float as the reference computes them.
struct RopeTable {
  int n_pairs = 0;            ///< pairs (i, i + d/2) with i < n_pairs turn; the others stay
  std::vector<float> cosine;  ///< [n_rows, n_pairs]
  std::vector<float> sine;
};
RopeTable MakeRopeTable(const ComputeContext& context, const std::vector<float>& inverse_frequency,
                        const std::vector<int32_t>& positions);

/// Rotates x [n_rows, n_heads, d_head] in place (reference.md 1.6, rotate-half): a' = a·cos −
/// b·sin, b' = b·cos + a·sin, each as fma(a, cos, −(b·sin)) and fma(b, cos, a·sin).
void Rope(const ComputeContext& context, const RopeTable& table, int64_t n_rows, int64_t n_heads,
          int64_t d_head, float* x);

/// Angles of rows that stand in a plane.
struct RopeTable2d {
  RopeTable x;
  RopeTable y;
};

/// The same in two dimensions (reference.md 3.4): the first half of each head turns by the angles
/// of `table.x`, the second by those of `table.y`; pairs lie within a half.
void Rope2d(const ComputeContext& context, const RopeTable2d& table, int64_t n_rows,
            int64_t n_heads, int64_t d_head, float* x);

}  // namespace facet
