// SPDX-License-Identifier: Apache-2.0
#include "convert/synth_projector.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "support/testing.h"

namespace facet {
namespace {

/// Name to type and shape, as testdata/media/gguf/index.json has them.
using Outline = std::map<std::string, std::pair<std::string, std::vector<int64_t>>>;

Outline OutlineOf(const ProjectorShape& shape, const std::string& matrix_type) {
  Outline outline;
  for (const SynthTensor& tensor : ProjectorTensors(shape)) {
    outline[tensor.name] = {tensor.type == TensorType::kBF16 ? matrix_type : "F32", tensor.shape};
  }
  return outline;
}

Json FileInIndex(const std::string& name) {
  const Json index = testing::JsonOrDie(testing::TestdataPath("media/gguf/index.json"));
  for (const Json& file : index.items()) {
    if (file["file"].as_string() == name) {
      return file;
    }
  }
  ADD_FAILURE() << name;
  return {};
}

void ExpectThatOfLlamaCpp(const std::string& name, const ProjectorShape& shape,
                          const std::string& matrix_type) {
  const Json file = FileInIndex(name);
  Outline wanted;
  for (const auto& [tensor, outline] : file["tensors"].members()) {
    std::vector<int64_t> dims;
    for (const Json& d : outline.items()[1].items()) {
      dims.push_back(d.as_int());
    }
    wanted[tensor] = {outline.items()[0].as_string(), dims};
  }
  EXPECT_EQ(OutlineOf(shape, matrix_type), wanted) << name;
  const gguf::Metadata metadata = ProjectorMetadata(shape);
  for (const auto& [key, value] : file["metadata"].members()) {
    if (key.rfind("clip.", 0) != 0) {
      continue;
    }
    const gguf::Value* made = metadata.Find(key);
    ASSERT_NE(made, nullptr) << key;
    if (value.is_string()) {
      EXPECT_EQ(*made->AsString(), value.as_string()) << key;
    } else if (value.is_array()) {
      EXPECT_EQ(made->array_size(), value.items().size()) << key;
    } else if (value.is_bool()) {
      EXPECT_EQ(made->AsBool(), value.as_bool()) << key;
    } else {
      EXPECT_EQ(made->AsDouble(), value.as_double()) << key;
    }
  }
}

TEST(SynthProjector, TensorsAndKeysAreThoseThatLlamaCppWrites) {
  ProjectorShape etype;
  etype.n_embd_text = 64;
  etype.vision = {.n_embd = 64,
                  .n_ff = 128,
                  .n_layers = 3,
                  .n_heads = 2,
                  .n_positions = 256,
                  .is_clipped = true};
  etype.audio = TowerShape{.n_embd = 64,
                           .n_ff = 256,
                           .n_layers = 2,
                           .n_heads = 2,
                           .is_clipped = true,
                           .n_channels = 8,
                           .n_out = 96};
  ExpectThatOfLlamaCpp("mmproj-mm-etype-f16.gguf", etype, "F16");
  ProjectorShape unified;
  unified.n_embd_text = 64;
  unified.vision = {.n_embd = 64, .n_positions = 128};
  unified.audio = TowerShape{.n_embd = 640};
  ExpectThatOfLlamaCpp("mmproj-mm-unified-bf16.gguf", unified, "BF16");
  ProjectorShape large;
  large.n_embd_text = 64;
  large.vision = {.n_embd = 72,
                  .n_ff = 96,
                  .n_layers = 2,
                  .n_heads = 2,
                  .n_positions = 256,
                  .is_standard = true};
  ExpectThatOfLlamaCpp("mmproj-mm-large-f16.gguf", large, "F16");
}

TEST(SynthProjector, ReleasedSizesHaveTheirEncoders) {
  const auto millions = [](const ProjectorShape& shape, char part) {
    int64_t n = 0;
    for (const SynthTensor& tensor : ProjectorTensors(shape)) {
      n += tensor.name[0] == part ? tensor.n_elements() : 0;
    }
    return static_cast<int>(n / 1000000);
  };
  for (const ModelShape& shape : ModelShapes()) {
    const ProjectorShape projector = ProjectorOfShape(shape);
    EXPECT_EQ(projector.n_embd_text, shape.size.n_embd) << shape.name;
    const bool is_small = shape.size.n_embd_per_layer > 0;
    // As the model cards say: encoders of about 150, 550 and 300 million parameters.
    EXPECT_NEAR(millions(projector, 'v'),
                is_small              ? 160
                : shape.name == "12b" ? 35
                                      : 560,
                10)
        << shape.name;
    EXPECT_NEAR(millions(projector, 'a'), is_small ? 300 : 0, 10) << shape.name;
  }
}

}  // namespace
}  // namespace facet
