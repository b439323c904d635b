// SPDX-License-Identifier: Apache-2.0
// Attention over keys and values that lie in blocks of 32 positions. Per query row: tiles in
// ascending order with borders at multiples of 32 of the absolute position, online softmax in that
// order; visibility is a range of positions. So the result depends on the row's own keys only
// (numbers contract, ARCHITECTURE.md).
//
// A block holds, for one layer: K as [n_kv_heads][d_head][32] (keys side by side, so that scores
// need no horizontal sum), V as [n_kv_heads][32][d_head]. Per tile, over the visible keys only:
//   s_k = Σ_d fma(q_d, K_dk, s_k), ascending d, from +0; m' = max(m, max s_k); p_k = exp(s_k − m');
//   c = exp(m − m') l = fma(l, c, tree32(p)) with p = 0 for keys that are not visible; o_d = o_d ·
//   c, then o_d = fma(p_k, V_kd, o_d) for ascending k
// out_d = o_d / l. tree32: lane i += lane i + 16, + 8, + 4, + 2, + 1. Stored types are converted to
// float, values exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compute/context.h"

namespace facet {

inline constexpr int kKvBlockPositions = 32;

/// How keys and values are stored. Q8_0: int8 with one float16 scale per 32 head channels of a
/// position (amax / 127, round to nearest even); d_head must be a multiple of 32.
enum class KvType { kF32, kF16, kBf16, kQ8_0 };
std::string_view NameOf(KvType type);  ///< "f32", "f16", "bf16", "q8_0"
std::optional<KvType> FindKvType(std::string_view name);

struct KvShape {
  int n_kv_heads;
  int d_head;
};

/// Bytes of K (and as many of V) of one layer in one block.
size_t KvHalfBlockBytes(KvType type, const KvShape& shape);

/// Where the K and V of one layer lie in each block of its group, and how they are stored.
struct KvLayout {
  KvType type;
  KvShape shape;
  size_t k_offset = 0;  ///< bytes from a block's beginning
  size_t v_offset = 0;
};

/// Writes k and v ([n_kv_heads, d_head] each) of one position into slot `slot` of a block.
/// Different slots may be written by several threads at once.
void StoreKv(const KvLayout& layout, const float* k, const float* v, int slot, std::byte* block);

/// One query row of one layer.
struct AttentionRow {
  const float* q;  ///< [n_heads, d_head]
  float* out;      ///< [n_heads, d_head]
  int32_t begin;   ///< visible positions [begin, end), never empty
  int32_t end;
  std::span<std::byte* const> blocks;  ///< blocks[pos / 32]; entries outside the range may be null
};

/// Query head h reads KV head h / (n_heads / n_kv_heads). No scaling of the scores (reference.md
/// 1.5).
void Attention(const ComputeContext& context, const KvLayout& layout, int n_heads,
               std::span<const AttentionRow> rows);

}  // namespace facet
