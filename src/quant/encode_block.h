// SPDX-License-Identifier: Apache-2.0
// What the packers of all types share: a block's values and weights as the search wants them,
// halves, rounding to what is stored. Internal to quant/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "quant/fit.h"

namespace facet {

inline constexpr int kBlock32 = 32;
inline constexpr int kBlockK = 256;

/// One block, ready to be fitted: finite values, positive weights of mean 1 (or a millionth more).
template <int kN>
struct EncoderBlock {
  Float4 x[kN / 4];
  Float4 w[kN / 4];

  EncoderBlock(const float* values, const float* importance);
  Weighted weighted() const { return {x, w, kN / 4}; }
};
extern template struct EncoderBlock<kBlock32>;
extern template struct EncoderBlock<kBlockK>;

/// The nearest value of half precision that is finite.
float NearestHalf(float value);
void StoreHalf(float value, std::byte* bytes);

/// Calls pack(EncoderBlock<kN>, bytes) for each block, with its bytes zeroed.
template <int kN, class Pack>
void ForEachBlock(const float* values, const float* importance, int64_t n, int block_bytes,
                  std::byte* blocks, Pack pack) {
  for (int64_t i = 0; i < n; i += kN, blocks += block_bytes) {
    std::fill(blocks, blocks + block_bytes, std::byte{0});
    pack(EncoderBlock<kN>(values + i, importance != nullptr ? importance + i : nullptr), blocks);
  }
}

/// Writes the index of the level for each value.
template <class Levels>
void RoundToIndices(const Levels& levels, Weighted group, Affine stored, uint8_t* indices) {
  const float inverse = stored.inverse();
  for (int k = 0; k < group.n4; ++k) {
    const Float4 level = levels.Nearest((group.x[k] - stored.offset) * inverse);
    for (int i = 0; i < 4; ++i) {
      indices[4 * k + i] = static_cast<uint8_t>(levels.IndexOf(level[i]));
    }
  }
}

/// Byte k of 16 holds index k in its low nibble and index k + 16 in its high nibble.
void PackNibbles32(const uint8_t* indices, std::byte* bytes);

}  // namespace facet
