// SPDX-License-Identifier: Apache-2.0
#include "compute/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/half.h"
#include "compute/kernel_testing.h"

namespace facet {
namespace {

using testing::RandomStream;
using testing::TestContext;

constexpr KvType kAllKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kQ8_0};
constexpr size_t kKOffset = 64;  // as if another layer stood before

uint16_t BitsAt(const std::byte* data, size_t i) {
  uint16_t bits;
  std::memcpy(&bits, data + 2 * i, sizeof(bits));
  return bits;
}

// Element `i` of an array of a half block, as attention.h describes the arrays; `scale` is its
// scale's index.
float StoredAt(KvType type, const KvShape& shape, const std::byte* half, size_t i, size_t scale) {
  switch (type) {
    case KvType::kF32: {
      float value;
      std::memcpy(&value, half + 4 * i, sizeof(value));
      return value;
    }
    case KvType::kF16:
      return FloatFromF16(BitsAt(half, i));
    case KvType::kBf16:
      return FloatFromBf16(BitsAt(half, i));
    case KvType::kQ8_0: {
      const std::byte* scales = half + shape.n_kv_heads * shape.d_head * 32;
      return static_cast<float>(static_cast<int8_t>(half[i])) * FloatFromF16(BitsAt(scales, scale));
    }
  }
  return 0.0f;
}

// A sequence of random keys and values in scattered blocks. What no position holds has the bytes
// 0xff: NaN in the float types.
class Cache {
 public:
  Cache(KvType type, const KvShape& shape, int n_positions, uint64_t seed)
      : type_(type), shape_(shape), half_(KvHalfBlockBytes(type, shape)) {
    RandomStream random(seed);
    const auto n = static_cast<size_t>(shape.n_kv_heads * shape.d_head);
    for (int pos = 0; pos < n_positions; ++pos) {
      if (pos % kKvBlockPositions == 0) {
        storage_.emplace_back(kKOffset + 2 * half_, std::byte{0xff});
        blocks_.push_back(storage_.back().data());
      }
      const std::vector<float> k = random.Floats(n, 1.5f);
      const std::vector<float> v = random.Floats(n, 3.0f);
      std::byte* block = blocks_.back();
      StoreKv({type, shape, kKOffset, v_offset()}, k.data(), v.data(), pos % kKvBlockPositions,
              block);
      original_k_.push_back(k);
      original_v_.push_back(v);
    }
  }

  [[nodiscard]] size_t v_offset() const { return kKOffset + half_; }
  [[nodiscard]] std::span<std::byte* const> blocks() const { return blocks_; }
  [[nodiscard]] float K(int pos, int head, int d) const {
    const int slot = pos % 32;
    const int i = (head * shape_.d_head + d) * 32 + slot;
    const int scale = (head * (shape_.d_head / 32) + d / 32) * 32 + slot;
    return At(pos, kKOffset, i, scale);
  }
  [[nodiscard]] float V(int pos, int head, int d) const {
    const int slot = head * 32 + pos % 32;
    return At(pos, v_offset(), slot * shape_.d_head + d, slot * (shape_.d_head / 32) + d / 32);
  }
  [[nodiscard]] float OriginalK(int pos, int head, int d) const {
    return original_k_[static_cast<size_t>(pos)][static_cast<size_t>(head * shape_.d_head + d)];
  }
  [[nodiscard]] float OriginalV(int pos, int head, int d) const {
    return original_v_[static_cast<size_t>(pos)][static_cast<size_t>(head * shape_.d_head + d)];
  }

 private:
  [[nodiscard]] float At(int pos, size_t offset, int i, int scale) const {
    return StoredAt(type_, shape_, blocks_[static_cast<size_t>(pos / 32)] + offset,
                    static_cast<size_t>(i), static_cast<size_t>(scale));
  }

  KvType type_;
  KvShape shape_;
  size_t half_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<std::byte*> blocks_;
  std::vector<std::vector<float>> original_k_;
  std::vector<std::vector<float>> original_v_;
};

struct Range {
  int32_t begin;
  int32_t end;
};

// Attention of one row per range, all with queries of the same seed.
std::vector<float> Attend(const ComputeContext& context, const Cache& cache, KvType type,
                          const KvShape& shape, int n_heads, const std::vector<Range>& ranges) {
  const auto n = static_cast<size_t>(n_heads * shape.d_head);
  RandomStream random(99);
  const std::vector<float> q = random.Floats(n * ranges.size(), 1.0f);
  std::vector<float> out(q.size(), -1.0f);
  std::vector<AttentionRow> rows;
  for (size_t row = 0; row < ranges.size(); ++row) {
    rows.push_back({q.data() + row * n, out.data() + row * n, ranges[row].begin, ranges[row].end,
                    cache.blocks()});
  }
  Attention(context, {type, shape, kKOffset, cache.v_offset()}, n_heads, rows);
  return out;
}

class AttentionTest : public ::testing::TestWithParam<KvType> {};

TEST_P(AttentionTest, EverySetGivesTheScalarBits) {
  const TestContext scalar(Isa::kScalar, 1);
  const std::vector<Range> ranges = {{0, 1},  {0, 31},  {0, 32},  {0, 33},   {31, 32}, {31, 33},
                                     {5, 20}, {40, 41}, {33, 95}, {64, 128}, {0, 130}, {97, 130}};
  for (const int d_head : {32, 64, 128, 256, 512}) {
    for (const int ratio : {1, 2, 3, 4, 8}) {
      if (d_head > 128 && ratio > 2) {
        continue;
      }
      const KvShape shape = {2, d_head};
      const Cache cache(GetParam(), shape, 130, static_cast<uint64_t>(d_head));
      const std::vector<float> wanted =
          Attend(*scalar, cache, GetParam(), shape, 2 * ratio, ranges);
      for (const float value : wanted) {
        ASSERT_TRUE(std::isfinite(value));  // nothing of the unused slots came in
      }
      for (const Isa isa : SupportedIsas()) {
        for (const int n_threads : {1, 2, 3}) {
          if (isa == Isa::kScalar && n_threads != 2) {
            continue;
          }
          const TestContext context(isa, n_threads);
          EXPECT_TRUE(testing::AllSameBits(
              Attend(*context, cache, GetParam(), shape, 2 * ratio, ranges), wanted))
              << NameOf(isa) << ", " << n_threads << " threads, d_head " << d_head << ", ratio "
              << ratio;
        }
      }
    }
  }
}

// Long rows, which all threads share, among short ones, which a thread takes together; heads that
// need more than one block of queries; rows of two sequences.
TEST_P(AttentionTest, SharedAndWholeRowsGiveTheScalarBits) {
  const KvShape shape = {2, 128};
  const int n_heads = 24;
  const auto width = static_cast<size_t>(n_heads * shape.d_head);
  const Cache first(GetParam(), shape, 500, 11);
  const Cache second(GetParam(), shape, 60, 12);
  RandomStream random(13);
  const std::vector<Range> ranges = {{3, 499}, {0, 500}, {30, 60}, {0, 40}, {0, 41}, {7, 42}};
  const std::vector<float> q = random.Floats(width * ranges.size(), 1.0f);
  const auto attend = [&](const ComputeContext& context) {
    std::vector<float> out(q.size());
    std::vector<AttentionRow> rows;
    for (size_t row = 0; row < ranges.size(); ++row) {
      rows.push_back({q.data() + row * width, out.data() + row * width, ranges[row].begin,
                      ranges[row].end, (row < 2 ? first : second).blocks()});
    }
    Attention(context, {GetParam(), shape, kKOffset, first.v_offset()}, n_heads, rows);
    return out;
  };
  const TestContext scalar(Isa::kScalar, 1);
  const std::vector<float> wanted = attend(*scalar);
  for (const Isa isa : SupportedIsas()) {
    for (const int n_threads : {1, 2, 5}) {
      const TestContext context(isa, n_threads);
      EXPECT_TRUE(testing::AllSameBits(attend(*context), wanted))
          << NameOf(isa) << ", " << n_threads << " threads";
    }
  }
}

// What a row gives does not depend on the rows beside it: a whole prompt against each row alone.
TEST_P(AttentionTest, RowsTogetherAreRowsAlone) {
  const KvShape shape = {1, 64};
  const Cache cache(GetParam(), shape, 150, 14);
  std::vector<Range> ranges;
  for (int pos = 60; pos < 150; ++pos) {
    ranges.push_back({std::max(0, pos - 70), pos + 1});
  }
  for (const Isa isa : SupportedIsas()) {
    for (const int n_heads : {1, 3, 8}) {
      const auto width = static_cast<size_t>(n_heads * shape.d_head);
      RandomStream random(15);
      const std::vector<float> q = random.Floats(width * ranges.size(), 1.0f);
      std::vector<float> together(q.size());
      std::vector<float> alone(q.size());
      std::vector<AttentionRow> rows;
      const TestContext context(isa, 1);
      const KvLayout layout = {GetParam(), shape, kKOffset, cache.v_offset()};
      for (size_t row = 0; row < ranges.size(); ++row) {
        const auto [begin, end] = ranges[row];
        const AttentionRow one = {q.data() + row * width, alone.data() + row * width, begin, end,
                                  cache.blocks()};
        Attention(*context, layout, n_heads, std::span(&one, 1));
        rows.push_back(one);
        rows.back().out = together.data() + row * width;
      }
      Attention(*context, layout, n_heads, rows);
      EXPECT_TRUE(testing::AllSameBits(together, alone)) << NameOf(isa) << ", " << n_heads;
    }
  }
}

// Against softmax(q K) V in double over the stored values.
TEST_P(AttentionTest, IsNearTheFormula) {
  const KvShape shape = {2, 64};
  const int n_heads = 4;
  const Cache cache(GetParam(), shape, 150, 7);
  const TestContext scalar(Isa::kScalar, 1);
  const std::vector<Range> ranges = {{0, 150}, {37, 111}};
  const std::vector<float> out = Attend(*scalar, cache, GetParam(), shape, n_heads, ranges);
  RandomStream random(99);
  const std::vector<float> q = random.Floats(out.size(), 1.0f);
  for (size_t row = 0; row < ranges.size(); ++row) {
    for (int head = 0; head < n_heads; ++head) {
      const size_t at = (row * n_heads + static_cast<size_t>(head)) * 64;
      std::vector<double> p;
      for (int pos = ranges[row].begin; pos < ranges[row].end; ++pos) {
        double score = 0.0;
        for (int d = 0; d < 64; ++d) {
          score += static_cast<double>(q[at + static_cast<size_t>(d)]) *
                   static_cast<double>(cache.K(pos, head / 2, d));
        }
        p.push_back(std::exp(score));
      }
      const double sum = std::accumulate(p.begin(), p.end(), 0.0);
      for (int d = 0; d < 64; ++d) {
        double exact = 0.0;
        for (size_t k = 0; k < p.size(); ++k) {
          exact +=
              p[k] / sum *
              static_cast<double>(cache.V(ranges[row].begin + static_cast<int>(k), head / 2, d));
        }
        EXPECT_NEAR(static_cast<double>(out[at + static_cast<size_t>(d)]), exact, 1e-5);
      }
    }
  }
}

TEST_P(AttentionTest, StoresEachValueWithinTheTypesPrecision) {
  const KvShape shape = {3, 64};
  const Cache cache(GetParam(), shape, 40, 8);
  const auto tolerance = [](float original, float largest) {
    switch (GetParam()) {
      case KvType::kF32:
        return 0.0f;
      case KvType::kF16:
        return std::fabs(original) * 0x1p-11f;
      case KvType::kBf16:
        return std::fabs(original) * 0x1p-8f;
      case KvType::kQ8_0:  // half a step, and the scale's own rounding
        return largest / 127.0f * 0.5f + largest * 0x1p-11f;
    }
    return 0.0f;
  };
  for (int pos = 0; pos < 40; ++pos) {
    for (int head = 0; head < 3; ++head) {
      for (int d = 0; d < 64; ++d) {
        const float k = cache.OriginalK(pos, head, d);
        const float v = cache.OriginalV(pos, head, d);
        ASSERT_NEAR(cache.K(pos, head, d), k, tolerance(k, 1.5f));
        ASSERT_NEAR(cache.V(pos, head, d), v, tolerance(v, 3.0f));
      }
    }
  }
}

// Scores far apart: the running maximum grows from tile to tile, and what came before fades to
// nothing.
TEST_P(AttentionTest, LargeScoresStayFinite) {
  const KvShape shape = {1, 32};
  const size_t half = KvHalfBlockBytes(GetParam(), shape);
  std::vector<std::byte> bytes(3 * 2 * half, std::byte{0xff});
  std::vector<std::byte*> blocks;
  for (int block = 0; block < 3; ++block) {
    blocks.push_back(bytes.data() + static_cast<size_t>(block) * 2 * half);
  }
  for (int pos = 0; pos < 96; ++pos) {
    const std::vector<float> k(32, static_cast<float>(pos % 64));
    const std::vector<float> v(32, static_cast<float>(pos));
    std::byte* block = blocks[static_cast<size_t>(pos / 32)];
    StoreKv({GetParam(), shape, 0, half}, k.data(), v.data(), pos % 32, block);
  }
  const std::vector<float> q(32, 100.0f);
  for (const Isa isa : SupportedIsas()) {
    const TestContext context(isa, 1);
    std::vector<float> out(32);
    const AttentionRow row = {q.data(), out.data(), 0, 96, blocks};
    Attention(*context, {GetParam(), shape, 0, half}, 1, std::span(&row, 1));
    for (const float value : out) {
      EXPECT_NEAR(value, 63.0f, 0.1f);
    }
  }
}

TEST_P(AttentionTest, BlocksOutsideTheRangeMayBeMissing) {
  const KvShape shape = {1, 32};
  const Cache cache(GetParam(), shape, 96, 9);
  std::vector<std::byte*> blocks = {nullptr, cache.blocks()[1], nullptr};
  const std::vector<float> q(32, 0.5f);
  for (const Isa isa : SupportedIsas()) {
    const TestContext context(isa, 1);
    std::vector<float> out(32);
    const AttentionRow row = {q.data(), out.data(), 40, 64, blocks};
    Attention(*context, {GetParam(), shape, kKOffset, cache.v_offset()}, 1, std::span(&row, 1));
    EXPECT_TRUE(std::isfinite(out[0]));
  }
}

// Channels that fill no vector; Q8_0 has none such.
TEST(Attention, OddChannelsGiveTheScalarBits) {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBf16}) {
    for (const int d_head : {8, 16, 24, 40, 72}) {
      const KvShape shape = {1, d_head};
      const Cache cache(type, shape, 70, 16);
      const std::vector<Range> ranges = {{0, 70}, {3, 33}, {69, 70}};
      const TestContext scalar(Isa::kScalar, 1);
      const std::vector<float> wanted = Attend(*scalar, cache, type, shape, 5, ranges);
      for (const Isa isa : testing::VectorIsas()) {
        const TestContext context(isa, 2);
        EXPECT_TRUE(testing::AllSameBits(Attend(*context, cache, type, shape, 5, ranges), wanted))
            << NameOf(isa) << ", " << NameOf(type) << ", d_head " << d_head;
      }
    }
  }
}

// Scores of every size, NaN and infinities among them, in every part of a tile.
TEST(AttentionSoftmax, EverySetGivesTheScalarBits) {
  RandomStream random(17);
  const std::vector<Range> ranges = {{0, 32}, {0, 1}, {31, 32}, {5, 20}, {16, 32}, {15, 17}};
  for (const Isa isa : testing::VectorIsas()) {
    for (int round = 0; round < 600; ++round) {
      const int n = 1 + round % kMaxTileQueries;
      const auto [low, high] = ranges[static_cast<size_t>(round) % ranges.size()];
      const auto size = static_cast<size_t>(n * kKvBlockPositions);
      const std::vector<float> scores =
          round % 3 == 0 ? random.WildFloats(size) : random.Floats(size, 100.0f);
      const std::vector<float> before = random.Floats(2 * static_cast<size_t>(n), 50.0f);
      const auto run = [&](const AttentionKernels& kernels) {
        std::vector<float> all = scores;  // then what became of the states
        std::vector<AttentionState> states;
        for (size_t i = 0; i < before.size(); i += 2) {
          states.push_back({before[i], std::fabs(before[i + 1])});
        }
        std::vector<float> corrections(static_cast<size_t>(n));
        kernels.softmax({all.data(), states.data(), corrections.data(), n, low, high});
        for (const AttentionState& state : states) {
          all.insert(all.end(), {state.largest, state.sum});
        }
        all.insert(all.end(), corrections.begin(), corrections.end());
        return all;
      };
      ASSERT_TRUE(testing::AllSameBits(run(*KernelsFor(isa).attention), run(kAttentionScalar)))
          << NameOf(isa) << ", round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionTest, ::testing::ValuesIn(kAllKvTypes),
                         [](const auto& test) { return std::string(NameOf(test.param)); });

TEST(KvType, NamesAreFoundAgain) {
  for (const KvType type : kAllKvTypes) {
    EXPECT_EQ(FindKvType(NameOf(type)), type);
  }
  EXPECT_EQ(FindKvType("q4_0"), std::nullopt);
}

TEST(KvHalfBlockBytes, CountsValuesAndScales) {
  const KvShape shape = {2, 64};
  EXPECT_EQ(KvHalfBlockBytes(KvType::kF32, shape), 2u * 64 * 32 * 4);
  EXPECT_EQ(KvHalfBlockBytes(KvType::kF16, shape), 2u * 64 * 32 * 2);
  EXPECT_EQ(KvHalfBlockBytes(KvType::kBf16, shape), 2u * 64 * 32 * 2);
  EXPECT_EQ(KvHalfBlockBytes(KvType::kQ8_0, shape), 2u * 32 * (64 + 2 * 2));
}

}  // namespace
}  // namespace facet
