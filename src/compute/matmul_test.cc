// SPDX-License-Identifier: Apache-2.0
#include "compute/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compute/kernel_testing.h"
#include "compute/packed_weights.h"
#include "quant/codec.h"

namespace facet {
namespace {

using testing::RandomStream;
using testing::TestContext;

using T = TensorType;

constexpr T kFloatTypes[] = {T::kF32, T::kF16, T::kBF16};
constexpr T kIntegerTypes[] = {
    T::kQ8_0,  T::kQ4_0,    T::kQ4_1,   T::kQ5_0,   T::kQ5_1,    T::kQ2_K,  T::kQ3_K,  T::kQ4_K,
    T::kQ5_K,  T::kQ6_K,    T::kIQ4_NL, T::kIQ4_XS, T::kMXFP4,   T::kNVFP4, T::kTQ1_0, T::kTQ2_0,
    T::kIQ3_S, T::kIQ3_XXS, T::kIQ2_S,  T::kIQ2_XS, T::kIQ2_XXS, T::kIQ1_S, T::kIQ1_M};

constexpr T kPackedTypes[] = {T::kQ4_0, T::kQ4_1, T::kQ5_0,   T::kQ5_1,   T::kQ8_0, T::kQ4_K,
                              T::kQ5_K, T::kQ6_K, T::kIQ4_NL, T::kIQ4_XS, T::kMXFP4};

bool IsFloatType(TensorType type) { return InfoOf(type).block_elements == 1; }

// Weights that own their bytes.
struct Weights {
  Weights(TensorType type, int64_t n_out, int64_t n_in)
      : bytes(static_cast<size_t>(n_out * BytesOf(type, n_in))),
        matrix{type, n_out, n_in, bytes.data()} {}
  std::vector<std::byte> bytes;
  WeightMatrix matrix;
};

// Where the float16 scales of a block stand.
std::vector<size_t> ScalePlaces(TensorType type) {
  switch (type) {
    case T::kQ4_1:
    case T::kQ5_1:
    case T::kQ4_K:
    case T::kQ5_K:
      return {0, 2};
    case T::kQ2_K:
      return {80, 82};
    case T::kQ3_K:
      return {108};
    case T::kQ6_K:
      return {208};
    case T::kTQ1_0:
      return {52};
    case T::kTQ2_0:
      return {64};
    case T::kMXFP4:  // an exponent
    case T::kNVFP4:  // bytes, of which none is infinite
    case T::kIQ1_M:  // nibbles in four places
      return {};
    default:
      return {0};
  }
}

// Gives the scales of a block the value `scale`, or a power of two near it.
void SetScales(TensorType type, float scale, std::byte* block) {
  std::byte half[2];
  FindCodec(T::kF16)->encode(&scale, nullptr, 1, half);
  for (const size_t place : ScalePlaces(type)) {
    std::copy_n(half, 2, block + place);
  }
  if (type == T::kMXFP4) {
    block[0] = static_cast<std::byte>(127 + std::ilogb(scale));
  }
  for (size_t i = 0; type == T::kIQ1_M && i < 4; ++i) {
    const auto nibble = (static_cast<unsigned>(half[i / 2]) >> (4 * (i % 2))) & 15;
    std::byte& high = block[49 + 2 * i];
    high = static_cast<std::byte>((static_cast<unsigned>(high) & 15) | nibble << 4);
  }
}

// Any bytes; `are_tame` gives every scale and float a size at which nothing overflows.
Weights RandomWeights(TensorType type, int64_t n_out, int64_t n_in, bool are_tame,
                      RandomStream& random) {
  Weights w(type, n_out, n_in);
  for (std::byte& byte : w.bytes) {
    byte = static_cast<std::byte>(random.Bits());
  }
  if (!are_tame) {
    return w;
  }
  if (IsFloatType(type)) {
    const std::vector<float> values = random.Floats(static_cast<size_t>(n_out * n_in), 1.0f);
    FindCodec(type)->encode(values.data(), nullptr, n_out * n_in, w.bytes.data());
    return w;
  }
  const auto block_bytes = static_cast<size_t>(InfoOf(type).block_bytes);
  for (size_t block = 0; block < w.bytes.size(); block += block_bytes) {
    SetScales(type, random.Uniform(0.001f, 0.01f), w.bytes.data() + block);
  }
  return w;
}

// The groups of 16 rows; empty where the type has no such layout.
std::vector<std::byte> Packed(const WeightMatrix& w) {
  std::vector<std::byte> groups(static_cast<size_t>(PackedBytes(w)));
  for (int64_t group = 0; !groups.empty() && group * kPackedRows < w.n_out; ++group) {
    PackGroup(w, group, groups.data() + group * PackedGroupBytes(w.type, w.n_in));
  }
  return groups;
}

std::vector<float> Product(const ComputeContext& context, const WeightMatrix& w,
                           const std::vector<float>& x) {
  const int64_t n_rows = static_cast<int64_t>(x.size()) / w.n_in;
  Activations activations;
  activations.Set(x.data(), n_rows, w.n_in);
  std::vector<float> y(static_cast<size_t>(n_rows * w.n_out));
  MatMul(context, w, activations, y.data());
  return y;
}

class MatMulTest : public ::testing::TestWithParam<TensorType> {
 protected:
  // The scalar result equals that of every set and number of threads.
  void ExpectSameEverywhere(const Weights& w, const std::vector<float>& x) {
    const TestContext scalar(Isa::kScalar, 1);
    const std::vector<float> wanted = Product(*scalar, w.matrix, x);
    const std::vector<std::byte> groups = Packed(w.matrix);
    WeightMatrix packed = w.matrix;
    packed.packed = groups.empty() ? nullptr : groups.data();
    for (const Isa isa : SupportedIsas()) {
      for (const auto& [n_threads, context] : contexts_[static_cast<size_t>(isa)]) {
        for (const WeightMatrix* matrix : {&w.matrix, static_cast<const WeightMatrix*>(&packed)}) {
          EXPECT_TRUE(testing::AllSameBits(Product(**context, *matrix, x), wanted))
              << NameOf(isa) << ", " << n_threads << " threads, n_out " << matrix->n_out
              << ", n_in " << matrix->n_in << ", n_rows "
              << static_cast<int64_t>(x.size()) / matrix->n_in
              << (matrix->packed != nullptr ? ", packed" : "");
        }
      }
    }
  }

  void SetUp() override {
    for (const Isa isa : SupportedIsas()) {
      for (const int n_threads : {1, 2, 3}) {
        if (isa != Isa::kScalar || n_threads == 2) {
          contexts_[static_cast<size_t>(isa)].emplace_back(
              n_threads, std::make_unique<TestContext>(isa, n_threads));
        }
      }
    }
  }

  [[nodiscard]] std::vector<int64_t> InnerSizes() const {
    switch (InfoOf(GetParam()).block_elements) {
      case 1:
        return {1, 7, 16, 32, 33, 47, 100, 1031};
      case 32:
        return {32, 64, 96, 512, 2048};
      case 64:
        return {64, 128, 192, 512, 2048};
      default:
        return {256, 512, 2048};
    }
  }

  std::vector<std::pair<int, std::unique_ptr<TestContext>>> contexts_[6];
};

TEST_P(MatMulTest, EverySetGivesTheScalarBits) {
  RandomStream random(1);
  for (const int64_t n_in : InnerSizes()) {
    for (const int64_t n_out : {1, 2, 7, 8, 9, 17, 31, 70}) {
      const Weights w = RandomWeights(GetParam(), n_out, n_in, true, random);
      for (const int64_t n_rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33}) {
        if (n_rows > 5 && n_in > 600) {
          continue;
        }
        ExpectSameEverywhere(w, random.Floats(static_cast<size_t>(n_rows * n_in), 3.0f));
      }
    }
  }
}

TEST_P(MatMulTest, WildWeightsAndInputsGiveTheScalarBits) {
  RandomStream random(2);
  for (int round = 0; round < 20; ++round) {
    const Weights w = RandomWeights(GetParam(), 19, 512, false, random);
    ExpectSameEverywhere(w, random.WildFloats(512));
    ExpectSameEverywhere(w, random.WildFloats(6 * 512));
    ExpectSameEverywhere(w, random.Floats(7 * 512, 1e-41f));  // subnormal
    ExpectSameEverywhere(w, std::vector<float>(3 * 512, 0.0f));
  }
}

class IntegerMatMulTest : public MatMulTest {};

// The largest sums that a block can give: all weights and all activations at an end of their range.
TEST_P(IntegerMatMulTest, NothingSaturates) {
  const TensorType type = GetParam();
  for (const int fill : {0x00, 0x7f, 0x80, 0x81, 0xff}) {
    Weights w(type, 17, 512);
    std::fill(w.bytes.begin(), w.bytes.end(), static_cast<std::byte>(fill));
    const auto block_bytes = static_cast<size_t>(InfoOf(type).block_bytes);
    for (size_t block = 0; block < w.bytes.size(); block += block_bytes) {
      SetScales(type, 1.0f, w.bytes.data() + block);
    }
    for (const float value : {1.0f, -1.0f}) {
      for (const size_t n_rows : {1u, 2u, 7u}) {
        std::vector<float> x(n_rows * 512, value);
        ExpectSameEverywhere(w, x);
        for (size_t k = 0; k < x.size(); k += 2) {
          x[k] = -value;
        }
        ExpectSameEverywhere(w, x);
      }
    }
  }
}

class PackedMatMulTest : public MatMulTest {};

// More rows than a kernel takes at once, and more bytes of activations than it keeps in a cache.
TEST_P(PackedMatMulTest, ChunksOfRowsGiveTheScalarBits) {
  RandomStream random(9);
  const Weights w = RandomWeights(GetParam(), 17, 256, true, random);
  const Weights long_rows = RandomWeights(GetParam(), 17, 8192, true, random);
  for (const size_t n_rows : {64u, 66u, 131u}) {
    ExpectSameEverywhere(w, random.Floats(n_rows * 256, 3.0f));
  }
  ExpectSameEverywhere(long_rows, random.Floats(45 * size_t{8192}, 3.0f));
}

// The kernel that goes through the codec, also for types that have another.
TEST_P(IntegerMatMulTest, TheKernelOfAnyTypeGivesTheScalarBits) {
  RandomStream random(7);
  const TestContext scalar(Isa::kScalar, 1);
  for (const Isa isa : testing::VectorIsas()) {
    Kernels kernels = KernelsFor(isa);
    const MatMulKernels any_type = {kernels.matmul->f32, kernels.matmul->f16, kernels.matmul->bf16,
                                    kernels.matmul->unpacked, kernels.matmul->quantize};
    kernels.matmul = &any_type;
    ThreadPool pool(2);
    const ComputeContext context = {&kernels, &pool};
    for (const int64_t n_out : {1, 8, 19}) {
      for (const bool is_tame : {true, false}) {
        const Weights w = RandomWeights(GetParam(), n_out, 768, is_tame, random);
        for (const size_t n_rows : {1u, 2u, 7u}) {
          const std::vector<float> x = random.Floats(n_rows * 768, 3.0f);
          EXPECT_TRUE(
              testing::AllSameBits(Product(context, w.matrix, x), Product(*scalar, w.matrix, x)))
              << NameOf(isa) << ", n_out " << n_out << ", n_rows " << n_rows;
        }
      }
    }
  }
}

// The chain against the sum in double of the same decoded weights and (for integer types) quantised
// activations. The bound is that of a float sum: 2^-24 of the sum of magnitudes for each of its
// steps.
TEST_P(MatMulTest, TheScalarSumIsNearTheExactOne) {
  const TensorType type = GetParam();
  RandomStream random(3);
  const int64_t n_in = 1024;
  const int64_t n_out = 24;
  const int64_t n_rows = 3;
  const Weights w = RandomWeights(type, n_out, n_in, true, random);
  std::vector<float> x = random.Floats(static_cast<size_t>(n_rows * n_in), 2.0f);
  const TestContext scalar(Isa::kScalar, 1);
  const std::vector<float> y = Product(*scalar, w.matrix, x);
  if (!IsFloatType(type)) {
    Activations activations;
    activations.Set(x.data(), n_rows, n_in);
    const QuantizedRows& quantized = activations.Quantized(*scalar);
    std::vector<float> rounded(x.size());
    for (size_t k = 0; k < x.size(); ++k) {
      rounded[k] = static_cast<float>(quantized.values[k]) * quantized.scales[k / 32];
    }
    x = rounded;
  }
  std::vector<float> decoded(static_cast<size_t>(n_out * n_in));
  FindCodec(type)->decode(w.bytes.data(), n_out * n_in, decoded.data());
  for (int64_t row = 0; row < n_rows; ++row) {
    for (int64_t out = 0; out < n_out; ++out) {
      double exact = 0.0;
      double magnitude = 0.0;
      for (int64_t k = 0; k < n_in; ++k) {
        const double product = static_cast<double>(x[static_cast<size_t>(row * n_in + k)]) *
                               static_cast<double>(decoded[static_cast<size_t>(out * n_in + k)]);
        exact += product;
        magnitude += std::fabs(product);
      }
      const double n_steps = static_cast<double>(n_in) / (IsFloatType(type) ? 16 : 8);
      EXPECT_NEAR(static_cast<double>(y[static_cast<size_t>(row * n_out + out)]), exact,
                  0x1p-24 * magnitude * n_steps);
    }
  }
}

std::string TestName(const ::testing::TestParamInfo<TensorType>& test) {
  return std::string(InfoOf(test.param).name);
}

INSTANTIATE_TEST_SUITE_P(Float, MatMulTest, ::testing::ValuesIn(kFloatTypes), TestName);
INSTANTIATE_TEST_SUITE_P(Integer, MatMulTest, ::testing::ValuesIn(kIntegerTypes), TestName);
INSTANTIATE_TEST_SUITE_P(Types, IntegerMatMulTest, ::testing::ValuesIn(kIntegerTypes), TestName);
INSTANTIATE_TEST_SUITE_P(Types, PackedMatMulTest, ::testing::ValuesIn(kPackedTypes), TestName);

TEST(Quantized, RoundsToNearestEvenOfAmaxOver127) {
  const TestContext scalar(Isa::kScalar, 1);
  std::vector<float> x(64, 0.0f);
  x[0] = 127.0f;
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  x[16] = -127.0f;
  Activations activations;
  activations.Set(x.data(), 1, 64);
  const QuantizedRows& quantized = activations.Quantized(*scalar);
  EXPECT_EQ(quantized.scales, (AlignedVector<float>{1.0f, 0.0f}));
  EXPECT_EQ(quantized.values[0], 127);
  EXPECT_EQ(quantized.values[1], 0);
  EXPECT_EQ(quantized.values[2], 2);
  EXPECT_EQ(quantized.values[3], -2);
  EXPECT_EQ(quantized.values[16], -127);
  EXPECT_EQ(quantized.sums, (AlignedVector<int32_t>{0, 0}));
  EXPECT_EQ(quantized.half_sums, (AlignedVector<int16_t>{127, -127, 0, 0}));
}

TEST(Quantized, ErrsByHalfAStep) {
  RandomStream random(4);
  const TestContext scalar(Isa::kScalar, 1);
  const std::vector<float> x = random.Floats(4096, 5.0f);
  Activations activations;
  activations.Set(x.data(), 2, 2048);
  const QuantizedRows& quantized = activations.Quantized(*scalar);
  for (size_t k = 0; k < x.size(); ++k) {
    const float scale = quantized.scales[k / 32];
    const float value = static_cast<float>(quantized.values[k]) * scale;
    EXPECT_LE(std::fabs(value - x[k]), scale * 0.5001f);
  }
}

TEST(Quantized, NotANumberReachesTheScale) {
  for (const Isa isa : SupportedIsas()) {
    const TestContext context(isa, 1);
    std::vector<float> x(32, 1.0f);
    x[5] = RandomStream::kNaN;
    Activations activations;
    activations.Set(x.data(), 1, 32);
    EXPECT_TRUE(std::isnan(activations.Quantized(*context).scales[0])) << NameOf(isa);
  }
}

TEST(Quantized, EverySetGivesTheScalarBits) {
  RandomStream random(5);
  const TestContext scalar(Isa::kScalar, 1);
  for (const Isa isa : testing::VectorIsas()) {
    const TestContext vector(isa, 2);
    for (int round = 0; round < 40; ++round) {
      const std::vector<float> x =
          round % 2 == 0 ? random.WildFloats(33 * 1024)
                         : random.Floats(33 * 1024, std::ldexp(1.0f, 7 * (round - 20)));
      Activations wanted;
      Activations found;
      wanted.Set(x.data(), 33, 1024);
      found.Set(x.data(), 33, 1024);
      const QuantizedRows& a = wanted.Quantized(*scalar);
      const QuantizedRows& b = found.Quantized(*vector);
      EXPECT_EQ(a.values, b.values);
      EXPECT_TRUE(testing::AllSameBits(b.scales, a.scales));
      EXPECT_EQ(a.sums, b.sums);
      EXPECT_EQ(a.half_sums, b.half_sums);
    }
  }
}

TEST(Activations, SetForgetsTheFormerRows) {
  const TestContext context(BestIsa(), 1);
  const std::vector<float> a(32, 1.0f);
  const std::vector<float> b(64, -2.0f);
  Activations activations;
  activations.Set(a.data(), 1, 32);
  EXPECT_EQ(activations.Quantized(*context).sums, (AlignedVector<int32_t>{32 * 127}));
  activations.Set(b.data(), 2, 32);
  EXPECT_EQ(activations.Quantized(*context).sums, (AlignedVector<int32_t>{-32 * 127, -32 * 127}));
}

TEST(Activations, SomeRowsOfOthersAreThoseRows) {
  RandomStream random(8);
  const TestContext context(BestIsa(), 2);
  const std::vector<float> x = random.Floats(5 * 64, 2.0f);
  const std::vector<int64_t> rows = {4, 1, 1};
  std::vector<float> some;
  for (const int64_t row : rows) {
    some.insert(some.end(), x.begin() + 64 * row, x.begin() + 64 * (row + 1));
  }
  for (const TensorType type : {T::kQ4_0, T::kF16}) {
    const Weights w = RandomWeights(type, 9, 64, true, random);
    Activations all;
    Activations chosen;
    all.Set(x.data(), 5, 64);
    chosen.SetRowsOf(&all, rows);
    EXPECT_EQ(chosen.n_rows(), 3);
    std::vector<float> y(3 * 9);
    MatMul(*context, w.matrix, chosen, y.data());
    EXPECT_EQ(y, Product(*context, w.matrix, some));
    EXPECT_TRUE(std::equal(some.begin(), some.end(), chosen.Floats()));
  }
}

TEST(MatMul, TellsTheObserverOfWeightsAndRows) {
  TestContext test(Isa::kScalar, 1);
  ComputeContext context = *test;
  RandomStream random(3);
  const Weights w = RandomWeights(TensorType::kQ8_0, 4, 32, true, random);
  const std::vector<float> x = random.Floats(2 * 32, 1.0f);
  int n_calls = 0;
  const MatMulObserver observer = [&](const WeightMatrix& seen, const float* rows, int64_t n_rows) {
    ++n_calls;
    EXPECT_EQ(seen.data, w.matrix.data);
    EXPECT_EQ(rows, x.data());
    EXPECT_EQ(n_rows, 2);
  };
  context.observer = &observer;
  Activations activations;
  activations.Set(x.data(), 2, 32);
  std::vector<float> y(2 * 4);
  MatMul(context, w.matrix, activations, y.data());
  EXPECT_EQ(n_calls, 1);
}

TEST(MatMul, TheScaleOfTheWeightsMultipliesEveryOutput) {
  RandomStream random(6);
  const Weights w = RandomWeights(T::kNVFP4, 19, 64, true, random);
  const std::vector<float> x = random.Floats(3 * 64, 1.0f);
  for (const Isa isa : SupportedIsas()) {
    const TestContext context(isa, 2);
    std::vector<float> wanted = Product(*context, w.matrix, x);
    for (float& value : wanted) {
      value *= 0.37f;
    }
    WeightMatrix scaled = w.matrix;
    scaled.scale = 0.37f;
    EXPECT_TRUE(testing::AllSameBits(Product(*context, scaled, x), wanted)) << NameOf(isa);
  }
}

TEST(IsMatMulType, KnowsEveryTypeWithACodec) {
  for (const TensorType type : kFloatTypes) {
    EXPECT_TRUE(IsMatMulType(type));
  }
  for (const TensorType type : kIntegerTypes) {
    EXPECT_TRUE(IsMatMulType(type));
  }
  EXPECT_FALSE(IsMatMulType(T::kQ8_1));
  EXPECT_FALSE(IsMatMulType(T::kI32));
}

}  // namespace
}  // namespace facet
