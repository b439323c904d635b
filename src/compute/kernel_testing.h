// SPDX-License-Identifier: Apache-2.0
// What the tests of kernels share: random data, contexts, and equality of results. Included by
// tests only.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "compute/context.h"
#include "compute/kernels.h"
#include "compute/thread_pool.h"

namespace facet::testing {

/// A stream of random values; the same seed gives the same values.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : seed_(seed) {}

  uint64_t Bits() { return RandomBits(seed_, counter_++); }
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(RandomUniform(seed_, counter_++));
  }
  std::vector<float> Floats(size_t n, float magnitude) {
    std::vector<float> values(n);
    for (float& value : values) {
      value = Uniform(-magnitude, magnitude);
    }
    return values;
  }
  /// Floats of every size, with zeros of both signs, subnormals, infinities and NaN among them.
  std::vector<float> WildFloats(size_t n) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float special[] = {0.0f,     -0.0f,     1e-45f,     -1e-40f, 3.4e38f,
                             -3.4e38f, kInfinity, -kInfinity, kNaN,    1.0f};
    std::vector<float> values(n);
    for (float& value : values) {
      const uint64_t bits = Bits();
      value = bits % 16 == 0 ? special[(bits >> 8) % std::size(special)]
                             : std::bit_cast<float>(static_cast<uint32_t>(bits >> 32));
    }
    return values;
  }

  static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

 private:
  uint64_t seed_;
  uint64_t counter_ = 0;
};

/// Kernels and threads of one run.
class TestContext {
 public:
  TestContext(Isa isa, int n_threads) : pool_(n_threads), context_{&KernelsFor(isa), &pool_} {}
  const ComputeContext& operator*() const { return context_; }

 private:
  ThreadPool pool_;
  ComputeContext context_;
};

/// Equal bit for bit, or both NaN.
inline bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

inline ::testing::AssertionResult AllSameBits(std::span<const float> found,
                                              std::span<const float> wanted) {
  if (found.size() != wanted.size()) {
    return ::testing::AssertionFailure() << found.size() << " values, wanted " << wanted.size();
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!SameBits(found[i], wanted[i])) {
      return ::testing::AssertionFailure()
             << "value " << i << ": " << found[i] << ", wanted " << wanted[i];
    }
  }
  return ::testing::AssertionSuccess();
}

/// The sets to compare with the scalar one: those that this processor has.
inline std::vector<Isa> VectorIsas() {
  std::vector<Isa> isas = SupportedIsas();
  isas.erase(isas.begin());
  return isas;
}

}  // namespace facet::testing
