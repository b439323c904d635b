// SPDX-License-Identifier: Apache-2.0
// Types whose 16 levels follow a table: IQ4_NL, IQ4_XS, MXFP4.
#include <algorithm>
#include <cmath>

#include "quant/encode.h"
#include "quant/encode_block.h"
#include "quant/fit_groups.h"
#include "quant/levels.h"

namespace facet {

namespace {

// d, 16 bytes of nibbles.
void PackIQ4_NL(const EncoderBlock<kBlock32>& block, std::byte* bytes) {
  const Iq4Levels levels;
  const float d = NearestHalf(FitScale(levels, block.weighted()));
  uint8_t indices[kBlock32];
  RoundToIndices(levels, block.weighted(), {d, 0.0f}, indices);
  StoreHalf(d, bytes);
  PackNibbles32(indices, bytes + 2);
}

// d, eight 6-bit scales + 32 (16 bits with their high pairs, 4 bytes with their low nibbles), 16
// bytes of nibbles for each group.
void PackIQ4_XS(const EncoderBlock<kBlockK>& block, std::byte* bytes) {
  constexpr int kGroups = 8;
  constexpr int kGroup4 = kBlock32 / 4;
  const Iq4Levels levels;
  const ScaledGroups groups = FitScaledGroups(levels, {-32.0f, 31.0f}, block.weighted(), kGroups);
  StoreHalf(groups.d, bytes);
  for (int j = 0; j < kGroups; ++j) {
    const int s = groups.s[static_cast<size_t>(j)];
    bytes[2 + j / 4] |= static_cast<std::byte>(((s + 32) >> 4) << (2 * (j % 4)));
    bytes[4 + j / 2] |= static_cast<std::byte>(((s + 32) & 15) << (4 * (j % 2)));
    const Weighted group = {block.x + kGroup4 * j, block.w + kGroup4 * j, kGroup4};
    uint8_t indices[kBlock32];
    RoundToIndices(levels, group, {groups.d * static_cast<float>(s), 0.0f}, indices);
    PackNibbles32(indices, bytes + 8 + 16 * j);
  }
}

// The unit of the levels is 2^(exponent − 128); below 3 its inverse is no float any more.
constexpr int kSmallestExponent = 3;

float UnitOf(int exponent) { return std::ldexp(1.0f, exponent - 128); }

// Of the exponent at which the largest magnitude just fits and its two neighbours, the one of least
// error; 0 for a block of zeros.
int FitExponent(Weighted block) {
  float largest = 0.0f;
  for (int k = 0; k < 4 * block.n4; ++k) {
    largest = std::fmax(largest, std::fabs(block.x[k / 4][k % 4]));
  }
  if (largest == 0.0f) {
    return 0;
  }
  const int fitting = std::ilogb(largest) + 125;  // largest / UnitOf(fitting) is in [8, 16)
  int best = 0;
  float least = INFINITY;
  for (const int exponent : {fitting, fitting + 1, fitting - 1}) {
    const int valid = std::max(exponent, kSmallestExponent);
    const float error = Round(Mxfp4Levels{}, block, {UnitOf(valid), 0.0f}).error;
    if (error < least) {
      least = error;
      best = valid;
    }
  }
  return best;
}

// The exponent, 16 bytes of nibbles: sign and index of the magnitude.
void PackMXFP4(const EncoderBlock<kBlock32>& block, std::byte* bytes) {
  constexpr int kZero = 7;  // index of level 0
  const int exponent = FitExponent(block.weighted());
  const Affine stored = {UnitOf(std::max(exponent, kSmallestExponent)), 0.0f};
  uint8_t indices[kBlock32];
  RoundToIndices(Mxfp4Levels{}, block.weighted(), stored, indices);
  for (uint8_t& index : indices) {
    index = static_cast<uint8_t>(index < kZero ? 8 + kZero - index : index - kZero);
  }
  bytes[0] = static_cast<std::byte>(exponent);
  PackNibbles32(indices, bytes + 1);
}

}  // namespace

void EncodeIQ4_NL(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlock32>(values, importance, n, 18, blocks, PackIQ4_NL);
}

void EncodeIQ4_XS(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlockK>(values, importance, n, 136, blocks, PackIQ4_XS);
}

void EncodeMXFP4(const float* values, const float* importance, int64_t n, std::byte* blocks) {
  ForEachBlock<kBlock32>(values, importance, n, 17, blocks, PackMXFP4);
}

}  // namespace facet
