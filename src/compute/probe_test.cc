// SPDX-License-Identifier: Apache-2.0
// Rates are of the machine: what is tested is that they are measured, and in proportion.
#include "compute/probe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "compute/cpu.h"
#include "compute/thread_pool.h"

namespace facet {
namespace {

TEST(Probe, ReadsMemoryWithAnyNumberOfThreads) {
  for (const int n_threads : {1, 2, 3}) {
    ThreadPool pool(n_threads);
    for (const size_t n_bytes : {size_t{8}, size_t{4096} + 8, size_t{1} << 20}) {
      const Result<double> rate = MeasureReadRate(&pool, n_bytes, 0);
      ASSERT_TRUE(rate.ok());
      EXPECT_TRUE(std::isfinite(*rate));
      EXPECT_GT(*rate, 0);
    }
  }
}

TEST(Probe, RefusesMoreMemoryThanThereIs) {
  ThreadPool pool(1);
  const Result<double> rate = MeasureReadRate(&pool, SIZE_MAX / 2 + 1, 0);
  ASSERT_FALSE(rate.ok());
  EXPECT_EQ(rate.error().where, "memory to be read");
}

TEST(Probe, MultipliesWithEverySet) {
  ThreadPool pool(2);
  for (const Isa isa : SupportedIsas()) {
    for (const bool is_packed : {false, true}) {
      const double rate = MeasureMultiplyRate({&KernelsFor(isa), &pool}, is_packed, 0);
      EXPECT_TRUE(std::isfinite(rate)) << NameOf(isa);
      EXPECT_GT(rate, 0) << NameOf(isa);
    }
  }
}

TEST(Probe, TakesMemoryInBounds) {
  EXPECT_GE(ProbeBytes(), size_t{1} << 20);
  EXPECT_LE(ProbeBytes(), size_t{1} << 30);
}

}  // namespace
}  // namespace facet
