// SPDX-License-Identifier: Apache-2.0
#include "model/packing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "compute/kernels.h"
#include "compute/packed_weights.h"
#include "compute/thread_pool.h"
#include "support/testing.h"

namespace facet {
namespace {

const char* const kQuantized = "tiny-gguf/facet-tiny-q8_0.gguf";

/// Whether `w.packed` is what PackGroup makes of the file's bytes.
::testing::AssertionResult IsPacked(const WeightMatrix& w) {
  if (w.packed == nullptr) {
    return ::testing::AssertionFailure() << "not packed";
  }
  const int64_t group_bytes = PackedGroupBytes(w.type, w.n_in);
  std::vector<std::byte> group(static_cast<size_t>(group_bytes));
  for (int64_t g = 0; g * kPackedRows < w.n_out; ++g) {
    PackGroup(w, g, group.data());
    if (std::memcmp(group.data(), w.packed + g * group_bytes, group.size()) != 0) {
      return ::testing::AssertionFailure() << "group " << g << " differs";
    }
  }
  return ::testing::AssertionSuccess();
}

void ExpectAllPacked(const Weights& weights) {
  for (const LayerWeights& layer : weights.layers) {
    for (const WeightMatrix* w : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up,
                                  &layer.down, &layer.ple_gate, &layer.ple_proj}) {
      EXPECT_TRUE(w->data == nullptr || w->type != TensorType::kQ8_0 || IsPacked(*w));
    }
  }
  EXPECT_EQ(weights.output.type, TensorType::kQ8_0);
  EXPECT_TRUE(IsPacked(weights.output));
  EXPECT_EQ(weights.token_embd.packed, nullptr);  // rows are looked up in the file
  EXPECT_EQ(weights.ple_token_embd.packed, nullptr);
}

/// The sets of this processor that have packed products of Q8_0.
std::vector<const Kernels*> PackingKernels() {
  std::vector<const Kernels*> all;
  for (const Isa isa : SupportedIsas()) {
    if (HasPackedKernel(KernelsFor(isa), TensorType::kQ8_0)) {
      all.push_back(&KernelsFor(isa));
    }
  }
  return all;
}

void ExpectPacks(const Checkpoint& checkpoint) {
  for (const Kernels* kernels : PackingKernels()) {
    Weights weights = *BindWeights(checkpoint);
    const PackingPlan plan = PlanPacking(weights, *kernels);
    ThreadPool pool(3);
    std::vector<std::pair<int64_t, int64_t>> told;
    const auto tell = [&told](int64_t done, int64_t total) { told.emplace_back(done, total); };
    ASSERT_TRUE(PackWeights(checkpoint, {kernels, &pool}, tell, &weights).ok());
    ExpectAllPacked(weights);
    EXPECT_GE(static_cast<int64_t>(weights.packed.size()), plan.packed_bytes);
    for (size_t i = 1; i < told.size(); ++i) {
      EXPECT_GT(told[i].first, told[i - 1].first);
    }
    EXPECT_EQ(told.front(), std::make_pair(int64_t{0}, plan.file_bytes));
    EXPECT_EQ(told.back(), std::make_pair(plan.file_bytes, plan.file_bytes));
  }
}

TEST(PackWeights, OfAFile) { ExpectPacks(*Checkpoint::Open(testing::TestdataPath(kQuantized))); }

TEST(PackWeights, OfBytesInMemory) {
  const std::string file = testing::ReadOrDie(testing::TestdataPath(kQuantized));
  ExpectPacks(*Checkpoint::FromGgufBytes(AsBytes(file), "bytes"));
  EXPECT_EQ(file, testing::ReadOrDie(testing::TestdataPath(kQuantized)));
}

TEST(PackWeights, AnAbsentListenerIsNotCalled) {
  const auto checkpoint = *Checkpoint::Open(testing::TestdataPath(kQuantized));
  Weights weights = *BindWeights(checkpoint);
  ThreadPool pool(1);
  EXPECT_TRUE(PackWeights(checkpoint, {&KernelsFor(BestIsa()), &pool}, {}, &weights).ok());
}

TEST(PlanPacking, FloatsAndTheScalarSetHaveNothingToPack) {
  const auto floats = *Checkpoint::Open(testing::TestdataPath("tiny-hf"));
  const PackingPlan of_floats = PlanPacking(*BindWeights(floats), KernelsFor(BestIsa()));
  EXPECT_EQ(of_floats.n_matrices, 0);
  EXPECT_EQ(of_floats.packed_bytes, 0);
  EXPECT_TRUE(of_floats.types.empty());
  const auto quantized = *Checkpoint::Open(testing::TestdataPath(kQuantized));
  const PackingPlan of_scalar = PlanPacking(*BindWeights(quantized), KernelsFor(Isa::kScalar));
  EXPECT_EQ(of_scalar.n_matrices, 0);
}

TEST(PlanPacking, TakesAboutTheSizeOfTheFile) {
  const auto checkpoint = *Checkpoint::Open(testing::TestdataPath(kQuantized));
  const Weights weights = *BindWeights(checkpoint);
  for (const Kernels* kernels : PackingKernels()) {
    const PackingPlan plan = PlanPacking(weights, *kernels);
    EXPECT_EQ(plan.types, std::vector<TensorType>{TensorType::kQ8_0});
    EXPECT_GT(plan.file_bytes, 0);
    EXPECT_NEAR(static_cast<double>(plan.packed_bytes) / static_cast<double>(plan.file_bytes), 1.0,
                0.02);
  }
}

}  // namespace
}  // namespace facet
