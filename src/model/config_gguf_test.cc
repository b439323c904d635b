// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/config.h"

namespace facet {
namespace {

using gguf::Metadata;
using gguf::Value;

/// A small complete set of keys: 4 layers, three sliding and one full.
Metadata Small() {
  Metadata m;
  m.Set("general.architecture", Value::String("gemma4"));
  m.Set("gemma4.block_count", Value::U32(4));
  m.Set("gemma4.context_length", Value::U32(4096));
  m.Set("gemma4.embedding_length", Value::U32(64));
  m.Set("gemma4.feed_forward_length", Value::U32(96));
  m.Set("gemma4.attention.head_count", Value::U32(8));
  m.Set("gemma4.attention.head_count_kv", Value::I32s({4, 4, 4, 2}));
  m.Set("gemma4.attention.key_length", Value::U32(64));
  m.Set("gemma4.attention.key_length_swa", Value::U32(32));
  m.Set("gemma4.attention.sliding_window", Value::U32(16));
  m.Set("gemma4.attention.sliding_window_pattern", Value::Bools({true, true, true, false}));
  m.Set("tokenizer.ggml.tokens", Value::Strings({"a", "b", "c"}));
  return m;
}

std::string ErrorOf(const Metadata& m) {
  const auto config = ConfigFromGguf(m, "m.gguf");
  return config.ok() ? "accepted" : config.error().Message();
}

TEST(ConfigFromGguf, ReadsArraysAndScalars) {
  auto config = ConfigFromGguf(Small(), "m.gguf");
  ASSERT_TRUE(config.ok()) << config.error().Message();
  EXPECT_EQ(config->n_vocab, 3);
  ASSERT_EQ(config->layers.size(), 4U);
  EXPECT_EQ(config->layers[0].kind, LayerKind::kSliding);
  EXPECT_EQ(config->layers[0].d_head, 32);
  EXPECT_EQ(config->layers[3].kind, LayerKind::kFull);
  EXPECT_EQ(config->layers[3].d_head, 64);
  EXPECT_EQ(config->layers[3].n_kv_heads, 2);
  EXPECT_EQ(config->layers[1].n_ff, 96);
  EXPECT_EQ(config->logit_softcap, 30.0F);
  EXPECT_TRUE(config->has_bidirectional_spans);
}

TEST(ConfigFromGguf, AcceptsAScalarPatternAndArraysOfWidths) {
  Metadata m = Small();
  m.Set("gemma4.attention.sliding_window_pattern", Value::U32(2));
  m.Set("gemma4.feed_forward_length", Value::I32s({1, 2, 3, 4}));
  m.Set("gemma4.attention.head_count_kv", Value::U32(4));
  const auto config = ConfigFromGguf(m, "m.gguf");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->layers[0].kind, LayerKind::kSliding);
  EXPECT_EQ(config->layers[1].kind, LayerKind::kFull);
  EXPECT_EQ(config->layers[2].n_ff, 3);
  EXPECT_EQ(config->layers[3].n_kv_heads, 4);
}

TEST(ConfigFromGguf, RefusesOtherArchitectures) {
  Metadata m = Small();
  m.Set("general.architecture", Value::String("llama"));
  EXPECT_EQ(ErrorOf(m), "m.gguf, general.architecture: \"llama\", wanted \"gemma4\"");
  m.Set("general.architecture", Value::String("gemma4-assistant"));
  EXPECT_EQ(ErrorOf(m),
            "m.gguf, general.architecture: \"gemma4-assistant\" (a drafter), wanted \"gemma4\"");
  m.Set("general.architecture", Value::String("clip"));
  EXPECT_EQ(ErrorOf(m),
            "m.gguf, general.architecture: \"clip\" (a projector for images or audio), wanted "
            "\"gemma4\"");
  EXPECT_EQ(ErrorOf(Metadata()), "m.gguf, general.architecture: nothing, wanted \"gemma4\"");
}

TEST(ConfigFromGguf, NamesWhatIsMissingOrWrong) {
  Metadata m;
  m.Set("general.architecture", Value::String("gemma4"));
  EXPECT_EQ(ErrorOf(m), "m.gguf, gemma4.block_count: nothing, wanted a number");
  m = Small();
  m.Set("gemma4.block_count", Value::U32(4000000000U));
  EXPECT_EQ(ErrorOf(m), "m.gguf, gemma4.block_count: 4000000000, wanted an integer of 32 bits");
  m.Set("gemma4.block_count", Value::U32(100000));
  EXPECT_EQ(ErrorOf(m), "m.gguf, gemma4.block_count: 100000, wanted 1 to 1024");
  m = Small();
  m.Set("gemma4.embedding_length", Value::String("wide"));
  EXPECT_EQ(ErrorOf(m), "m.gguf, gemma4.embedding_length: string, wanted an integer");
  m = Small();
  m.Set("gemma4.attention.head_count_kv", Value::I32s({4, 4}));
  EXPECT_EQ(ErrorOf(m),
            "m.gguf, gemma4.attention.head_count_kv: 2 entries, wanted 4, one per layer");
  m = Small();
  m.Set("gemma4.attention.head_count", Value::I32s({8, 8, 4, 8}));
  EXPECT_EQ(ErrorOf(m),
            "m.gguf, gemma4.attention.head_count: 4 in layer 2, wanted 8, the same in all layers");
  m = Small();
  m.Set("gemma4.rope.freq_base", Value::String("x"));
  EXPECT_EQ(ErrorOf(m), "m.gguf, gemma4.rope.freq_base: string, wanted a number");
}

TEST(SetGgufConfig, IsReadBackAsTheSame) {
  auto config = ConfigFromGguf(Small(), "m.gguf");
  ASSERT_TRUE(config.ok());
  config->n_experts = 8;
  config->n_experts_used = 2;
  config->n_ff_expert = 32;
  config->rope_theta_sliding = 12345.0F;
  Metadata written;
  SetGgufConfig(*config, &written);
  written.Set("tokenizer.ggml.tokens", Value::Strings({"a", "b", "c"}));
  const auto again = ConfigFromGguf(written, "m.gguf");
  ASSERT_TRUE(again.ok()) << again.error().Message();
  EXPECT_EQ(again->n_experts, 8);
  EXPECT_EQ(again->n_ff_expert, 32);
  EXPECT_EQ(again->rope_theta_sliding, 12345.0F);
  for (size_t l = 0; l < 4; ++l) {
    EXPECT_EQ(again->layers[l].kind, config->layers[l].kind);
    EXPECT_EQ(again->layers[l].d_head, config->layers[l].d_head);
    EXPECT_EQ(again->layers[l].n_kv_heads, config->layers[l].n_kv_heads);
    EXPECT_EQ(again->layers[l].n_ff, config->layers[l].n_ff);
  }
}

TEST(DefaultsFromGguf, ReadsAndChecks) {
  Metadata m;
  auto defaults = DefaultsFromGguf(m, "m.gguf");
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->temperature, 1.0F);
  EXPECT_EQ(defaults->top_k, 64);
  EXPECT_EQ(defaults->top_p, 0.95F);
  m.Set("general.sampling.temp", Value::F32(0.5F));
  m.Set("general.sampling.top_k", Value::U32(7));
  defaults = DefaultsFromGguf(m, "m.gguf");
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->temperature, 0.5F);
  EXPECT_EQ(defaults->top_k, 7);
  m.Set("general.sampling.top_p", Value::F32(2.0F));
  defaults = DefaultsFromGguf(m, "m.gguf");
  ASSERT_FALSE(defaults.ok());
  EXPECT_EQ(defaults.error().Message(),
            "m.gguf, general.sampling: temperature 0.5, top_k 7, top_p 2, wanted 0 to 100, 0 to "
            "1000000, above 0 and at "
            "most 1");
}

}  // namespace
}  // namespace facet
