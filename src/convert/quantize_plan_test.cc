// SPDX-License-Identifier: Apache-2.0
#include "convert/quantize_plan.h"

#include <gtest/gtest.h>

#include <map>

namespace facet {
namespace {

using enum TensorType;
using Types = std::map<std::string, TensorType>;

std::string Of(int layer, const std::string& part) {
  return "blk." + std::to_string(layer) + "." + part;
}

/// A model of 16 layers with rows of 512; layer 5 has no V.
std::vector<TensorOutline> Model(int64_t n_columns = 512) {
  std::vector<TensorOutline> tensors = {
      {"token_embd.weight", kBF16, {1000, n_columns}},
      {"per_layer_token_embd.weight", kBF16, {1000, n_columns}},
      {"per_layer_model_proj.weight", kBF16, {n_columns, n_columns}},
      {"output_norm.weight", kBF16, {n_columns}},
      {"v.blk.0.attn_q.weight", kF16, {n_columns, n_columns}},
  };
  for (int layer = 0; layer < 16; ++layer) {
    for (const char* part :
         {"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight",
          "ffn_down.weight", "ffn_gate.weight", "inp_gate.weight", "ffn_gate_inp.weight"}) {
      if (layer != 5 || std::string(part) != "attn_v.weight") {
        tensors.push_back({Of(layer, part), kBF16, {n_columns, n_columns}});
      }
    }
    tensors.push_back({Of(layer, "ffn_down_exps.weight"), kBF16, {4, n_columns, n_columns}});
    tensors.push_back({Of(layer, "attn_norm.weight"), kF32, {n_columns}});
  }
  return tensors;
}

Types PlanOf(const std::vector<TensorOutline>& tensors, const QuantizeChoice& choice) {
  const auto plan = PlanQuantization("a.gguf", tensors, choice);
  EXPECT_TRUE(plan.ok());
  Types types;
  for (size_t i = 0; plan.ok() && i < tensors.size(); ++i) {
    types[tensors[i].name] = plan->types[i];
  }
  return types;
}

std::string ErrorOf(const std::vector<TensorOutline>& tensors, const QuantizeChoice& choice) {
  const auto plan = PlanQuantization("a.gguf", tensors, choice);
  return plan.ok() ? "no error" : plan.error().Message();
}

/// The layers whose tensor `part` has the type.
std::vector<int> LayersWith(const Types& types, const std::string& part, TensorType type) {
  std::vector<int> layers;
  for (int layer = 0; layer < 16; ++layer) {
    const auto found = types.find(Of(layer, part));
    if (found != types.end() && found->second == type) {
      layers.push_back(layer);
    }
  }
  return layers;
}

TEST(QuantizePlan, KeepsWhatDecidesMuch) {
  for (const char* type : {"q2_k", "q4_k_m", "q4_0", "q8_0", "iq4_xs", "mxfp4"}) {
    const Types types = PlanOf(Model(), {.file_type = type});
    const TensorType table = std::string(type) == "q8_0" ? kQ8_0 : kQ6_K;
    EXPECT_EQ(types.at("token_embd.weight"), table) << type;
    EXPECT_EQ(types.at("per_layer_token_embd.weight"), table) << type;
    EXPECT_EQ(types.at("per_layer_model_proj.weight"), kBF16) << type;
    EXPECT_EQ(types.at("output_norm.weight"), kF32) << type;
    EXPECT_EQ(types.at("v.blk.0.attn_q.weight"), kF16) << type;
    EXPECT_EQ(types.at("blk.3.inp_gate.weight"), kQ8_0) << type;
    EXPECT_EQ(types.at("blk.3.ffn_gate_inp.weight"), kBF16) << type;
    EXPECT_EQ(types.at("blk.3.attn_norm.weight"), kF32) << type;
  }
}

TEST(QuantizePlan, MixesRaiseTheLayersOfTheTable) {
  const std::vector<int> some = {0, 1, 4, 7, 10, 13, 14, 15};
  Types types = PlanOf(Model(), {.file_type = "q4_k_m"});
  EXPECT_EQ(LayersWith(types, "attn_v.weight", kQ6_K), some);
  EXPECT_EQ(LayersWith(types, "ffn_down.weight", kQ6_K), some);
  EXPECT_EQ(LayersWith(types, "ffn_down_exps.weight", kQ6_K), some);
  EXPECT_EQ(LayersWith(types, "attn_q.weight", kQ4_K).size(), 16u);
  EXPECT_EQ(LayersWith(types, "attn_k.weight", kQ4_K).size(), 16u);
  types = PlanOf(Model(), {.file_type = "q4_k_s"});
  EXPECT_EQ(LayersWith(types, "ffn_down.weight", kQ5_K), (std::vector<int>{0, 1}));
  types = PlanOf(Model(), {.file_type = "q3_k_m"});
  EXPECT_EQ(LayersWith(types, "attn_v.weight", kQ5_K).size(), 15u);
  EXPECT_EQ(LayersWith(types, "attn_output.weight", kQ4_K).size(), 16u);
  EXPECT_EQ(LayersWith(types, "ffn_gate.weight", kQ3_K).size(), 16u);
}

TEST(QuantizePlan, WithoutVTheKeysAreTheValues) {
  const Types types = PlanOf(Model(), {.file_type = "q3_k_l"});
  EXPECT_EQ(LayersWith(types, "attn_k.weight", kQ5_K), std::vector<int>{5});
}

TEST(QuantizePlan, FileTypesAreNumberedAsLlamaCppDoes) {
  const std::map<std::string, uint32_t> ids = {
      {"f32", 0},     {"f16", 1},     {"q4_0", 2},  {"q8_0", 7},    {"q2_k", 10},   {"q3_k_m", 12},
      {"q4_k_m", 15}, {"q5_k_m", 17}, {"q6_k", 18}, {"iq4_nl", 25}, {"iq4_xs", 30}, {"bf16", 32}};
  for (const auto& [name, id] : ids) {
    EXPECT_EQ(PlanQuantization("a.gguf", Model(), {.file_type = name})->file_type_id, id) << name;
  }
}

TEST(QuantizePlan, RowsThatDoNotFitTakeTheNextType) {
  const std::map<std::string, TensorType> blocks_of_32 = {
      {"q2_k", kIQ4_NL}, {"q3_k_s", kIQ4_NL}, {"iq4_xs", kIQ4_NL},
      {"q4_k_m", kQ5_0}, {"q5_k_s", kQ5_1},   {"q6_k", kQ8_0},
      {"q4_0", kQ4_0},   {"mxfp4", kMXFP4},   {"iq4_nl", kIQ4_NL}};
  for (const auto& [name, type] : blocks_of_32) {
    const Types types = PlanOf(Model(96), {.file_type = name});
    EXPECT_EQ(types.at("blk.3.ffn_gate.weight"), type) << name;
    EXPECT_EQ(types.at("token_embd.weight"), kQ8_0) << name;
  }
  EXPECT_EQ(PlanOf(Model(40), {.file_type = "q4_k_m"}).at("blk.3.ffn_gate.weight"), kF16);
  EXPECT_EQ(PlanOf(Model(40), {.file_type = "q8_0"}).at("token_embd.weight"), kF16);
}

TEST(QuantizePlan, PlainTypesTakeEveryMatrix) {
  const Types types = PlanOf(Model(), {.file_type = "f16"});
  EXPECT_EQ(types.at("token_embd.weight"), kF16);
  EXPECT_EQ(types.at("per_layer_model_proj.weight"), kF16);
  EXPECT_EQ(types.at("blk.3.inp_gate.weight"), kF16);
  EXPECT_EQ(types.at("output_norm.weight"), kF32);
}

TEST(QuantizePlan, PureIsOneTypeForEveryMatrix) {
  const Types types = PlanOf(Model(), {.file_type = "q4_k_m", .is_pure = true});
  for (const char* name :
       {"token_embd.weight", "per_layer_token_embd.weight", "per_layer_model_proj.weight",
        "blk.0.attn_v.weight", "blk.3.inp_gate.weight"}) {
    EXPECT_EQ(types.at(name), kQ4_K) << name;
  }
  EXPECT_EQ(types.at("blk.3.ffn_gate_inp.weight"), kBF16);
  EXPECT_EQ(types.at("output_norm.weight"), kF32);
  EXPECT_EQ(types.at("v.blk.0.attn_q.weight"), kF16);
}

TEST(QuantizePlan, OfTheOverridesThatMatchTheLastCounts) {
  const Types types =
      PlanOf(Model(), {.file_type = "q4_0",
                       .overrides = {"blk.*.ffn_*=q5_0", "blk.1*.ffn_gate.weight=Q8_0", "v.*=q8_0",
                                     "blk.*=q6_k", "blk.2.*=f32"}});
  EXPECT_EQ(types.at("blk.0.ffn_gate.weight"), kQ6_K);
  EXPECT_EQ(types.at("blk.12.ffn_gate.weight"), kQ6_K);
  EXPECT_EQ(types.at("blk.2.ffn_gate.weight"), kF32);
  EXPECT_EQ(types.at("blk.0.ffn_gate_inp.weight"), kQ6_K);
  EXPECT_EQ(types.at("blk.0.attn_norm.weight"), kF32);
  EXPECT_EQ(types.at("v.blk.0.attn_q.weight"), kQ8_0);
  EXPECT_EQ(types.at("token_embd.weight"), kQ6_K);
}

TEST(QuantizePlan, RefusesWrongChoices) {
  EXPECT_EQ(ErrorOf(Model(), {.file_type = "q4"}),
            "--type: \"q4\", wanted one of " + FileTypeNames());
  EXPECT_EQ(ErrorOf(Model(), {}), "--type: nothing, wanted one of " + FileTypeNames());
  EXPECT_EQ(ErrorOf(Model(), {.file_type = "q4_0", .overrides = {"blk"}}),
            "--tensor: \"blk\", wanted NAME=TYPE");
  EXPECT_EQ(ErrorOf(Model(), {.file_type = "q4_0", .overrides = {"=q8_0"}}),
            "--tensor: \"=q8_0\", wanted NAME=TYPE");
  EXPECT_EQ(ErrorOf(Model(), {.file_type = "q4_0", .overrides = {"blk.*=q4_k_m"}}),
            "--tensor: \"blk.*=q4_k_m\", wanted a type such as q6_k, q8_0 or bf16");
  EXPECT_EQ(ErrorOf(Model(), {.file_type = "q4_0", .overrides = {"blk.*.attn_norm.weight=f16"}}),
            "--tensor: \"blk.*.attn_norm.weight\", which matches no matrix, wanted the name of one "
            "(facet inspect --tensors lists them)");
  EXPECT_EQ(ErrorOf(Model(96), {.file_type = "q4_0", .overrides = {"blk.3.ffn_gate*=q6_k"}}),
            "--tensor blk.3.ffn_gate*=q6_k, tensor blk.3.ffn_gate.weight: rows of 96 in type Q6_K, "
            "wanted a multiple of 256");
}

TEST(QuantizePlan, QuantizedTensorsAreLeftUnlessAsked) {
  std::vector<TensorOutline> tensors = Model();
  tensors[0].type = kQ6_K;
  EXPECT_EQ(ErrorOf(tensors, {.file_type = "q4_0"}), "no error");  // it stays
  EXPECT_EQ(ErrorOf(tensors, {.file_type = "q8_0"}),
            "a.gguf, tensor token_embd.weight: type Q6_K, already quantised, wanted F32, F16 or "
            "BF16; --allow-requantize to lose quality twice");
  EXPECT_EQ(
      PlanOf(tensors, {.file_type = "q8_0", .allows_requantize = true}).at("token_embd.weight"),
      kQ8_0);
}

TEST(QuantizePlan, NamesOfNoLayerAreNoLayers) {
  for (const char* name : {"blk.", "blk.x.attn_v.weight", "blk.99999999999.attn_v.weight",
                           "blk.-1.attn_v.weight", "blk.1", "blk.1attn_v.weight"}) {
    EXPECT_EQ(PlanOf({{name, kF32, {256, 256}}}, {.file_type = "q4_k_m"}).count(name), 1u);
  }
}

TEST(MatchesGlob, StarsStandForAnything) {
  EXPECT_TRUE(MatchesGlob("", ""));
  EXPECT_TRUE(MatchesGlob("*", ""));
  EXPECT_TRUE(MatchesGlob("a*c", "ac"));
  EXPECT_TRUE(MatchesGlob("a*c*e", "abcde"));
  EXPECT_TRUE(MatchesGlob("*ab", "aab"));
  EXPECT_TRUE(MatchesGlob("a**", "abc"));
  EXPECT_FALSE(MatchesGlob("", "a"));
  EXPECT_FALSE(MatchesGlob("a*c", "abd"));
  EXPECT_FALSE(MatchesGlob("abc", "abcd"));
  EXPECT_FALSE(MatchesGlob("*abc", "ab"));
  const std::string many(20000, 'a');
  EXPECT_FALSE(MatchesGlob("*a*a*a*a*a*a*a*a*b", many));
}

}  // namespace
}  // namespace facet
