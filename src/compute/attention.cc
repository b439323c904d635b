// SPDX-License-Identifier: Apache-2.0
#include "compute/attention.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "compute/kernels.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

constexpr int kPositions = kKvBlockPositions;
constexpr int kScaleGroup = 32;  // channels that share a scale in Q8_0
constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kQ8_0};

size_t ElementBytes(KvType type) {
  switch (type) {
    case KvType::kF32:
      return 4;
    case KvType::kF16:
    case KvType::kBf16:
      return 2;
    case KvType::kQ8_0:
      return 1;
  }
  return 0;
}

// All heads' int8 values come first, then all heads' scales: K [n_kv_heads][d_head / 32][32], V
// [n_kv_heads][32][d_head / 32].
size_t ScalesOffset(const KvShape& shape) {
  return static_cast<size_t>(shape.n_kv_heads) * static_cast<size_t>(shape.d_head) * kPositions;
}

void StoreBits(uint16_t bits, std::byte* data, int64_t i) {
  std::memcpy(data + 2 * i, &bits, sizeof(bits));
}

void StoreElement(KvType type, float value, std::byte* data, int64_t i) {
  if (type == KvType::kF32) {
    std::memcpy(data + 4 * i, &value, sizeof(value));
  } else {
    StoreBits(type == KvType::kF16 ? F16FromFloat(value) : Bf16FromFloat(value), data, i);
  }
}

// Where channel d of a head lies: K has the 32 positions of a channel together, V the channels of a
// position.
struct Placement {
  int64_t k;
  int64_t v;
};

Placement PlaceOf(int64_t n_channels, int64_t head, int64_t channel, int slot) {
  return {(head * n_channels + channel) * kPositions + slot,
          (head * kPositions + slot) * n_channels + channel};
}

void StoreQ8(const KvShape& shape, const float* x, int slot, bool is_key, std::byte* block) {
  const int n_groups = shape.d_head / kScaleGroup;
  std::byte* scales = block + ScalesOffset(shape);
  for (int head = 0; head < shape.n_kv_heads; ++head) {
    for (int group = 0; group < n_groups; ++group) {
      const int first = group * kScaleGroup;
      int8_t values[kScaleGroup];
      float scale;
      int32_t sum;
      int16_t half_sums[2];
      kMatMulScalar.quantize(x + head * shape.d_head + first, kScaleGroup, values, &scale, &sum,
                             half_sums);
      for (int d = 0; d < kScaleGroup; ++d) {
        const Placement place = PlaceOf(shape.d_head, head, first + d, slot);
        block[is_key ? place.k : place.v] = static_cast<std::byte>(values[d]);
      }
      const Placement place = PlaceOf(n_groups, head, group, slot);
      StoreBits(F16FromFloat(scale), scales, is_key ? place.k : place.v);
    }
  }
}

AttentionKernel KernelOf(const AttentionKernels& kernels, KvType type) {
  switch (type) {
    case KvType::kF32:
      return kernels.f32;
    case KvType::kF16:
      return kernels.f16;
    case KvType::kBf16:
      return kernels.bf16;
    case KvType::kQ8_0:
      return kernels.q8_0;
  }
  return nullptr;
}

// How the query heads are cut into the pieces that a kernel takes: pairs that read one KV head, or
// a single one.
struct HeadUnits {
  int heads_per_kv;
  int units_per_kv;
  int n_units;
};

HeadUnits CutHeads(int n_heads, int n_kv_heads) {
  const int heads_per_kv = n_heads / n_kv_heads;
  const int units_per_kv = (heads_per_kv + 1) / 2;
  return {heads_per_kv, units_per_kv, n_kv_heads * units_per_kv};
}

}  // namespace

std::string_view NameOf(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kF16:
      return "f16";
    case KvType::kBf16:
      return "bf16";
    case KvType::kQ8_0:
      return "q8_0";
  }
  return "";
}

std::optional<KvType> FindKvType(std::string_view name) {
  for (const KvType type : kKvTypes) {
    if (NameOf(type) == name) {
      return type;
    }
  }
  return std::nullopt;
}

size_t KvHalfBlockBytes(KvType type, const KvShape& shape) {
  const size_t n = ScalesOffset(shape);  // elements
  return n * ElementBytes(type) + (type == KvType::kQ8_0 ? n / kScaleGroup * 2 : 0);
}

void StoreKv(const KvLayout& layout, const float* k, const float* v, int slot, std::byte* block) {
  FACET_CHECK(slot >= 0 && slot < kPositions);
  const KvShape& shape = layout.shape;
  std::byte* k_block = block + layout.k_offset;
  std::byte* v_block = block + layout.v_offset;
  if (layout.type == KvType::kQ8_0) {
    FACET_CHECK(shape.d_head % kScaleGroup == 0);
    StoreQ8(shape, k, slot, true, k_block);
    StoreQ8(shape, v, slot, false, v_block);
    return;
  }
  for (int64_t head = 0; head < shape.n_kv_heads; ++head) {
    for (int64_t d = 0; d < shape.d_head; ++d) {
      const Placement place = PlaceOf(shape.d_head, head, d, slot);
      StoreElement(layout.type, k[head * shape.d_head + d], k_block, place.k);
      StoreElement(layout.type, v[head * shape.d_head + d], v_block, place.v);
    }
  }
}

namespace {

// Products that are worth waking the threads for: about ten microseconds of work.
constexpr int64_t kLeastProducts = int64_t{1} << 17;

int64_t ProductsOf(std::span<const AttentionRow> rows, int64_t d_head, int64_t n_heads) {
  int64_t n_keys = 0;
  for (const AttentionRow& row : rows) {
    n_keys += row.end - row.begin;
  }
  return n_keys * d_head * n_heads;
}

}  // namespace

void Attention(const ComputeContext& context, const KvLayout& layout, int n_heads,
               std::span<const AttentionRow> rows) {
  const KvType type = layout.type;
  const KvShape& shape = layout.shape;
  FACET_CHECK(shape.d_head % (type == KvType::kQ8_0 ? kScaleGroup : 8) == 0);
  FACET_CHECK(shape.n_kv_heads > 0 && n_heads % shape.n_kv_heads == 0);
  const HeadUnits cut = CutHeads(n_heads, shape.n_kv_heads);
  const AttentionKernel kernel = KernelOf(*context.kernels->attention, type);
  const size_t head_elements = static_cast<size_t>(shape.d_head) * kPositions;
  const int n_parts = static_cast<int>(rows.size()) * cut.n_units;
  const auto attend = [&](int part) {
    const AttentionRow& row = rows[static_cast<size_t>(part / cut.n_units)];
    FACET_CHECK(row.begin >= 0 && row.begin < row.end);
    FACET_CHECK(static_cast<size_t>((row.end - 1) / kPositions) < row.blocks.size());
    const int unit = part % cut.n_units;
    const auto kv_head = static_cast<size_t>(unit / cut.units_per_kv);
    const int first = unit % cut.units_per_kv * 2;  // among the heads of this KV head
    const int64_t head = static_cast<int64_t>(kv_head) * cut.heads_per_kv + first;
    AttentionTask task = {};
    task.q = row.q + head * shape.d_head;
    task.out = row.out + head * shape.d_head;
    task.n_heads = std::min(2, cut.heads_per_kv - first);
    task.d_head = shape.d_head;
    task.begin = row.begin;
    task.end = row.end;
    task.blocks = row.blocks.data();
    const size_t offset = kv_head * head_elements * ElementBytes(type);
    const size_t scales_offset = ScalesOffset(shape) + kv_head * head_elements / kScaleGroup * 2;
    task.k_offset = layout.k_offset + offset;
    task.v_offset = layout.v_offset + offset;
    task.k_scales_offset = layout.k_offset + scales_offset;
    task.v_scales_offset = layout.v_offset + scales_offset;
    kernel(task);
  };
  if (ProductsOf(rows, shape.d_head, n_heads) >= kLeastProducts) {
    context.pool->Run(n_parts, attend);
    return;
  }
  for (int part = 0; part < n_parts; ++part) {
    attend(part);
  }
}

}  // namespace facet
