// SPDX-License-Identifier: Apache-2.0
#include "compute/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "compute/kernel_testing.h"

namespace facet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Distance in units of the last place that a float of the exact value's size has.
double UlpError(float found, double exact) {
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::fabs(static_cast<double>(found) - exact) / std::ldexp(1.0, exponent - 23);
}

// Every 509th float of both signs (8 million).
template <typename Visit>
void Sweep(const Visit& visit) {
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 509) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isfinite(x)) {
      visit(x);
    }
  }
}

TEST(Exp, StaysNearTheExactValue) {
  double worst = 0.0;
  float worst_at = 0.0f;
  Sweep([&](float x) {
    const double exact = std::exp(static_cast<double>(x));
    const float found = math::Exp(x);
    if (exact > 3.4028235677973366e38) {  // the middle between the largest float and the next
      ASSERT_EQ(found, kInfinity) << x;
    } else if (exact >= 0x1p-150) {
      const double error = UlpError(found, exact);
      if (error > worst) {
        worst = error;
        worst_at = x;
      }
    } else {
      ASSERT_LE(found, 0x1p-149f) << x;
    }
  });
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LT(worst, 1.06) << worst_at;  // found: 1.053, at 5.20190287
}

TEST(Exp, KnowsItsLimits) {
  EXPECT_EQ(math::Exp(0.0f), 1.0f);
  EXPECT_EQ(math::Exp(-0.0f), 1.0f);
  EXPECT_EQ(math::Exp(-kInfinity), 0.0f);
  EXPECT_EQ(math::Exp(kInfinity), kInfinity);
  EXPECT_EQ(math::Exp(88.72284f), kInfinity);
  EXPECT_LT(math::Exp(88.72283f), kInfinity);
  EXPECT_EQ(math::Exp(-103.0f), 0x1p-149f);
  EXPECT_EQ(math::Exp(-104.0f), 0.0f);
  EXPECT_TRUE(std::isnan(math::Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Tanh, StaysNearTheExactValue) {
  double worst = 0.0;
  float worst_at = 0.0f;
  Sweep([&](float x) {
    if (x != 0.0f) {
      const double error = UlpError(math::Tanh(x), std::tanh(static_cast<double>(x)));
      if (error > worst) {
        worst = error;
        worst_at = x;
      }
    }
  });
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LT(worst, 1.25) << worst_at;  // found: 1.244, at 0.645920575
}

TEST(Tanh, KnowsItsLimits) {
  EXPECT_TRUE(testing::SameBits(math::Tanh(0.0f), 0.0f));
  EXPECT_TRUE(testing::SameBits(math::Tanh(-0.0f), -0.0f));
  EXPECT_EQ(math::Tanh(kInfinity), 1.0f);
  EXPECT_EQ(math::Tanh(-kInfinity), -1.0f);
  EXPECT_EQ(math::Tanh(1e-45f), 1e-45f);
  EXPECT_EQ(math::Tanh(-20.0f), -1.0f);
  EXPECT_TRUE(std::isnan(math::Tanh(std::numeric_limits<float>::quiet_NaN())));
}

// Against the formula in double. 1 + tanh cancels for negative z, as in every float version: the
// error is absolute.
TEST(GeluTanh, StaysNearTheFormula) {
  for (float z = -12.0f; z <= 12.0f; z += 0.0007f) {
    const auto exact_z = static_cast<double>(z);
    const double inner = std::sqrt(2.0 / 3.14159265358979323846) *
                         (exact_z + 0.044715 * exact_z * exact_z * exact_z);
    const double exact = 0.5 * exact_z * (1.0 + std::tanh(inner));
    EXPECT_NEAR(static_cast<double>(math::GeluTanh(z)), exact,
                2e-7 * std::max(1.0, std::fabs(exact_z)))
        << z;
  }
}

TEST(VectorMath, EveryInstructionSetGivesTheSameBits) {
  for (const Isa isa : testing::VectorIsas()) {
    const RowKernels& rows = *KernelsFor(isa).rows;
    std::vector<float> x;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 4099) {
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    const auto n = static_cast<int64_t>(x.size());
    std::vector<float> wanted(x.size());
    std::vector<float> found(x.size());
    kRowsScalar.exp(x.data(), n, wanted.data());
    rows.exp(x.data(), n, found.data());
    EXPECT_TRUE(testing::AllSameBits(found, wanted)) << NameOf(isa);
    kRowsScalar.tanh(x.data(), n, wanted.data());
    rows.tanh(x.data(), n, found.data());
    EXPECT_TRUE(testing::AllSameBits(found, wanted)) << NameOf(isa);
  }
}

}  // namespace
}  // namespace facet
