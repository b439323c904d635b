// SPDX-License-Identifier: Apache-2.0
#include "model/kv_store.h"

#include <gtest/gtest.h>

#include "model/checkpoint.h"
#include "support/testing.h"

namespace facet {
namespace {

Config TinyConfig() {
  return Checkpoint::Open(testing::SourcePath("models/tiny/facet-tiny.gguf"))->config();
}

TEST(PlanKv, CountsTheLayersThatWrite) {
  RunnerOptions options;
  options.n_context = 1000;
  options.n_sequences = 2;
  options.max_rows = 100;
  options.kv_type = KvType::kF16;
  const auto plan = PlanKv(TinyConfig(), options);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->sliding.n_layers, 4);  // ten layers, the last five share
  EXPECT_EQ(plan->full.n_layers, 1);
  // Layers, K and V, positions, head size, bytes of a value.
  EXPECT_EQ(plan->sliding.bytes_per_block, 4 * 2 * 32 * 32 * 2);
  EXPECT_EQ(plan->full.bytes_per_block, 1 * 2 * 32 * 64 * 2);
  EXPECT_EQ(plan->full.n_blocks, 2 * 32);
  // 64 positions touch up to three blocks, a step begins one more; 100 rows fill three.
  EXPECT_EQ(plan->sliding.n_blocks, 2 * (3 + 1) + 3);
  EXPECT_EQ(plan->bytes, 64 * plan->full.bytes_per_block + 11 * plan->sliding.bytes_per_block);
}

TEST(PlanKv, RefusesWhatCannotBe) {
  RunnerOptions options;
  options.n_context = 5000;
  auto plan = PlanKv(TinyConfig(), options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().Message(),
            "context: 5000 positions, wanted at most 4096, what Facet Tiny was made for");
  Config odd = TinyConfig();
  odd.layers[1].d_head = 40;
  options.n_context = 64;
  options.kv_type = KvType::kQ8_0;
  plan = PlanKv(odd, options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().Message(),
            "KV type q8_0: head size 40 in layer 1, wanted a multiple of 32");
  options.kv_type = KvType::kF16;
  options.n_context = 0;
  options.n_sequences = 16000000;
  plan = PlanKv(TinyConfig(), options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().wanted, "at most 16384 GiB");
}

TEST(KvStore, GivesSharedLayersTheirDonorsPlace) {
  const Config config = TinyConfig();
  RunnerOptions options;
  options.n_context = 64;
  const auto plan = PlanKv(config, options);
  ASSERT_TRUE(plan.ok());
  const KvStore store = *KvStore::Allocate(config, options.kv_type, *plan);
  EXPECT_EQ(store.layout(5).k_offset, store.layout(3).k_offset);
  EXPECT_EQ(store.layout(9).v_offset, store.layout(4).v_offset);
  EXPECT_EQ(store.layout(9).shape.d_head, 64);
  EXPECT_EQ(store.layout(0).k_offset, 0U);
  EXPECT_EQ(store.layout(0).v_offset, size_t{32 * 32 * 2});
  EXPECT_EQ(store.layout(1).k_offset, size_t{2 * 32 * 32 * 2});
  EXPECT_EQ(store.block(LayerKind::kFull, 1) - store.block(LayerKind::kFull, 0),
            plan->full.bytes_per_block);
}

TEST(KvStore, RefusesMoreThanTheSystemGives) {
  const Config config = TinyConfig();
  RunnerOptions options;
  options.n_context = 64;
  auto plan = PlanKv(config, options);
  ASSERT_TRUE(plan.ok());
  plan->full.bytes = int64_t{1} << 60;
  EXPECT_EQ(KvStore::Allocate(config, options.kv_type, *plan).error().Message(),
            "keys and values (-c takes fewer positions): no memory for 1152921504606846976 bytes: "
            "Cannot allocate memory");
}

}  // namespace
}  // namespace facet
