// SPDX-License-Identifier: Apache-2.0
#include "compute/cpu.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <thread>

#include "compute/context.h"
#include "compute/kernels.h"

namespace facet {
namespace {

TEST(Isa, NamesAreFoundAgain) {
  EXPECT_EQ(NameOf(Isa::kScalar), "scalar");
  EXPECT_EQ(NameOf(Isa::kAvx2), "avx2");
  EXPECT_EQ(FindIsa("scalar"), Isa::kScalar);
  EXPECT_EQ(FindIsa("avx2"), Isa::kAvx2);
  EXPECT_EQ(NameOf(Isa::kAvxVnni), "avxvnni");
  EXPECT_EQ(FindIsa("avxvnni"), Isa::kAvxVnni);
  EXPECT_EQ(FindIsa("AVX2"), std::nullopt);
  EXPECT_EQ(FindIsa(""), std::nullopt);
}

TEST(Isa, ScalarIsAlwaysThereAndTheBestIsLast) {
  const std::vector<Isa> isas = SupportedIsas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kScalar);
  EXPECT_EQ(isas.back(), BestIsa());
  // The log of a run tells which sets were compared with the scalar one.
  std::string names;
  for (const Isa isa : isas) {
    names += " " + std::string(NameOf(isa));
  }
  std::printf("instruction sets:%s\n", names.c_str());
}

TEST(KernelsFor, GivesTheTableOfTheSet) {
  for (const Isa isa : SupportedIsas()) {
    EXPECT_EQ(KernelsFor(isa).isa, isa);
  }
}

TEST(DefaultThreads, LiesWithinTheMachine) {
  EXPECT_GE(DefaultThreads(), 1);
  EXPECT_LE(DefaultThreads(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace facet
