// SPDX-License-Identifier: Apache-2.0
#include "compute/packed_weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "compute/kernels.h"

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

constexpr PackedFormat FormatOf(TensorType type) {
  size_t index = 0;
  while (kFormats[index].type != type) {
    ++index;
  }
  return kFormats[index];
}

// --- what a row puts into its group ---

// Of the codes of 32 columns: its 4 bytes of each 64. As many words as a code has bits.
template <int kBits>
using CodeWords = std::array<uint32_t, kBits>;

// Of a side. Places are counted in pieces of 16 bytes: a half takes two, a byte one.
struct SideRow {
  std::byte* side;
  int row;

  void PutHalf(int place, uint32_t bits) const {
    const auto half = static_cast<uint16_t>(bits);
    std::memcpy(side + kPackedRows * place + 2 * row, &half, sizeof(half));
  }
  void PutByte(int place, uint32_t value) const {
    side[kPackedRows * place + row] = static_cast<std::byte>(value);
  }
  // The four bytes of a word, in ascending places.
  void PutBytes(int place, uint32_t word) const {
    for (int i = 0; i < 4; ++i) {
      PutByte(place + i, word >> (8 * i));
    }
  }
};

uint32_t Word(const std::byte* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

uint32_t Half(const std::byte* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// 16 bytes whose low nibbles are columns 0 to 15 and whose high ones are 16 to 31 are packed
// already.
template <size_t kN>
void CopyNibbles(const std::byte* packed, std::array<uint32_t, kN>* words) {
  std::memcpy(words->data(), packed, 16);
}

// Nibbles `shift` / 4 of 32 bytes, a column each.
template <size_t kN>
void TakeNibbles(const std::byte* packed, int shift, std::array<uint32_t, kN>* words) {
  constexpr uint32_t kLow = 0x0f0f0f0f;
  for (size_t v = 0; v < 4; ++v) {
    const uint32_t first = (Word(packed + 4 * v) >> shift) & kLow;
    const uint32_t second = (Word(packed + 4 * v + 16) >> shift) & kLow;
    (*words)[v] = first | second << 4;
  }
}

// Bit 4 q + j of `bits`, for column 4 q + j, to bit q of byte j.
uint32_t FifthBits(uint32_t bits) {
  uint32_t word = 0;
  for (int q = 0; q < 8; ++q) {
    const uint32_t four = (bits >> (4 * q)) & 15u;
    word |= ((four * 0x00204081u) & 0x01010101u) << q;  // bit j moves to bit 8 j
  }
  return word;
}

// --- types: where a file block has what a group needs ---

// kBytes is the size of a file block; Codes takes those of its run `b` of 32 columns.
template <TensorType kOfType, int kFileBytes>
struct BlockType {
  static constexpr PackedFormat kFormat = FormatOf(kOfType);
  static constexpr int kBytes = kFileBytes;
  using Words = CodeWords<kFormat.code_bits>;
};

struct PackQ4_0 : BlockType<T::kQ4_0, 18> {
  static void Codes(const std::byte* block, int, Words* words) { CopyNibbles(block + 2, words); }
  static void Side(const std::byte* block, const SideRow& side) { side.PutHalf(0, Half(block)); }
};

struct PackIQ4NL : BlockType<T::kIQ4_NL, 18> {
  static void Codes(const std::byte* block, int b, Words* words) {
    PackQ4_0::Codes(block, b, words);
  }
  static void Side(const std::byte* block, const SideRow& side) { PackQ4_0::Side(block, side); }
};

// value = d · code + offset: the minimum is the offset with its sign turned.
void PutScaleAndOffset(const std::byte* block, const SideRow& side) {
  side.PutHalf(0, Half(block));
  side.PutHalf(2, Half(block + 2) ^ 0x8000u);
}

struct PackQ4_1 : BlockType<T::kQ4_1, 20> {
  static void Codes(const std::byte* block, int, Words* words) { CopyNibbles(block + 4, words); }
  static void Side(const std::byte* block, const SideRow& side) { PutScaleAndOffset(block, side); }
};

struct PackQ5_0 : BlockType<T::kQ5_0, 22> {
  static void Codes(const std::byte* block, int, Words* words) {
    CopyNibbles(block + 6, words);
    (*words)[4] = FifthBits(Word(block + 2));
  }
  static void Side(const std::byte* block, const SideRow& side) { PackQ4_0::Side(block, side); }
};

struct PackQ5_1 : BlockType<T::kQ5_1, 24> {
  static void Codes(const std::byte* block, int, Words* words) {
    CopyNibbles(block + 8, words);
    (*words)[4] = FifthBits(Word(block + 4));
  }
  static void Side(const std::byte* block, const SideRow& side) { PutScaleAndOffset(block, side); }
};

struct PackQ8_0 : BlockType<T::kQ8_0, 34> {
  static void Codes(const std::byte* block, int, Words* words) {
    for (size_t q = 0; q < words->size(); ++q) {
      (*words)[q] = Word(block + 2 + 4 * q) ^ 0x80808080u;  // code = value + 128
    }
  }
  static void Side(const std::byte* block, const SideRow& side) { PackQ4_0::Side(block, side); }
};

// d, dmin and eight 6-bit scales and minima in 12 bytes.
void PutScalesAndMinima(const std::byte* block, const SideRow& side) {
  constexpr uint32_t kSix = 0x3f3f3f3f;
  constexpr uint32_t kFour = 0x0f0f0f0f;
  constexpr uint32_t kTwo = 0x30303030;
  const uint32_t a = Word(block + 4);
  const uint32_t b = Word(block + 8);
  const uint32_t c = Word(block + 12);
  side.PutHalf(0, Half(block));
  side.PutHalf(2, Half(block + 2));
  side.PutBytes(4, a & kSix);
  side.PutBytes(8, (c & kFour) | ((a >> 2) & kTwo));
  side.PutBytes(12, b & kSix);
  side.PutBytes(16, ((c >> 4) & kFour) | ((b >> 2) & kTwo));
}

struct PackQ4K : BlockType<T::kQ4_K, 144> {
  static void Codes(const std::byte* block, int b, Words* words) {
    TakeNibbles(block + 16 + 32 * (b / 2), 4 * (b % 2), words);
  }
  static void Side(const std::byte* block, const SideRow& side) { PutScalesAndMinima(block, side); }
};

struct PackQ5K : BlockType<T::kQ5_K, 176> {
  static void Codes(const std::byte* block, int b, Words* words) {
    TakeNibbles(block + 48 + 32 * (b / 2), 4 * (b % 2), words);
    uint32_t plane = 0;
    for (int q = 0; q < 8; ++q) {
      plane |= ((Word(block + 16 + 4 * q) >> b) & 0x01010101u) << q;
    }
    (*words)[4] = plane;
  }
  static void Side(const std::byte* block, const SideRow& side) { PutScalesAndMinima(block, side); }
};

struct PackQ6K : BlockType<T::kQ6_K, 210> {
  static void Codes(const std::byte* block, int b, Words* words) {
    TakeNibbles(block + 64 * (b / 4) + 32 * (b % 2), b % 4 / 2 * 4, words);
    const std::byte* pairs = block + 128 + 32 * (b / 4);
    for (size_t p = 0; p < 2; ++p) {
      uint32_t plane = 0;
      for (size_t r = 0; r < 4; ++r) {
        plane |= ((Word(pairs + 16 * p + 4 * r) >> (2 * (b % 4))) & 0x03030303u) << (2 * r);
      }
      (*words)[4 + p] = plane;
    }
  }
  static void Side(const std::byte* block, const SideRow& side) {
    side.PutHalf(0, Half(block + 208));
    for (int i = 0; i < 4; ++i) {
      side.PutBytes(2 + 4 * i, Word(block + 192 + 4 * i));
    }
  }
};

struct PackIQ4XS : BlockType<T::kIQ4_XS, 136> {
  static void Codes(const std::byte* block, int b, Words* words) {
    CopyNibbles(block + 8 + 16 * b, words);
  }
  static void Side(const std::byte* block, const SideRow& side) {
    side.PutHalf(0, Half(block));
    const uint32_t high = Half(block + 2);
    const uint32_t low = Word(block + 4);
    for (int b = 0; b < 8; ++b) {
      const uint32_t scale = ((low >> (4 * b)) & 15u) | ((high >> (2 * b)) & 3u) << 4;
      side.PutByte(2 + b, scale - 32);
    }
  }
};

struct PackMXFP4 : BlockType<T::kMXFP4, 17> {
  static void Codes(const std::byte* block, int, Words* words) { CopyNibbles(block + 1, words); }
  // 2^(e − 128) as bfloat16; the two smallest are subnormal.
  static void Side(const std::byte* block, const SideRow& side) {
    const auto e = static_cast<uint32_t>(block[0]);
    side.PutHalf(0, e < 2 ? 0x20u << e : (e - 1) << 7);
  }
};

// --- groups ---

// Row after row within each file block: what is written stays in the first cache, and the rows are
// read as so many streams.
template <typename Type>
void PackRows(const WeightMatrix& w, int64_t group, std::byte* out) {
  constexpr int kBlocks = Type::kFormat.blocks_per_side;
  constexpr int kCodeBytes = Type::kFormat.code_bytes();
  const int64_t n_sides = w.n_in / kBlock / kBlocks;
  const auto n_rows =
      static_cast<int>(std::min<int64_t>(kPackedRows, w.n_out - kPackedRows * group));
  const std::byte* first = w.row(kPackedRows * group);
  const int64_t row_bytes = w.row_bytes();
  std::byte* sides = out + n_sides * kBlocks * kCodeBytes;
  for (int64_t i = 0; i < n_sides; ++i) {
    for (int row = 0; row < n_rows; ++row) {
      const std::byte* block = first + row * row_bytes + i * Type::kBytes;
      for (int b = 0; b < kBlocks; ++b) {
        typename Type::Words words;
        Type::Codes(block, b, &words);
        std::byte* codes = out + (i * kBlocks + b) * kCodeBytes + 4 * row;
        for (size_t v = 0; v < words.size(); ++v) {
          std::memcpy(codes + 64 * v, &words[v], 4);
        }
      }
      Type::Side(block, {sides + i * Type::kFormat.side_bytes(), row});
    }
  }
}

struct Packer {
  TensorType type;
  void (*pack)(const WeightMatrix& w, int64_t group, std::byte* out);
};

constexpr Packer kPackers[] = {
    {T::kQ4_0, PackRows<PackQ4_0>},    {T::kQ4_1, PackRows<PackQ4_1>},
    {T::kQ5_0, PackRows<PackQ5_0>},    {T::kQ5_1, PackRows<PackQ5_1>},
    {T::kQ8_0, PackRows<PackQ8_0>},    {T::kQ4_K, PackRows<PackQ4K>},
    {T::kQ5_K, PackRows<PackQ5K>},     {T::kQ6_K, PackRows<PackQ6K>},
    {T::kIQ4_NL, PackRows<PackIQ4NL>}, {T::kIQ4_XS, PackRows<PackIQ4XS>},
    {T::kMXFP4, PackRows<PackMXFP4>},
};

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

bool HasPackedKernel(const Kernels& kernels, TensorType type) {
  const TypeKernel* end = kernels.matmul->packed + kernels.matmul->n_packed;
  return std::any_of(kernels.matmul->packed, end,
                     [type](const TypeKernel& kernel) { return kernel.type == type; });
}

void PackGroup(const WeightMatrix& w, int64_t group, std::byte* out) {
  const Packer* packer = std::find_if(std::begin(kPackers), std::end(kPackers),
                                      [&w](const Packer& p) { return p.type == w.type; });
  FACET_CHECK(packer != std::end(kPackers));
  const PackedFormat* format = FindPackedFormat(w.type);
  const int64_t n_bytes = PackedGroupBytes(w.type, w.n_in);
  const int64_t n_blocks = w.n_in / kBlock;
  const int64_t n_used =
      n_blocks * format->code_bytes() + n_blocks / format->blocks_per_side * format->side_bytes();
  const bool is_whole = kPackedRows * (group + 1) <= w.n_out;
  std::fill(out + (is_whole ? n_used : 0), out + n_bytes, std::byte{0});
  packer->pack(w, group, out);
}

}  // namespace facet
