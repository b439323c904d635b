// SPDX-License-Identifier: Apache-2.0
#include "model/hf_names.h"

#include <gtest/gtest.h>

#include "format/safetensors.h"
#include "model/weights.h"
#include "support/testing.h"

namespace facet {
namespace {

TEST(GgufNameOf, KnowsTheThreePrefixes) {
  EXPECT_EQ(GgufNameOf("model.language_model.layers.3.mlp.up_proj.weight"), "blk.3.ffn_up.weight");
  EXPECT_EQ(GgufNameOf("language_model.model.layers.12.layer_scalar"),
            "blk.12.layer_output_scale.weight");
  EXPECT_EQ(GgufNameOf("model.norm.weight"), "output_norm.weight");
  EXPECT_EQ(GgufNameOf("lm_head.weight"), "output.weight");
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
