// SPDX-License-Identifier: Apache-2.0
#include "compute/ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compute/kernel_testing.h"

namespace facet {
namespace {

using testing::RandomStream;
using testing::TestContext;

// Runs an operation with the scalar set on one thread and with every other set on 1, 2 and 3
// threads.
void ExpectSameEverywhere(
    const std::function<std::vector<float>(const ComputeContext& context)>& run) {
  const TestContext scalar(Isa::kScalar, 1);
  const std::vector<float> wanted = run(*scalar);
  for (const Isa isa : SupportedIsas()) {
    for (const int n_threads : {1, 2, 3}) {
      const TestContext context(isa, n_threads);
      EXPECT_TRUE(testing::AllSameBits(run(*context), wanted))
          << NameOf(isa) << ", " << n_threads << " threads, " << wanted.size() << " values";
    }
  }
}

// Rows of n values, tame ones and wild ones.
template <typename Body>
void ForEachShape(const Body& body) {
  RandomStream random(1);
  for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 40, 100, 1536}) {
    for (const int64_t n_rows : {1, 3, 20}) {
      const auto size = static_cast<size_t>(n_rows * n);
      body(n_rows, n, random.Floats(size, 5.0f), random.Floats(size, 5.0f));
      body(n_rows, n, random.WildFloats(size), random.WildFloats(size));
    }
  }
}

using Floats = std::vector<float>;

TEST(RmsNorm, EverySetGivesTheScalarBits) {
  ForEachShape([](int64_t n_rows, int64_t n, const Floats& x, const Floats& weight) {
    for (const float* w : {weight.data(), static_cast<const float*>(nullptr)}) {
      ExpectSameEverywhere([&](const ComputeContext& context) {
        Floats y = x;
        RmsNorm(context, y.data(), {w, 1e-6f}, n_rows, n, y.data());
        return y;
      });
    }
  });
}

TEST(RmsNorm, IsNearTheFormula) {
  RandomStream random(2);
  const TestContext scalar(Isa::kScalar, 1);
  const int64_t n = 1001;
  const Floats x = random.Floats(n, 3.0f);
  const Floats weight = random.Floats(n, 2.0f);
  Floats y(n);
  RmsNorm(*scalar, x.data(), {weight.data(), 1e-6f}, 1, n, y.data());
  double sum = 0.0;
  for (const float value : x) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  const double root = std::sqrt(sum / static_cast<double>(n) + 1e-6);
  for (size_t k = 0; k < y.size(); ++k) {
    const double exact = static_cast<double>(x[k]) / root * static_cast<double>(weight[k]);
    EXPECT_NEAR(static_cast<double>(y[k]), exact, 5e-7 * std::fabs(exact));
  }
}

TEST(LayerNorm, EverySetGivesTheScalarBits) {
  ForEachShape([](int64_t n_rows, int64_t n, const Floats& x, const Floats& weight) {
    for (const float* bias : {weight.data(), static_cast<const float*>(nullptr)}) {
      ExpectSameEverywhere([&](const ComputeContext& context) {
        Floats y = x;
        LayerNorm(context, y.data(), {weight.data(), bias, 1e-6f}, n_rows, n, y.data());
        return y;
      });
    }
  });
}

TEST(LayerNorm, IsNearTheFormula) {
  RandomStream random(6);
  const TestContext scalar(Isa::kScalar, 1);
  const int64_t n = 1001;
  Floats x = random.Floats(n, 3.0f);
  for (float& value : x) {
    value += 10.0f;
  }
  const Floats weight = random.Floats(n, 2.0f);
  const Floats bias = random.Floats(n, 1.0f);
  Floats y(n);
  LayerNorm(*scalar, x.data(), {weight.data(), bias.data(), 1e-5f}, 1, n, y.data());
  double sum = 0.0;
  double squares = 0.0;
  for (const float value : x) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const double mean = sum / static_cast<double>(n);
  const double root = std::sqrt(squares / static_cast<double>(n) - mean * mean + 1e-5);
  for (size_t k = 0; k < y.size(); ++k) {
    const double exact =
        (static_cast<double>(x[k]) - mean) / root * static_cast<double>(weight[k]) +
        static_cast<double>(bias[k]);
    EXPECT_NEAR(static_cast<double>(y[k]), exact, 5e-6);
  }
}

TEST(Clamp, EverySetGivesTheScalarBits) {
  ForEachShape([](int64_t, int64_t, const Floats& x, const Floats&) {
    ExpectSameEverywhere([&](const ComputeContext& context) {
      Floats y = x;
      Clamp(context, y.data(), {0.0f, 2.5f}, static_cast<int64_t>(y.size()), y.data());
      return y;
    });
  });
}

TEST(Clamp, KnownValues) {
  const TestContext scalar(Isa::kScalar, 1);
  const Floats x = {-3.0f, -1.0f, 0.5f, 2.0f, 7.0f, RandomStream::kNaN};
  Floats y(6);
  Clamp(*scalar, x.data(), {-1.0f, 2.0f}, 6, y.data());
  const Floats wanted = {-1.0f, -1.0f, 0.5f, 2.0f, 2.0f, RandomStream::kNaN};
  EXPECT_TRUE(testing::AllSameBits(y, wanted));
}

TEST(GeluMul, EverySetGivesTheScalarBits) {
  ForEachShape([](int64_t, int64_t, const Floats& gate, const Floats& up) {
    ExpectSameEverywhere([&](const ComputeContext& context) {
      Floats out = gate;
      GeluMul(context, out.data(), up.data(), static_cast<int64_t>(out.size()), out.data());
      return out;
    });
  });
}

TEST(GeluMul, KnownValues) {
  const TestContext scalar(Isa::kScalar, 1);
  const Floats gate = {0.0f, 1.0f, -1.0f, 3.0f, 20.0f, -20.0f};
  const Floats up = {7.0f, 2.0f, 2.0f, 1.0f, 0.5f, 1.0f};
  Floats out(6);
  GeluMul(*scalar, gate.data(), up.data(), 6, out.data());
  const double wanted[] = {0.0, 2 * 0.8411919906, -2 * 0.1588080094, 2.9963627, 10.0, 0.0};
  for (size_t k = 0; k < out.size(); ++k) {
    EXPECT_NEAR(static_cast<double>(out[k]), wanted[k], 1e-6);
  }
}

TEST(SigmoidMul, EverySetGivesTheScalarBits) {
  ForEachShape([](int64_t, int64_t, const Floats& gate, const Floats& up) {
    ExpectSameEverywhere([&](const ComputeContext& context) {
      Floats out = gate;
      SigmoidMul(context, out.data(), up.data(), static_cast<int64_t>(out.size()), out.data());
      return out;
    });
  });
}

TEST(SigmoidMul, KnownValues) {
  const TestContext scalar(Isa::kScalar, 1);
  const Floats gate = {0.0f, 1.0f, -1.0f, 200.0f, -200.0f};
  const Floats up = {7.0f, 2.0f, 2.0f, 0.5f, 3.0f};
  Floats out(5);
  SigmoidMul(*scalar, gate.data(), up.data(), 5, out.data());
  const double wanted[] = {3.5, 2 * 0.7310585786, 2 * 0.2689414214, 0.5, 0.0};
  for (size_t k = 0; k < out.size(); ++k) {
    EXPECT_NEAR(static_cast<double>(out[k]), wanted[k], 2e-7);
  }
}

TEST(Elementwise, EverySetGivesTheScalarBits) {
  ForEachShape([](int64_t, int64_t, const Floats& a, const Floats& b) {
    const auto n = static_cast<int64_t>(a.size());
    ExpectSameEverywhere([&](const ComputeContext& context) {
      Floats x = a;
      Add(context, b.data(), n, x.data());
      return x;
    });
    ExpectSameEverywhere([&](const ComputeContext& context) {
      Floats x = a;
      Scale(context, 0.7f, n, x.data());
      return x;
    });
    ExpectSameEverywhere([&](const ComputeContext& context) {
      Floats out = b;
      AddScale(context, a.data(), out.data(), 0.7f, n, out.data());
      return out;
    });
    ExpectSameEverywhere([&](const ComputeContext& context) {
      Floats x = a;
      Softcap(context, 30.0f, n, x.data());
      return x;
    });
  });
}

TEST(Elementwise, KnownValues) {
  const TestContext scalar(Isa::kScalar, 1);
  const Floats a = {1.0f, -2.0f, 60.0f};
  const Floats b = {0.5f, 4.0f, -0.0f};
  Floats x = a;
  Add(*scalar, b.data(), 3, x.data());
  EXPECT_EQ(x, (Floats{1.5f, 2.0f, 60.0f}));
  Scale(*scalar, 2.0f, 3, x.data());
  EXPECT_EQ(x, (Floats{3.0f, 4.0f, 120.0f}));
  AddScale(*scalar, a.data(), b.data(), -0.5f, 3, x.data());
  EXPECT_EQ(x, (Floats{-0.75f, -1.0f, -30.0f}));
  x = a;
  Softcap(*scalar, 30.0f, 3, x.data());
  for (size_t k = 0; k < x.size(); ++k) {
    const double exact = 30.0 * std::tanh(static_cast<double>(a[k]) / 30.0);
    EXPECT_NEAR(static_cast<double>(x[k]), exact, 3e-7 * std::fabs(exact));
  }
}

TEST(Softmax, EverySetGivesTheScalarBits) {
  ForEachShape([](int64_t n_rows, int64_t n, const Floats& x, const Floats&) {
    ExpectSameEverywhere([&](const ComputeContext& context) {
      Floats p = x;
      Softmax(context, p.data(), n_rows, n, p.data());
      return p;
    });
  });
}

TEST(Softmax, IsNearTheFormulaAndGivesZeroToMinusInfinity) {
  RandomStream random(3);
  const int64_t n = 777;
  Floats x = random.Floats(n, 20.0f);
  x[5] = -std::numeric_limits<float>::infinity();
  double sum = 0.0;
  for (const float value : x) {
    sum += std::exp(static_cast<double>(value));
  }
  for (const Isa isa : SupportedIsas()) {
    const TestContext context(isa, 1);
    Floats p(n);
    Softmax(*context, x.data(), 1, n, p.data());
    EXPECT_EQ(p[5], 0.0f);
    for (size_t k = 0; k < p.size(); ++k) {
      // The difference to the largest value is rounded to float before exp: up to 2^-19 of 40.
      const double exact = std::exp(static_cast<double>(x[k])) / sum;
      EXPECT_NEAR(static_cast<double>(p[k]), exact, 3e-6 * exact + 1e-45);
    }
  }
}

TEST(Rope, EverySetGivesTheScalarBits) {
  RandomStream random(4);
  const TestContext scalar(Isa::kScalar, 1);
  for (const int d_head : {2, 6, 32, 64, 256, 512}) {
    for (const int n_pairs : {1, d_head / 8, d_head / 2}) {
      Floats frequency(static_cast<size_t>(n_pairs));
      for (size_t i = 0; i < frequency.size(); ++i) {
        frequency[i] =
            std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(d_head));
      }
      const RopeTable table = MakeRopeTable(*scalar, frequency, {0, 1, 77, 131071});
      const Floats x = random.Floats(static_cast<size_t>(4 * 3 * d_head), 4.0f);
      ExpectSameEverywhere([&](const ComputeContext& context) {
        Floats y = x;
        Rope(context, table, 4, 3, d_head, y.data());
        return y;
      });
    }
  }
}

TEST(Rope, TableIsTheSameWithAnyThreads) {
  const std::vector<float> frequency = {1.0f, 0.3f, 0.01f};
  std::vector<int32_t> positions(100);
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i] = static_cast<int32_t>(37 * i);
  }
  const TestContext one(Isa::kScalar, 1);
  const TestContext three(Isa::kScalar, 3);
  const RopeTable wanted = MakeRopeTable(*one, frequency, positions);
  const RopeTable found = MakeRopeTable(*three, frequency, positions);
  EXPECT_EQ(found.cosine, wanted.cosine);
  EXPECT_EQ(found.sine, wanted.sine);
}

TEST(AddWeightedRows, AddsToTheNamedRowsOnly) {
  RandomStream random(5);
  const int64_t n = 1100;
  const std::vector<int64_t> rows = {2, 3, 0};
  const Floats weights = {0.25f, 9, -3.0f, 9, 0.1f, 9, 0.7f, 9};  // every second one counts
  const Floats y = random.Floats(static_cast<size_t>(3 * n), 1.0f);
  const Floats x = random.Floats(static_cast<size_t>(4 * n), 1.0f);
  Floats wanted = x;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < static_cast<size_t>(n); ++k) {
      const auto row = static_cast<size_t>(rows[i]);
      const float product = y[i * n + k] * weights[2 * row];
      wanted[row * n + k] += product;
    }
  }
  for (const Isa isa : SupportedIsas()) {
    const TestContext context(isa, 2);
    Floats found = x;
    Floats scratch = y;
    AddWeightedRows(*context, scratch.data(), rows, {weights.data(), 2}, n, found.data());
    EXPECT_TRUE(testing::AllSameBits(found, wanted)) << NameOf(isa);
  }
}

TEST(Rope, TurnsPairsByTheAngle) {
  const TestContext scalar(Isa::kScalar, 1);
  const RopeTable table = MakeRopeTable(*scalar, {1.0f, 0.01f}, {0, 3});
  EXPECT_EQ(table.n_pairs, 2);
  ASSERT_EQ(table.cosine.size(), 4u);
  EXPECT_EQ(table.cosine[0], 1.0f);
  EXPECT_EQ(table.sine[1], 0.0f);
  EXPECT_FLOAT_EQ(table.cosine[2], std::cos(3.0f));
  EXPECT_FLOAT_EQ(table.sine[3], std::sin(0.03f));
  // d_head 6: pairs (0, 3) and (1, 4) turn, (2, 5) stays.
  Floats x = {9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6};
  Rope(*scalar, table, 2, 1, 6, x.data());
  const double c0 = std::cos(3.0);
  const double s0 = std::sin(3.0);
  const double c1 = std::cos(0.03);
  const double s1 = std::sin(0.03);
  const double wanted[] = {c0 - 4 * s0, 2 * c1 - 5 * s1, 3, 4 * c0 + s0, 5 * c1 + 2 * s1, 6};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(x[i], 9.0f);
    EXPECT_NEAR(static_cast<double>(x[6 + i]), wanted[i], 1e-6);
  }
}

}  // namespace
}  // namespace facet
