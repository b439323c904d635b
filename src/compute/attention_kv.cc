// SPDX-License-Identifier: Apache-2.0
// How keys and values are stored: sizes, places and rounding.
#include "compute/attention_kv.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "compute/attention.h"
#include "compute/kernels.h"

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

KvTile TileOf(const KvLayout& layout, int kv_head, const std::byte* block) {
  const auto head = static_cast<size_t>(kv_head);
  const size_t n = static_cast<size_t>(layout.shape.d_head) * kPositions;  // elements
  const std::byte* k = block + layout.k_offset;
  const std::byte* v = block + layout.v_offset;
  const size_t offset = head * n * ElementBytes(layout.type);
  const size_t scales_offset = ScalesOffset(layout.shape) + head * n / kScaleGroup * 2;
  const bool has_scales = layout.type == KvType::kQ8_0;
  return {k + offset,
          v + offset,
          has_scales ? k + scales_offset : nullptr,
          has_scales ? v + scales_offset : nullptr,
          layout.shape.d_head,
          nullptr,
          nullptr};
}

}  // namespace facet
