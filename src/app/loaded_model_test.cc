// SPDX-License-Identifier: Apache-2.0
#include "app/loaded_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace facet {
namespace {

const LoadedModel& Embedded() {
  static const auto model = [] {
    ::testing::internal::CaptureStderr();
    auto loaded = LoadedModel::Load("");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "no model given: using the embedded tiny model (a toy; -m MODEL for a real one)\n");
    EXPECT_TRUE(loaded.ok()) << loaded.error().Message();
    return *std::move(loaded);
  }();
  return *model;
}

TEST(LoadedModel, KnowsItsTokens) {
  EXPECT_EQ(Embedded().end_tokens(), (std::vector<int32_t>{1, 9, 16}));
  EXPECT_EQ(Embedded().vocab().size(), 2048);
  EXPECT_TRUE(Embedded().chat_template().traits().knows_thinking);
  EXPECT_TRUE(
      std::is_sorted(Embedded().suppressed_tokens().begin(), Embedded().suppressed_tokens().end()));
}

TEST(LoadedModel, RefusesWhatIsNoModel) {
  const auto missing = LoadedModel::Load("/nothing/here.gguf");
  ASSERT_FALSE(missing.ok());
  EXPECT_TRUE(missing.error().Message().starts_with("/nothing/here.gguf: "))
      << missing.error().Message();
}

TEST(BytesPerToken, LeavesOutTheTablesThatAreLookedUp) {
  const Checkpoint& checkpoint = Embedded().checkpoint();
  double n_all = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    n_all += static_cast<double>(tensor.data.size());
  }
  const CheckpointTensor* table = checkpoint.Find("per_layer_token_embd.weight");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(BytesPerToken(checkpoint), n_all - static_cast<double>(table->data.size()));
}

TEST(RunnerOptionsFrom, FillsInDefaults) {
  Config config;
  config.n_context = 131072;
  Options options;
  EXPECT_EQ(RunnerOptionsFrom(options, config)->n_context, 8192);
  options.ctx_size = 0;
  EXPECT_EQ(RunnerOptionsFrom(options, config)->n_context, 131072);
  options.ctx_size = 100;
  options.kv_type = "q8_0";
  options.cpu_isa = "scalar";
  const auto runner = RunnerOptionsFrom(options, config);
  EXPECT_EQ(runner->n_context, 100);
  EXPECT_EQ(runner->kv_type, KvType::kQ8_0);
  EXPECT_EQ(runner->isa, Isa::kScalar);
  config.n_context = 4096;
  options.ctx_size.reset();
  EXPECT_EQ(RunnerOptionsFrom(options, config)->n_context, 4096);
}

TEST(RunnerOptionsFrom, PacksUnlessToldNotTo) {
  Config config;
  config.n_context = 100;
  Options options;
  EXPECT_TRUE(RunnerOptionsFrom(options, config)->pack);
  options.no_pack = true;
  EXPECT_FALSE(RunnerOptionsFrom(options, config)->pack);
}

TEST(RunnerOptionsFrom, RefusesAnUnknownInstructionSet) {
  Options options;
  options.cpu_isa = "mmx";
  const auto runner = RunnerOptionsFrom(options, Config{});
  ASSERT_FALSE(runner.ok());
  EXPECT_TRUE(
      runner.error().Message().starts_with("--cpu-isa: \"mmx\", wanted one of auto, scalar"))
      << runner.error().Message();
}

TEST(RunnerOptionsFrom, RefusesMoreContextThanTheModelHas) {
  Config config;
  config.name = "Facet Tiny";
  config.n_context = 4096;
  Options options;
  options.ctx_size = 5000;
  const auto runner = RunnerOptionsFrom(options, config);
  ASSERT_FALSE(runner.ok());
  EXPECT_EQ(runner.error().Message(),
            "context: 5000 positions, wanted at most 4096, what Facet Tiny was made for");
}

TEST(SamplingFrom, PrefersTheOptions) {
  GenerationDefaults defaults;
  defaults.temperature = 0.7F;
  Options options;
  options.top_k = 3;
  options.presence_penalty = 0.5F;
  const SamplingParams sampling = SamplingFrom(options, defaults, 42);
  EXPECT_FLOAT_EQ(sampling.temperature, 0.7F);
  EXPECT_EQ(sampling.top_k, 3);
  EXPECT_FLOAT_EQ(sampling.top_p, 0.95F);
  EXPECT_FLOAT_EQ(sampling.presence_penalty, 0.5F);
  EXPECT_EQ(sampling.seed, 42U);
}

}  // namespace
}  // namespace facet
