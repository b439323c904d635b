// SPDX-License-Identifier: Apache-2.0
#include "convert/synth_tensors.h"

#include <gtest/gtest.h>

#include <map>

#include "convert/shapes.h"
#include "format/gguf.h"
#include "support/testing.h"

namespace facet {
namespace {

using Outline = std::map<std::string, std::vector<int64_t>>;

Outline OutlineOf(const std::vector<SynthTensor>& tensors) {
  Outline outline;
  for (const SynthTensor& tensor : tensors) {
    outline[tensor.name] = tensor.shape;
  }
  EXPECT_EQ(outline.size(), tensors.size());
  return outline;
}

Outline OutlineOf(const gguf::File& file) {
  Outline outline;
  for (const gguf::TensorView& tensor : file.tensors()) {
    outline[tensor.name] = tensor.shape;
  }
  return outline;
}

gguf::File OpenFile(const std::string& name) {
  auto file = gguf::File::Open(testing::TestdataPath("text/gguf/" + name));
  EXPECT_TRUE(file.ok()) << name;
  return *std::move(file);
}

TEST(SynthTensors, AreThoseThatLlamaCppWrites) {
  for (const std::string name :
       {"dense-keqv-Q4_0.gguf", "etype-sharing-Q4_0.gguf", "moe-keqv-Q4_0.gguf"}) {
    const gguf::File file = OpenFile(name);
    Result<Config> config = ConfigFromGguf(file.metadata(), name);
    ASSERT_TRUE(config.ok());
    ASSERT_TRUE(CompleteConfig(&*config, name).ok());
    for (size_t l = 0; l < config->layers.size(); ++l) {
      config->layers[l].v_is_k =
          config->layers[l].kv_layer == static_cast<int>(l) &&
          file.Find("blk." + std::to_string(l) + ".attn_v.weight") == nullptr;
    }
    EXPECT_EQ(OutlineOf(ModelTensors(*config)), OutlineOf(file)) << name;
  }
}

TEST(SynthTensors, OfDraftersAreThoseThatLlamaCppWrites) {
  for (const std::string name :
       {"dense-keqv-assistant-Q8_0.gguf", "etype-sharing-assistant-Q4_0.gguf"}) {
    const gguf::File file = OpenFile(name);
    const auto number = [&](const std::string& key) {
      return static_cast<int>(*file.metadata().Find("gemma4-assistant." + key)->AsInt());
    };
    DrafterConfig drafter;
    drafter.n_embd_target = number("embedding_length_out");
    Config& config = drafter.body;
    config.n_layers = number("block_count");
    config.n_shared_kv_layers = number("attention.shared_kv_layers");
    config.n_embd = number("embedding_length");
    config.n_heads = number("attention.head_count");
    config.n_vocab = 2048;
    for (int l = 0; l < config.n_layers; ++l) {
      LayerDesc layer;
      layer.kind = l < 3 ? LayerKind::kSliding : LayerKind::kFull;
      layer.d_head = number(l < 3 ? "attention.key_length_swa" : "attention.key_length");
      layer.n_kv_heads = 1;
      layer.n_ff = number("feed_forward_length");
      config.layers.push_back(layer);
    }
    const Outline made = OutlineOf(DrafterTensors(drafter));
    EXPECT_EQ(made, OutlineOf(file)) << name;
  }
}

TEST(SynthTensors, WeighAsMuchAsTheReleasedModels) {
  // With the embeddings: "effective" sizes leave the per-layer ones out.
  const std::map<std::string_view, double> kBillions = {
      {"e2b", 4.6}, {"e4b", 7.5}, {"12b", 11.9}, {"26b-a4b", 25.2}, {"31b", 30.7}};
  for (const ModelShape& shape : ModelShapes()) {
    const Result<Config> config = ConfigOfShape({&shape, shape.size.n_layers});
    ASSERT_TRUE(config.ok());
    double n = 0;
    for (const SynthTensor& tensor : ModelTensors(*config)) {
      n += static_cast<double>(tensor.n_elements());
    }
    EXPECT_NEAR(n / 1e9, kBillions.at(shape.name), 0.06) << shape.name;
  }
}

}  // namespace
}  // namespace facet
