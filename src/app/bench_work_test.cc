// SPDX-License-Identifier: Apache-2.0
#include "app/bench_work.h"

#include <gtest/gtest.h>

#include "app/embedded_model.h"
#include "convert/shapes.h"
#include "model/weights.h"

namespace facet {
namespace {

Config ConfigOrDie(const char* shape) {
  const Result<ShapeRequest> request = ParseShape(shape);
  Result<Config> config = ConfigOfShape(*request);
  EXPECT_TRUE(config.ok());
  return *std::move(config);
}

/// Values of a matrix that one token meets, by the tensors of a file.
double ProductsByTensors(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  double n = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (tensor.shape.size() < 2 || tensor.name == "per_layer_token_embd.weight") {
      continue;
    }
    double size = 1;
    for (const int64_t extent : tensor.shape) {
      size *= static_cast<double>(extent);
    }
    const bool is_of_experts = tensor.name.find("_exps.") != std::string::npos;
    n += is_of_experts ? size * config.n_experts_used / config.n_experts : size;
  }
  return n;
}

double OperationsOfRow(const Config& config) {
  return WorkOf({.n_gen = 1}, config, KvType::kF16, 0).operations;
}

TEST(BenchWork, OperationsAreThoseOfTheTensors) {
  const Result<Checkpoint> tiny = Checkpoint::FromGgufBytes(EmbeddedModel(), "embedded model");
  ASSERT_TRUE(tiny.ok());
  const Config& config = tiny->config();
  double attention = 0;  // of the first position, which sees itself
  for (const LayerDesc& layer : config.layers) {
    attention += 2.0 * config.n_heads * layer.d_head;
  }
  EXPECT_DOUBLE_EQ(OperationsOfRow(config), 2 * (ProductsByTensors(*tiny) + attention));
}

TEST(BenchWork, AMixtureCountsTheExpertsInUse) {
  const Config config = ConfigOrDie("26b-a4b");
  Config all = config;
  all.n_experts_used = all.n_experts;
  const double per_expert = 3.0 * config.n_embd * config.n_ff_expert * config.n_layers;
  EXPECT_DOUBLE_EQ(OperationsOfRow(all) - OperationsOfRow(config), 2 * per_expert * (128 - 8));
}

/// Layers that share keys and values are for rows with logits only.
TEST(BenchWork, PromptsSkipWhatNobodyReads) {
  const auto saved = [](const char* shape) {
    const Config config = ConfigOrDie(shape);
    const double output = 2.0 * config.n_vocab * config.n_embd;
    const double all = WorkOf({.n_gen = 512}, config, KvType::kF16, 0).operations - 512 * output;
    const double prompt = WorkOf({.n_prompt = 512}, config, KvType::kF16, 0).operations - output;
    return all / prompt;
  };
  EXPECT_NEAR(saved("e2b"), 3.4, 0.2);
  EXPECT_NEAR(saved("e4b"), 1.75, 0.1);
  EXPECT_NEAR(saved("12b"), 1.0, 0.03);  // only the last layer's
}

TEST(BenchWork, CountsKeysAndValuesThatAreSeen) {
  const Config config = ConfigOrDie("e2b");
  const auto bytes = [&](const BenchCase& bench, KvType type) {
    return WorkOf(bench, config, type, 0).bytes;
  };
  // 28 sliding layers of one head of 256, 7 full ones of one of 512.
  EXPECT_EQ(bytes({.n_gen = 1}, KvType::kF16), 28 * 1024 + 7 * 2048);
  EXPECT_EQ(bytes({.n_gen = 1, .n_depth = 4095}, KvType::kF16),
            28.0 * 1024 * 512 + 7.0 * 2048 * 4096);
  EXPECT_EQ(bytes({.n_gen = 1, .n_sequences = 3}, KvType::kF32), 3 * 2 * (28 * 1024 + 7 * 2048));
  EXPECT_EQ(bytes({.n_gen = 1}, KvType::kQ8_0), (28 * 512 + 7 * 1024) * 34 / 32);
  EXPECT_EQ(bytes({.n_prompt = 100}, KvType::kF16), 0);
}

TEST(BenchWork, WeightsAreReadOnceForEachStep) {
  const Config config = ConfigOrDie("e2b");
  const double without = WorkOf({.n_gen = 5, .n_sequences = 2}, config, KvType::kF16, 0).bytes;
  const double with = WorkOf({.n_gen = 5, .n_sequences = 2}, config, KvType::kF16, 1000).bytes;
  EXPECT_EQ(with - without, 5000);
}

TEST(BenchWork, TheSlowerRateIsTheLimit) {
  const MachineRates rates = {.read_bytes = 100, .operations = 1000};
  const BenchLimit memory = LimitOf({.operations = 1000, .bytes = 200}, rates, 4);
  EXPECT_TRUE(memory.is_memory);
  EXPECT_DOUBLE_EQ(memory.share, 0.5);
  const BenchLimit arithmetic = LimitOf({.operations = 3000, .bytes = 200}, rates, 4);
  EXPECT_FALSE(arithmetic.is_memory);
  EXPECT_DOUBLE_EQ(arithmetic.share, 0.75);
}

TEST(BytesPerStep, OfOneRowAreThoseOfAToken) {
  const Result<Checkpoint> tiny = Checkpoint::FromGgufBytes(EmbeddedModel(), "embedded model");
  ASSERT_TRUE(tiny.ok());
  EXPECT_EQ(BytesPerStep(*tiny, 1), BytesPerToken(*tiny));
  EXPECT_EQ(BytesPerStep(*tiny, 16), BytesPerToken(*tiny));  // no mixture
}

}  // namespace
}  // namespace facet
