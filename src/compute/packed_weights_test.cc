// SPDX-License-Identifier: Apache-2.0
#include "compute/packed_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/half.h"
#include "compute/kernel_testing.h"
#include "quant/codec.h"

namespace facet {
namespace {

using ::facet::testing::RandomStream;
using ::facet::testing::SameBits;

constexpr TensorType kTypes[] = {TensorType::kQ4_0,   TensorType::kQ4_1, TensorType::kQ5_0,
                                 TensorType::kQ5_1,   TensorType::kQ8_0, TensorType::kQ4_K,
                                 TensorType::kQ5_K,   TensorType::kQ6_K, TensorType::kIQ4_NL,
                                 TensorType::kIQ4_XS, TensorType::kMXFP4};
constexpr int64_t kIn = 768;

std::vector<std::byte> RandomBytes(uint64_t seed, int64_t n) {
  RandomStream random(seed);
  std::vector<std::byte> bytes(static_cast<size_t>(n));
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(random.Bits());
  }
  return bytes;
}

int ByteAt(const std::byte* bytes, int64_t i) { return static_cast<int>(bytes[i]); }

/// Reads packed weights as the header describes them, value by value.
class PackedReader {
 public:
  PackedReader(TensorType type, const std::byte* group)
      : format_(*FindPackedFormat(type)),
        group_(group),
        sides_(group + kIn / 32 * format_.code_bytes()) {}

  [[nodiscard]] int Value(int row, int64_t column) const {
    const int code = Code(row, column);
    return format_.levels != nullptr ? format_.levels[code] : code - format_.offset;
  }
  [[nodiscard]] float Scale(int row, int64_t column) const {
    const uint16_t bits = HalfAt(SideOf(column) + 2 * row);
    return format_.type == TensorType::kMXFP4 ? FloatFromBf16(bits) : FloatFromF16(bits);
  }
  [[nodiscard]] float MinimumScale(int row, int64_t column) const {
    return format_.has_minimum ? FloatFromF16(HalfAt(SideOf(column) + 32 + 2 * row)) : 0.0F;
  }
  [[nodiscard]] int BlockScale(int row, int64_t column) const {
    const int n = format_.scales_per_block;
    const int64_t place = BlockOf(column) * n + (n == 2 ? column % 32 / 16 : 0);
    return n == 0 ? 1 : static_cast<int8_t>(ByteAt(Bytes(column), 16 * place + row));
  }
  [[nodiscard]] int BlockMinimum(int row, int64_t column) const {
    if (!format_.has_minima) {
      return format_.has_minimum ? 1 : 0;
    }
    const int64_t place = format_.blocks_per_side * format_.scales_per_block + BlockOf(column);
    return ByteAt(Bytes(column), 16 * place + row);
  }

 private:
  [[nodiscard]] int Code(int row, int64_t column) const {
    const std::byte* block = group_ + column / 32 * format_.code_bytes();
    const auto in_block = static_cast<int>(column % 32);
    const int at = 4 * row + in_block % 4;
    const int quad = in_block / 4;
    if (format_.code_bits == 8) {
      return ByteAt(block, 64 * quad + at);
    }
    const int low = (ByteAt(block, 64 * (quad % 4) + at) >> (4 * (quad / 4))) & 15;
    if (format_.code_bits == 5) {
      return low | ((ByteAt(block, 256 + at) >> quad) & 1) << 4;
    }
    if (format_.code_bits == 6) {
      return low | ((ByteAt(block, 256 + 64 * (quad / 4) + at) >> (2 * (quad % 4))) & 3) << 4;
    }
    return low;
  }
  [[nodiscard]] const std::byte* SideOf(int64_t column) const {
    return sides_ + column / 32 / format_.blocks_per_side * format_.side_bytes();
  }
  [[nodiscard]] const std::byte* Bytes(int64_t column) const {
    return SideOf(column) + (format_.has_minimum ? 64 : 32);
  }
  [[nodiscard]] int64_t BlockOf(int64_t column) const {
    return column / 32 % format_.blocks_per_side;
  }
  static uint16_t HalfAt(const std::byte* data) {
    uint16_t bits;
    std::memcpy(&bits, data, sizeof(bits));
    return bits;
  }

  const PackedFormat& format_;
  const std::byte* group_;
  const std::byte* sides_;
};

void ExpectSameRow(const PackedReader& packed, int row,
                   const std::vector<UnpackedBlock>& unpacked) {
  for (int64_t column = 0; column < kIn; ++column) {
    const UnpackedBlock& block = unpacked[static_cast<size_t>(column / 32)];
    const auto half = static_cast<size_t>(column % 32 / 16);
    ASSERT_EQ(packed.Value(row, column), block.q[column % 32]) << row << ", " << column;
    ASSERT_EQ(packed.BlockScale(row, column), block.s[half]) << row << ", " << column;
    ASSERT_EQ(packed.BlockMinimum(row, column), block.m[half]) << row << ", " << column;
    ASSERT_TRUE(SameBits(packed.Scale(row, column), block.d[half])) << row << ", " << column;
    ASSERT_TRUE(SameBits(packed.MinimumScale(row, column), block.dmin)) << row << ", " << column;
  }
}

TEST(PackedWeights, HoldWhatTheCodecUnpacks) {
  for (const TensorType type : kTypes) {
    SCOPED_TRACE(InfoOf(type).name);
    constexpr int64_t kOut = 37;  // the last group has 5 rows
    const std::vector<std::byte> bytes = RandomBytes(7, kOut * BytesOf(type, kIn));
    const WeightMatrix w = {type, kOut, kIn, bytes.data()};
    const auto group_bytes = static_cast<size_t>(PackedGroupBytes(type, kIn));
    ASSERT_EQ(PackedBytes(w), static_cast<int64_t>(3 * group_bytes));
    std::vector<std::byte> group(group_bytes);
    std::vector<UnpackedBlock> unpacked(kIn / 32);
    for (int64_t row = 0; row < kOut; ++row) {
      if (row % kPackedRows == 0) {
        PackGroup(w, row / kPackedRows, group.data());
      }
      FindCodec(type)->unpack(w.row(row), kIn, unpacked.data());
      ExpectSameRow(PackedReader(type, group.data()), static_cast<int>(row % kPackedRows),
                    unpacked);
    }
  }
}

TEST(PackedWeights, EveryByteIsWrittenAndRowsPastTheEndAreZeros) {
  for (const TensorType type : kTypes) {
    SCOPED_TRACE(InfoOf(type).name);
    const std::vector<std::byte> bytes = RandomBytes(8, kPackedRows * BytesOf(type, kIn));
    for (const int64_t n_out : {5, kPackedRows}) {
      const WeightMatrix w = {type, n_out, kIn, bytes.data()};
      const auto n = static_cast<size_t>(PackedGroupBytes(type, kIn));
      std::vector<std::byte> first(n, std::byte{0xff});
      std::vector<std::byte> second(n, std::byte{0x55});
      PackGroup(w, 0, first.data());
      PackGroup(w, 0, second.data());
      EXPECT_TRUE(first == second);
      if (n_out < kPackedRows) {
        for (size_t i = 0; i < n / 64 * 64 && i < 256; ++i) {  // the codes of the first columns
          EXPECT_TRUE(i % 64 < 4 * 5 || first[i] == std::byte{0}) << i;
        }
      }
    }
  }
}

TEST(PackedWeights, HaveTheSizeOfTheFile) {
  for (const TensorType type : kTypes) {
    const double file_bytes = static_cast<double>(kPackedRows * BytesOf(type, 2048));
    const auto packed_bytes = static_cast<double>(PackedGroupBytes(type, 2048));
    EXPECT_NEAR(packed_bytes / file_bytes, 1.0, 0.06) << InfoOf(type).name;
  }
  EXPECT_EQ(FindPackedFormat(TensorType::kQ3_K), nullptr);
  EXPECT_EQ(PackedBytes({TensorType::kBF16, 16, 32, nullptr}), 0);
}

TEST(PackedWeights, TheScalarSetReadsTheFile) {
  EXPECT_FALSE(HasPackedKernel(KernelsFor(Isa::kScalar), TensorType::kQ4_0));
  for (const Isa isa : SupportedIsas()) {
    EXPECT_FALSE(HasPackedKernel(KernelsFor(isa), TensorType::kQ3_K));
  }
}

}  // namespace
}  // namespace facet
