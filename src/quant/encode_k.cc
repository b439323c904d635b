// SPDX-License-Identifier: Apache-2.0
// Blocks of 256 values whose groups of 16 or 32 have integer scales: Q2_K, Q4_K and Q5_K with a
// minimum, Q3_K and Q6_K without.
#include "quant/encode.h"
#include "quant/encode_block.h"
#include "quant/fit_groups.h"

namespace facet {
namespace {

void OrInto(std::byte* byte, int bits, int shift) {
  *byte |= static_cast<std::byte>(bits << shift);
}

// Two bits of 256 indices: byte 32 (i / 128) + i % 32 takes index i at bit 2 (i / 32 % 4).
void PackBitPairs(const uint8_t* indices, int from_bit, std::byte* bytes) {
  for (int i = 0; i < kBlockK; ++i) {
    OrInto(bytes + 32 * (i / 128) + i % 32, (indices[i] >> from_bit) & 3, 2 * (i / 32 % 4));
  }
}

// One bit of 256 indices: byte i % 32 takes index i at bit i / 32.
void PackBits(const uint8_t* indices, int from_bit, std::byte* bytes) {
  for (int i = 0; i < kBlockK; ++i) {
    OrInto(bytes + i % 32, (indices[i] >> from_bit) & 1, i / 32);
  }
}

// Four bits of 256 indices: byte 32 (i / 64) + i % 32 takes index i, the first 32 in low nibbles.
void PackNibbles64(const uint8_t* indices, std::byte* bytes) {
  for (int i = 0; i < kBlockK; ++i) {
    OrInto(bytes + 32 * (i / 64) + i % 32, indices[i] & 15, 4 * (i / 32 % 2));
  }
}

// Four bits of 256 indices: byte 64 (i / 128) + i % 64 takes index i, the first 64 in low nibbles.
void PackNibbles128(const uint8_t* indices, std::byte* bytes) {
  for (int i = 0; i < kBlockK; ++i) {
    OrInto(bytes + 64 * (i / 128) + i % 64, indices[i] & 15, 4 * (i / 64 % 2));
  }
}

using Block = EncoderBlock<kBlockK>;

// Calls stored(j) for the scale and offset of each group.
template <class Stored>
void RoundGroups(const IntegerLevels& levels, const Block& block, int n_groups, Stored stored,
                 uint8_t* indices) {
  const int n4 = kBlockK / 4 / n_groups;
  for (int j = 0; j < n_groups; ++j) {
    RoundToIndices(levels, {block.x + j * n4, block.w + j * n4, n4}, stored(static_cast<size_t>(j)),
                   indices + 4 * n4 * j);
  }
}

AffineGroups FitAndRound(const IntegerLevels& levels, float largest_scale, const Block& block,
                         int n_groups, uint8_t* indices) {
  const AffineGroups groups =
      FitAffineGroups(levels.highest, largest_scale, block.weighted(), n_groups);
  const auto stored = [&](size_t j) {
    return Affine{groups.d * static_cast<float>(groups.s[j]),
                  -(groups.dmin * static_cast<float>(groups.m[j]))};
  };
  RoundGroups(levels, block, n_groups, stored, indices);
  return groups;
}

ScaledGroups FitAndRound(const IntegerLevels& levels, const IntegerLevels& scales,
                         const Block& block, int n_groups, uint8_t* indices) {
  const ScaledGroups groups = FitScaledGroups(levels, scales, block.weighted(), n_groups);
  const auto stored = [&](size_t j) {
    return Affine{groups.d * static_cast<float>(groups.s[j]), 0.0f};
  };
  RoundGroups(levels, block, n_groups, stored, indices);
  return groups;
}

// Eight scales and minima of 6 bits in 12 bytes: the low bits of pair j + 4 share a byte, their
// high bits fill up those of pair j.
void PackScalesAndMinima(const AffineGroups& groups, std::byte* bytes) {
  for (size_t j = 0; j < 4; ++j) {
    OrInto(bytes + j, groups.s[j] | ((groups.s[j + 4] >> 4) << 6), 0);
    OrInto(bytes + 4 + j, groups.m[j] | ((groups.m[j + 4] >> 4) << 6), 0);
    OrInto(bytes + 8 + j, (groups.s[j + 4] & 15) | ((groups.m[j + 4] & 15) << 4), 0);
  }
}

// 16 bytes of scales (low nibbles) and minima, 64 bytes of bit pairs, d, dmin.
void PackQ2_K(const Block& block, std::byte* bytes) {
  uint8_t indices[kBlockK];
  const AffineGroups groups = FitAndRound({0.0f, 3.0f}, 15.0f, block, 16, indices);
  for (size_t j = 0; j < 16; ++j) {
    OrInto(bytes + j, groups.s[j] | (groups.m[j] << 4), 0);
  }
  PackBitPairs(indices, 0, bytes + 16);
  StoreHalf(groups.d, bytes + 80);
  StoreHalf(groups.dmin, bytes + 82);
}

// 32 bytes of high bits, 64 bytes of bit pairs, 12 bytes with sixteen 6-bit scales + 32, d.
void PackQ3_K(const Block& block, std::byte* bytes) {
  uint8_t indices[kBlockK];
  const ScaledGroups groups = FitAndRound({-4.0f, 3.0f}, {-32.0f, 31.0f}, block, 16, indices);
  PackBits(indices, 2, bytes);
  PackBitPairs(indices, 0, bytes + 32);
  for (int j = 0; j < 16; ++j) {
    const int s = groups.s[static_cast<size_t>(j)] + 32;
    OrInto(bytes + 96 + j % 8, s & 15, 4 * (j / 8));
    OrInto(bytes + 104 + j % 4, s >> 4, 2 * (j / 4));
  }
  StoreHalf(groups.d, bytes + 108);
}

// d, dmin, 12 bytes of scales and minima, 128 bytes of nibbles.
void PackQ4_K(const Block& block, std::byte* bytes) {
  uint8_t indices[kBlockK];
  const AffineGroups groups = FitAndRound({0.0f, 15.0f}, 63.0f, block, 8, indices);
  StoreHalf(groups.d, bytes);
  StoreHalf(groups.dmin, bytes + 2);
  PackScalesAndMinima(groups, bytes + 4);
  PackNibbles64(indices, bytes + 16);
}

// As Q4_K, with 32 bytes of high bits before the nibbles.
void PackQ5_K(const Block& block, std::byte* bytes) {
  uint8_t indices[kBlockK];
  const AffineGroups groups = FitAndRound({0.0f, 31.0f}, 63.0f, block, 8, indices);
  StoreHalf(groups.d, bytes);
  StoreHalf(groups.dmin, bytes + 2);
  PackScalesAndMinima(groups, bytes + 4);
  PackBits(indices, 4, bytes + 16);
  PackNibbles64(indices, bytes + 48);
}

// 128 bytes of low nibbles, 64 bytes of high bit pairs, sixteen int8 scales, d.
void PackQ6_K(const Block& block, std::byte* bytes) {
  uint8_t indices[kBlockK];
  const ScaledGroups groups = FitAndRound({-32.0f, 31.0f}, {-128.0f, 127.0f}, block, 16, indices);
  PackNibbles128(indices, bytes);
  PackBitPairs(indices, 4, bytes + 128);
  for (size_t j = 0; j < 16; ++j) {
    bytes[192 + j] = static_cast<std::byte>(groups.s[j]);
  }
  StoreHalf(groups.d, bytes + 208);
}

}  // namespace

void EncodeQ2_K(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlockK>(values, importance, n, 84, blocks, PackQ2_K);
}

void EncodeQ3_K(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlockK>(values, importance, n, 110, blocks, PackQ3_K);
}

void EncodeQ4_K(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlockK>(values, importance, n, 144, blocks, PackQ4_K);
}

void EncodeQ5_K(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlockK>(values, importance, n, 176, blocks, PackQ5_K);
}

void EncodeQ6_K(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlockK>(values, importance, n, 210, blocks, PackQ6_K);
}

}  // namespace facet
