// SPDX-License-Identifier: Apache-2.0
#include "convert/shapes.h"

#include <gtest/gtest.h>

namespace facet {
namespace {

Config ConfigOf(std::string_view text) {
  const Result<ShapeRequest> request = ParseShape(text);
  EXPECT_TRUE(request.ok()) << text;
  const Result<Config> config = ConfigOfShape(*request);
  EXPECT_TRUE(config.ok()) << text;
  return *config;
}

TEST(Shapes, WholeSizesAreThoseThatTheModelKnows) {
  ASSERT_EQ(ModelShapes().size(), 5U);
  for (const ModelShape& shape : ModelShapes()) {
    const Config config = ConfigOf(shape.name);
    EXPECT_EQ(config.size_label, shape.size.label);
    EXPECT_EQ(config.layers.back().kind, LayerKind::kFull);
    EXPECT_EQ(config.n_vocab, 262144);
  }
}

TEST(Shapes, LayersAreAsReleased) {
  const Config e2b = ConfigOf("e2b");
  EXPECT_EQ(e2b.n_context, 131072);
  EXPECT_EQ(e2b.layers[14].n_ff, 6144);
  EXPECT_EQ(e2b.layers[15].n_ff, 12288);
  EXPECT_EQ(e2b.layers[15].kv_layer, 13);
  EXPECT_EQ(e2b.layers[34].kv_layer, 14);
  EXPECT_FALSE(e2b.has_bidirectional_spans);
  const Config e4b = ConfigOf("e4b");
  EXPECT_EQ(e4b.layers[24].kv_layer, 22);
  EXPECT_EQ(e4b.layers[41].kv_layer, 23);
  const Config dense = ConfigOf("31b");
  EXPECT_EQ(dense.n_context, 262144);
  EXPECT_TRUE(dense.layers[5].v_is_k);
  EXPECT_FALSE(dense.layers[4].v_is_k);
  EXPECT_TRUE(dense.has_bidirectional_spans);
}

TEST(Shapes, FewerLayersAreTheFirstOfTheWhole) {
  for (const ModelShape& shape : ModelShapes()) {
    const Config whole = ConfigOf(shape.name);
    for (int n = shape.size.full_every; n < shape.size.n_layers; ++n) {
      const Config part = ConfigOf(std::string(shape.name) + ":" + std::to_string(n));
      ASSERT_EQ(part.layers.size(), static_cast<size_t>(n));
      EXPECT_EQ(part.n_shared_kv_layers, std::max(0, n - whole.first_shared_layer()));
      for (size_t l = 0; l < part.layers.size(); ++l) {
        EXPECT_EQ(part.layers[l].kind, whole.layers[l].kind);
        EXPECT_EQ(part.layers[l].n_ff, whole.layers[l].n_ff);
        EXPECT_EQ(part.layers[l].kv_layer, whole.layers[l].kv_layer) << shape.name << " " << n;
      }
    }
  }
}

TEST(Shapes, DraftersFitTheirModels) {
  EXPECT_EQ(DrafterConfigOfShape(ModelShapes()[0]).n_centroids, 2048);
  EXPECT_EQ(DrafterConfigOfShape(ModelShapes()[1]).n_top_centroids, 32);
  EXPECT_EQ(DrafterConfigOfShape(ModelShapes()[4]).n_centroids, 0);
  EXPECT_EQ(DrafterConfigOfShape(ModelShapes()[4]).n_embd_target, 5376);
  const Config small = DrafterConfigOfShape(ModelShapes()[0]).body;
  ASSERT_EQ(small.layers.size(), 4U);
  EXPECT_EQ(small.layers[2].kind, LayerKind::kSliding);
  EXPECT_EQ(small.layers[3].kind, LayerKind::kFull);
  EXPECT_EQ(small.n_embd, 256);
  EXPECT_EQ(small.layers[0].n_ff, 2048);
  const Config large = DrafterConfigOfShape(ModelShapes()[4]).body;
  EXPECT_EQ(large.n_heads, 32);
  EXPECT_EQ(large.layers[0].n_kv_heads, 16);
  EXPECT_EQ(large.layers[3].n_kv_heads, 4);
}

TEST(Shapes, RefusesWhatIsNone) {
  const auto error_of = [](std::string_view text) { return ParseShape(text).error().Message(); };
  EXPECT_EQ(error_of("7b"), "--shape: \"7b\", wanted e2b, e4b, 12b, 26b-a4b or 31b");
  EXPECT_EQ(error_of("e2b:0"), "--shape: \"e2b:0\", wanted 5 to 35 layers of e2b");
  EXPECT_EQ(error_of("e2b:4"), "--shape: \"e2b:4\", wanted 5 to 35 layers of e2b");
  EXPECT_EQ(error_of("e2b:36"), "--shape: \"e2b:36\", wanted 5 to 35 layers of e2b");
  EXPECT_EQ(error_of("31b:"), "--shape: \"31b:\", wanted 6 to 60 layers of 31b");
  EXPECT_EQ(error_of("31b:9x"), "--shape: \"31b:9x\", wanted 6 to 60 layers of 31b");
}

}  // namespace
}  // namespace facet
