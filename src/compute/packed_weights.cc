// SPDX-License-Identifier: Apache-2.0
#include "compute/packed_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "quant/codec.h"

namespace facet {
namespace {

using T = TensorType;

constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
constexpr int8_t kE2m1Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr PackedFormat kFormats[] = {
    {T::kQ4_0, 4, 8, nullptr, 1, false, 0, false},
    {T::kQ4_1, 4, 0, nullptr, 1, true, 0, false},
    {T::kQ5_0, 5, 16, nullptr, 1, false, 0, false},
    {T::kQ5_1, 5, 0, nullptr, 1, true, 0, false},
    {T::kQ8_0, 8, 128, nullptr, 1, false, 0, false},
    {T::kQ4_K, 4, 0, nullptr, 8, true, 1, true},
    {T::kQ5_K, 5, 0, nullptr, 8, true, 1, true},
    {T::kQ6_K, 6, 32, nullptr, 8, false, 2, false},
    {T::kIQ4_NL, 4, 0, kIq4Levels, 1, false, 0, false},
    {T::kIQ4_XS, 4, 0, kIq4Levels, 8, false, 1, false},
    {T::kMXFP4, 4, 0, kE2m1Levels, 1, false, 0, false},
};

constexpr int kBlock = 32;  // columns

unsigned CodeOf(const PackedFormat& format, int value) {
  if (format.levels == nullptr) {
    return static_cast<unsigned>(value + format.offset);
  }
  return static_cast<unsigned>(std::find(format.levels, format.levels + 15, value) - format.levels);
}

// Adds the code of one column of row `row` to the codes of its block, which began as zeros.
void PutCode(int bits, unsigned code, int row, int column, std::byte* codes) {
  const int quad = column / 4;
  const size_t at = static_cast<size_t>(4 * row + column % 4);
  if (bits == 8) {
    codes[static_cast<size_t>(64 * quad) + at] = static_cast<std::byte>(code);
    return;
  }
  codes[static_cast<size_t>(64 * (quad % 4)) + at] |=
      static_cast<std::byte>((code & 15u) << (4 * (quad / 4)));
  if (bits == 5) {
    codes[256 + at] |= static_cast<std::byte>((code >> 4) << quad);
  } else if (bits == 6) {
    codes[256 + static_cast<size_t>(64 * (quad / 4)) + at] |=
        static_cast<std::byte>((code >> 4) << (2 * (quad % 4)));
  }
}

void PutHalf(uint16_t bits, int64_t place, int row, std::byte* side) {
  std::memcpy(side + 2 * (kPackedRows * place + row), &bits, sizeof(bits));
}

void PutByte(int value, int64_t place, int row, std::byte* bytes) {
  bytes[kPackedRows * place + row] = static_cast<std::byte>(value);
}

// What block `b` of the side's blocks puts there.
void PutSide(const PackedFormat& format, const UnpackedBlock& block, int b, int row,
             std::byte* side) {
  if (b == 0) {
    const bool is_bf16 = format.type == T::kMXFP4;
    PutHalf(is_bf16 ? Bf16FromFloat(block.d[0]) : F16FromFloat(block.d[0]), 0, row, side);
    if (format.has_minimum) {
      PutHalf(F16FromFloat(block.dmin), 1, row, side);
    }
  }
  std::byte* scales = side + kPackedRows * (format.has_minimum ? 4 : 2);
  for (int s = 0; s < format.scales_per_block; ++s) {
    PutByte(block.s[s], int64_t{b} * format.scales_per_block + s, row, scales);
  }
  if (format.has_minima) {
    PutByte(block.m[0], int64_t{format.blocks_per_side} * format.scales_per_block + b, row, scales);
  }
}

}  // namespace

const PackedFormat* FindPackedFormat(TensorType type) {
  const PackedFormat* found =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [type](const PackedFormat& f) { return f.type == type; });
  return found == std::end(kFormats) ? nullptr : found;
}

int64_t PackedGroupBytes(TensorType type, int64_t n_in) {
  const PackedFormat* format = FindPackedFormat(type);
  FACET_CHECK(format != nullptr);
  const int64_t n_blocks = n_in / kBlock;
  const int64_t sides = n_blocks / format->blocks_per_side * format->side_bytes();
  return n_blocks * format->code_bytes() + (sides + 63) / 64 * 64;
}

int64_t PackedBytes(const WeightMatrix& w) {
  if (FindPackedFormat(w.type) == nullptr) {
    return 0;
  }
  return (w.n_out + kPackedRows - 1) / kPackedRows * PackedGroupBytes(w.type, w.n_in);
}

void PackGroup(const WeightMatrix& w, int64_t group, std::byte* out) {
  const PackedFormat* format = FindPackedFormat(w.type);
  FACET_CHECK(format != nullptr);
  const int64_t n_blocks = w.n_in / kBlock;
  std::fill_n(out, PackedGroupBytes(w.type, w.n_in), std::byte{0});
  std::byte* sides = out + n_blocks * format->code_bytes();
  std::vector<UnpackedBlock> blocks(static_cast<size_t>(n_blocks));
  for (int row = 0; row < kPackedRows && kPackedRows * group + row < w.n_out; ++row) {
    FindCodec(w.type)->unpack(w.row(kPackedRows * group + row), w.n_in, blocks.data());
    for (int64_t b = 0; b < n_blocks; ++b) {
      const UnpackedBlock& block = blocks[static_cast<size_t>(b)];
      for (int column = 0; column < kBlock; ++column) {
        PutCode(format->code_bits, CodeOf(*format, block.q[column]), row, column,
                out + b * format->code_bytes());
      }
      const int64_t side = b / format->blocks_per_side;
      PutSide(*format, block, static_cast<int>(b % format->blocks_per_side), row,
              sides + side * format->side_bytes());
    }
  }
}

}  // namespace facet
