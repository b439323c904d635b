// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/config.h"
#include "support/testing.h"

namespace facet {
namespace {

Json ConfigOf(const std::string& name) {
  return testing::JsonOrDie(testing::TestdataPath("text/" + name + "/config.json"));
}

std::string ErrorOf(const Json& json) {
  const auto config = ConfigFromHf(json, "config.json");
  return config.ok() ? "accepted" : config.error().Message();
}

/// The config with one member of text_config replaced.
Json With(const std::string& name, const std::string& key, Json value) {
  Json json = ConfigOf(name);
  Json text = json["text_config"];
  text.Set(key, std::move(value));
  json.Set("text_config", std::move(text));
  return json;
}

TEST(ConfigFromHf, ReadsBothSpellingsOfTheFullLayers) {
  auto released = ConfigFromHf(ConfigOf("dense-keqv"), "config.json");  // global_head_dim
  ASSERT_TRUE(released.ok()) << released.error().Message();
  EXPECT_EQ(released->layers[5].d_head, 64);
  EXPECT_EQ(released->layers[5].n_kv_heads, 1);
  EXPECT_EQ(released->layers[4].d_head, 32);
  EXPECT_EQ(released->layers[4].n_kv_heads, 4);
  EXPECT_TRUE(released->layers[5].v_is_k);
  EXPECT_FALSE(released->layers[4].v_is_k);
  EXPECT_TRUE(released->has_bidirectional_spans);
  auto newer = ConfigFromHf(ConfigOf("moe-keqv"), "config.json");  // per_layer_config
  ASSERT_TRUE(newer.ok()) << newer.error().Message();
  EXPECT_EQ(newer->layers[5].d_head, 64);
  EXPECT_EQ(newer->layers[5].n_kv_heads, 2);
  EXPECT_EQ(newer->n_experts, 8);
  EXPECT_EQ(newer->n_experts_used, 2);
  EXPECT_EQ(newer->n_ff_expert, 32);
}

TEST(ConfigFromHf, WidensTheSharedLayers) {
  auto config = ConfigFromHf(ConfigOf("etype-sharing"), "config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->layers[4].n_ff, 96);
  EXPECT_EQ(config->layers[5].n_ff, 192);
  EXPECT_FALSE(config->has_bidirectional_spans);
  ASSERT_TRUE(CompleteConfig(&*config, "config.json").ok());
  EXPECT_EQ(config->layers[5].kv_layer, 3);
  EXPECT_EQ(config->layers[9].kv_layer, 4);
}

TEST(ConfigFromHf, NamesWhatIsWrong) {
  EXPECT_EQ(ErrorOf(Json()), "config.json: null, wanted an object");
  Json other = ConfigOf("dense-keqv");
  other.Set("model_type", "llama");
  EXPECT_EQ(ErrorOf(other),
            "config.json, model_type: \"llama\", wanted \"gemma4\", \"gemma4_text\" or "
            "\"gemma4_unified\"");
  EXPECT_EQ(ErrorOf(ConfigOf("dense-keqv-assistant")),
            "config.json, model_type: \"gemma4_assistant\" (a drafter), wanted \"gemma4\", "
            "\"gemma4_text\" or "
            "\"gemma4_unified\"");
  EXPECT_EQ(ErrorOf(With("dense-keqv", "num_hidden_layers", "many")),
            "config.json, text_config, num_hidden_layers: a string, wanted an integer of 32 bits");
  EXPECT_EQ(ErrorOf(With("dense-keqv", "num_hidden_layers", 13)),
            "config.json, text_config, layer_types: 12 entries, wanted 13, one per layer");
  EXPECT_EQ(ErrorOf(With("dense-keqv", "hidden_size", Json())),
            "config.json, text_config, hidden_size: nothing, wanted an integer");
  EXPECT_EQ(ErrorOf(With("dense-keqv", "rms_norm_eps", true)),
            "config.json, text_config, rms_norm_eps: true or false, wanted a number");
  Json::Array kinds = ConfigOf("dense-keqv")["text_config"]["layer_types"].items();
  kinds[2] = "linear_attention";
  EXPECT_EQ(ErrorOf(With("dense-keqv", "layer_types", kinds)),
            "config.json, text_config, layer_types[2]: \"linear_attention\", wanted "
            "\"sliding_attention\" or "
            "\"full_attention\"");
}

TEST(DefaultsFromHf, ReadsEndTokensAsNumberOrList) {
  const auto list =
      DefaultsFromHf(*ParseJson(R"({"eos_token_id": [1, 16, 9], "top_k": 3})", "g"), "g");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->end_tokens, (std::vector<int>{1, 16, 9}));
  EXPECT_EQ(list->top_k, 3);
  const auto one =
      DefaultsFromHf(*ParseJson(R"({"eos_token_id": 5, "suppress_tokens": [7]})", "g"), "g");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->end_tokens, std::vector<int>{5});
  EXPECT_EQ(one->suppressed_tokens, std::vector<int>{7});
  const auto broken = DefaultsFromHf(*ParseJson(R"({"eos_token_id": ["x"]})", "g"), "g");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().Message(),
            "g, eos_token_id: a string, wanted a token id or a list of them");
}

}  // namespace
}  // namespace facet
