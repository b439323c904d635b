// SPDX-License-Identifier: Apache-2.0
#include "quant/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "format/safetensors.h"
#include "quant/codec.h"
#include "support/testing.h"

namespace facet {
namespace {

using T = TensorType;

struct Encoder {
  T type;
  void (*encode)(const float* values, const float* importance, int64_t n, std::byte* blocks);
};

constexpr Encoder kEncoders[] = {
    {T::kQ8_0, EncodeQ8_0},   {T::kQ4_0, EncodeQ4_0},     {T::kQ4_1, EncodeQ4_1},
    {T::kQ5_0, EncodeQ5_0},   {T::kQ5_1, EncodeQ5_1},     {T::kQ2_K, EncodeQ2_K},
    {T::kQ3_K, EncodeQ3_K},   {T::kQ4_K, EncodeQ4_K},     {T::kQ5_K, EncodeQ5_K},
    {T::kQ6_K, EncodeQ6_K},   {T::kIQ4_NL, EncodeIQ4_NL}, {T::kIQ4_XS, EncodeIQ4_XS},
    {T::kMXFP4, EncodeMXFP4},
};

std::vector<float> Golden(const std::string& name) {
  auto file = safetensors::File::Open(testing::TestdataPath("text/quant/values.safetensors"));
  EXPECT_TRUE(file.ok());
  const auto* view = file.ok() ? file->Find(name) : nullptr;
  EXPECT_NE(view, nullptr) << name;
  if (view == nullptr) {
    return {};
  }
  std::vector<float> values(view->data.size() / sizeof(float));
  std::memcpy(values.data(), view->data.data(), values.size() * sizeof(float));
  return values;
}

// A sum of uniform numbers: near to normal, standard deviation 1.
std::vector<float> RandomValues(size_t n, uint64_t seed) {
  std::vector<float> values(n);
  for (size_t k = 0; k < n; ++k) {
    float sum = 0.0f;
    for (uint64_t i = 0; i < 12; ++i) {
      sum += static_cast<float>(RandomBits(seed + i, k) % 65536) / 65536.0f - 0.5f;
    }
    values[k] = sum;
  }
  return values;
}

// From 2^-6 to 2^6, and some zeros.
std::vector<float> RandomImportance(size_t n, uint64_t seed) {
  std::vector<float> importance(n);
  for (size_t k = 0; k < n; ++k) {
    const uint64_t bits = RandomBits(seed, k);
    importance[k] = bits % 16 == 0 ? 0.0f : std::exp2(static_cast<float>(bits / 16 % 13) - 6.0f);
  }
  return importance;
}

class EncodeTest : public ::testing::TestWithParam<Encoder> {
 protected:
  std::vector<std::byte> Encode(const std::vector<float>& values,
                                const std::vector<float>& importance = {}) const {
    const auto n = static_cast<int64_t>(values.size());
    std::vector<std::byte> blocks(static_cast<size_t>(BytesOf(GetParam().type, n)));
    GetParam().encode(values.data(), importance.empty() ? nullptr : importance.data(), n,
                      blocks.data());
    return blocks;
  }

  std::vector<float> Decode(const std::vector<std::byte>& blocks, size_t n) const {
    std::vector<float> values(n);
    FindCodec(GetParam().type)->decode(blocks.data(), static_cast<int64_t>(n), values.data());
    return values;
  }

  std::vector<float> Stored(const std::vector<float>& values,
                            const std::vector<float>& importance = {}) const {
    return Decode(Encode(values, importance), values.size());
  }
};

double SquaredError(const std::vector<float>& values, const std::vector<float>& stored,
                    const std::vector<float>& importance = {}) {
  double sum = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    const double weight = importance.empty() ? 1.0 : importance[k];
    sum += weight * std::pow(static_cast<double>(values[k]) - stored[k], 2);
  }
  return sum;
}

TEST_P(EncodeTest, IsTheEncoderOfTheCodec) {
  EXPECT_EQ(FindCodec(GetParam().type)->encode, GetParam().encode);
}

TEST_P(EncodeTest, ErrsNoMoreThanGgml) {
  const std::vector<float> source = Golden("source");
  const std::vector<float> ggml = Golden(std::string(InfoOf(GetParam().type).name));
  EXPECT_LE(SquaredError(source, Stored(source)), SquaredError(source, ggml));
}

// A bit more of storage takes three quarters off the error, from about that of one bit on.
TEST_P(EncodeTest, ErrsLittleOnNormalValues) {
  const std::vector<float> values = RandomValues(16 * 256, 7);
  const double bits =
      8.0 * InfoOf(GetParam().type).block_bytes / InfoOf(GetParam().type).block_elements;
  const double mean = SquaredError(values, Stored(values)) / static_cast<double>(values.size());
  EXPECT_LT(mean, 4.0 * std::exp2(-2.0 * (bits - 0.5)));
}

TEST_P(EncodeTest, ErrsLessWhereItMatters) {
  const std::vector<float> values = RandomValues(16 * 256, 1);
  const std::vector<float> importance = RandomImportance(values.size(), 2);
  const double with = SquaredError(values, Stored(values, importance), importance);
  const double without = SquaredError(values, Stored(values), importance);
  if (GetParam().type == T::kQ8_0) {
    EXPECT_EQ(with, without);
  } else {
    EXPECT_LT(with, 0.97 * without);
  }
}

// Importance is relative, block by block; without any it is as if it were the same everywhere.
TEST_P(EncodeTest, TakesAnyImportance) {
  const std::vector<float> values = RandomValues(2 * 256, 3);
  const std::vector<float> ones(values.size(), 1.0f);
  const std::vector<std::byte> alike = Encode(values, ones);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float same : {0.0f, 1e-40f, 0.5f, 0x1p119f, inf, std::nanf(""), -1.0f}) {
    const std::vector<float> importance(values.size(), same);
    EXPECT_EQ(Encode(values, importance), alike) << same;
  }
  std::vector<float> importance(values.size(), 0.0f);
  importance[5] = 1.0f;  // one value matters: it is stored almost exactly, and the others not lost
  const std::vector<float> stored = Stored(values, importance);
  const bool has_power_of_two = GetParam().type == T::kMXFP4;
  EXPECT_NEAR(stored[5], values[5], has_power_of_two ? 0.25f : 0.02f);
  EXPECT_LT(SquaredError(values, stored), SquaredError(values, std::vector<float>(512, 0.0f)));
}

TEST_P(EncodeTest, KeepsZeros) {
  const std::vector<float> zeros(2 * 256, 0.0f);
  EXPECT_EQ(Stored(zeros), zeros);
  EXPECT_EQ(Stored(zeros, RandomImportance(zeros.size(), 1)), zeros);
}

TEST_P(EncodeTest, TakesAnyValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> importance = RandomImportance(3 * 256, 4);
  for (const float extreme : {inf, -inf, std::nanf(""), 3.4e38f, -3.4e38f, 7e4f, 1e-45f, 1e-38f}) {
    std::vector<float> values(3 * 256, 0.0f);  // the last block stays zero
    values[1] = extreme;
    values[40] = -extreme;
    values[41] = 1.0f;
    for (size_t k = 256; k < 512; ++k) {
      values[k] = extreme;
    }
    EXPECT_EQ(Stored(values)[600], 0.0f) << extreme;
    EXPECT_EQ(Stored(values, importance)[600], 0.0f) << extreme;
  }
}

// Each block is a function of its own values and nothing else.
TEST_P(EncodeTest, DoesNotDependOnNeighbours) {
  const std::vector<float> values = RandomValues(4 * 256, 5);
  const std::vector<float> importance = RandomImportance(values.size(), 6);
  const std::vector<std::byte> together = Encode(values, importance);
  std::vector<std::byte> apart;
  for (size_t k = 0; k < values.size(); k += 256) {
    const auto at = static_cast<std::ptrdiff_t>(k);
    const std::vector<std::byte> part =
        Encode({values.begin() + at, values.begin() + at + 256},
               {importance.begin() + at, importance.begin() + at + 256});
    apart.insert(apart.end(), part.begin(), part.end());
  }
  EXPECT_EQ(together, apart);
}

// Values far above zero with a small spread: a type with an offset stores them as well as centred
// ones.
TEST(EncodeAffine, UsesTheOffset) {
  std::vector<float> values = RandomValues(16 * 256, 8);
  for (float& value : values) {
    value = 0.1f * value + 1.0f;
  }
  for (const Encoder& encoder : kEncoders) {
    const bool has_minimum = encoder.type == T::kQ4_K || encoder.type == T::kQ5_K ||
                             encoder.type == T::kQ4_1 || encoder.type == T::kQ5_1;
    if (!has_minimum) {
      continue;
    }
    const auto n = static_cast<int64_t>(values.size());
    std::vector<std::byte> blocks(static_cast<size_t>(BytesOf(encoder.type, n)));
    encoder.encode(values.data(), nullptr, n, blocks.data());
    std::vector<float> stored(values.size());
    FindCodec(encoder.type)->decode(blocks.data(), n, stored.data());
    const double mean = SquaredError(values, stored) / static_cast<double>(n);
    EXPECT_LT(mean, 1e-4) << InfoOf(encoder.type).name;  // of a variance of 1e-2
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EncodeTest, ::testing::ValuesIn(kEncoders), [](const auto& test) {
  return std::string(InfoOf(test.param.type).name);
});

}  // namespace
}  // namespace facet
