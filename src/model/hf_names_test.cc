// SPDX-License-Identifier: Apache-2.0
#include "model/hf_names.h"

#include <gtest/gtest.h>

#include "format/safetensors.h"
#include "model/weights.h"
#include "support/testing.h"

namespace facet {
namespace {

TEST(GgufNameOf, KnowsEveryPrefix) {
  for (const std::string prefix : {"", "model.", "language_model.", "model.language_model.",
                                   "language_model.model.", "model.language_model.model."}) {
    EXPECT_EQ(GgufNameOf(prefix + "layers.3.mlp.up_proj.weight"), "blk.3.ffn_up.weight");
    EXPECT_EQ(GgufNameOf(prefix + "norm.weight"), "output_norm.weight");
    EXPECT_EQ(GgufNameOf(prefix + "lm_head.weight"), "output.weight");
    EXPECT_EQ(GgufNameOf(prefix + "vision_tower.norm.weight"), std::nullopt);
    EXPECT_TRUE(IsMediaTensor(prefix + "vision_tower.norm.weight"));
    EXPECT_FALSE(IsMediaTensor(prefix + "norm.weight"));
  }
}

TEST(GgufNameOf, KnowsParametersWithAndWithoutWeight) {
  for (const std::string end : {"", ".weight"}) {
    const auto name = [&end](std::string_view middle) {
      return GgufNameOf("model.layers.12." + std::string(middle) + end);
    };
    EXPECT_EQ(name("layer_scalar"), "blk.12.layer_output_scale.weight");
    EXPECT_EQ(name("experts.gate_up_proj"), "blk.12.ffn_gate_up_exps.weight");
    EXPECT_EQ(name("experts.gate_proj"), "blk.12.ffn_gate_exps.weight");
    EXPECT_EQ(name("experts.up_proj"), "blk.12.ffn_up_exps.weight");
    EXPECT_EQ(name("experts.down_proj"), "blk.12.ffn_down_exps.weight");
  }
  EXPECT_EQ(GgufNameOf("model.layers.12.mlp.up_proj"), std::nullopt);
  EXPECT_EQ(GgufNameOf("model.layers.12.experts.3.up_proj.weight"), std::nullopt);
}

TEST(GgufNameOf, RefusesWhatIsNotText) {
  EXPECT_EQ(GgufNameOf("model.vision_tower.layers.0.mlp.up_proj.weight"), std::nullopt);
  EXPECT_EQ(GgufNameOf("model.layers.x.mlp.up_proj.weight"), std::nullopt);
  EXPECT_EQ(GgufNameOf("model.layers.123456.mlp.up_proj.weight"), std::nullopt);
  EXPECT_EQ(GgufNameOf("model.layers."), std::nullopt);
  EXPECT_EQ(GgufNameOf(""), std::nullopt);
  EXPECT_TRUE(IsMediaTensor("model.vision_tower.patch_embedder.weight"));
  EXPECT_FALSE(IsMediaTensor("model.layers.0.x"));
}

TEST(GgufNameOf, CoversEveryTensorOfTheCheckpoints) {
  int n = 0;
  for (const std::string name : {"etype-sharing", "etype-plain", "dense-keqv", "moe-keqv"}) {
    const auto file =
        safetensors::File::Open(testing::TestdataPath("text/" + name + "/model.safetensors"));
    ASSERT_TRUE(file.ok());
    for (const auto& tensor : file->tensors()) {
      const auto gguf_name = GgufNameOf(tensor.name);
      ASSERT_TRUE(gguf_name.has_value()) << tensor.name;
      EXPECT_TRUE(IsTextTensorName(*gguf_name)) << *gguf_name;
      ++n;
    }
  }
  EXPECT_GT(n, 400);
}

TEST(IsMediaTensor, CoversTheTowersOfTheTinyModel) {
  const auto file = safetensors::File::Open(testing::TestdataPath("tiny-hf/model.safetensors"));
  ASSERT_TRUE(file.ok());
  int n_text = 0;
  int n_media = 0;
  for (const auto& tensor : file->tensors()) {
    const bool is_text = GgufNameOf(tensor.name).has_value();
    EXPECT_NE(is_text, IsMediaTensor(tensor.name)) << tensor.name;
    (is_text ? n_text : n_media) += 1;
  }
  EXPECT_EQ(n_text, 160);
  EXPECT_GT(n_media, 200);
}

}  // namespace
}  // namespace facet
