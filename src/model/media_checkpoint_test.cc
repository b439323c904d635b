// SPDX-License-Identifier: Apache-2.0
// Encoders on disk: both forms give the same tensors (testdata/media/gguf/mapping.json), and what
// is missing or wrong is refused by name.
#include "model/media_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "model/hf_media_names.h"
#include "model/media_model.h"
#include "model/vision_testing.h"
#include "quant/codec.h"

namespace facet::testing {
namespace {

std::string MediaPath(const std::string& relative) { return TestdataPath("media/" + relative); }

/// A copy of an mmproj file, changed.
struct Changes {
  std::function<void(gguf::Metadata*)> metadata;
  std::string without;   ///< tensor
  std::string reshaped;  ///< tensor that becomes [1]
};
std::string CopyWith(const std::string& source, const Changes& changes) {
  const gguf::File file = *gguf::File::Open(source);
  gguf::Metadata metadata = file.metadata();
  if (changes.metadata) {
    changes.metadata(&metadata);
  }
  std::vector<gguf::TensorToWrite> tensors;
  for (const gguf::TensorView& view : file.tensors()) {
    if (view.name == changes.without) {
      continue;
    }
    std::string data(reinterpret_cast<const char*>(view.data.data()), view.data.size());
    if (view.name == changes.reshaped) {
      tensors.push_back(
          {view.name, TensorType::kF32, {1}, gguf::WholeTensor(data.substr(0, sizeof(float)))});
    } else {
      tensors.push_back({view.name, view.type, view.shape, gguf::WholeTensor(std::move(data))});
    }
  }
  const std::string path = MakeTempDir() + "/mmproj.gguf";
  EXPECT_TRUE(gguf::Write(path, metadata, tensors).ok());
  return path;
}

gguf::Metadata Without(const gguf::Metadata& metadata, std::string_view prefix) {
  gguf::Metadata::Entries entries;
  for (const auto& entry : metadata.entries()) {
    if (!entry.first.starts_with(prefix)) {
      entries.push_back(entry);
    }
  }
  return gguf::Metadata(std::move(entries));
}

/// What opening and binding says, without the path; empty when nothing is wrong.
std::string Complaint(const std::string& path) {
  ThreadPool pool(1);
  const auto after_path = [&path](const Error& error) {
    const std::string message = error.Message();
    return message.starts_with(path) ? message.substr(path.size()) : message;
  };
  const Result<MediaCheckpoint> checkpoint = MediaCheckpoint::Open(path);
  if (!checkpoint.ok()) {
    return after_path(checkpoint.error());
  }
  const auto model = MediaModel::Make(*checkpoint, {&KernelsFor(Isa::kScalar), &pool});
  return model.ok() ? "" : after_path(model.error());
}

std::vector<float> FloatsOf(const CheckpointTensor& tensor) {
  int64_t n = 1;
  for (const int64_t size : tensor.shape) {
    n *= size;
  }
  std::vector<float> values(static_cast<size_t>(n));
  FindCodec(tensor.type)->decode(tensor.data.data(), n, values.data());
  return values;
}

TEST(MediaCheckpoint, NumbersOfBothForms) {
  for (const char* source : {"mm-etype", "gguf/mmproj-mm-etype-f16.gguf"}) {
    const MediaConfig c = OpenMediaOrDie(source).config();
    ASSERT_TRUE(c.vision.has_value() && c.audio.has_value());
    EXPECT_EQ(c.n_embd_text, 64);
    EXPECT_EQ(c.image_tokens, 280);
    const VisionConfig& v = *c.vision;
    EXPECT_EQ((std::vector{v.n_layers, v.n_embd, v.n_heads, v.d_head, v.n_ff, v.n_positions}),
              (std::vector{3, 64, 2, 32, 128, 256}));
    EXPECT_FALSE(v.is_unified || v.is_standardised);
    const AudioConfig& a = *c.audio;
    EXPECT_EQ((std::vector{a.n_layers, a.n_embd, a.n_heads, a.n_ff, a.n_conv_channels, a.n_out}),
              (std::vector{2, 64, 2, 256, 8, 96}));
    EXPECT_FALSE(a.is_raw);
  }
  for (const char* source : {"mm-large", "gguf/mmproj-mm-large-f16.gguf"}) {
    const MediaConfig c = OpenMediaOrDie(source).config();
    ASSERT_TRUE(c.vision.has_value());
    EXPECT_FALSE(c.audio.has_value());
    EXPECT_EQ(c.vision->d_head, 36);
    EXPECT_TRUE(c.vision->is_standardised);
  }
  for (const char* source : {"mm-unified", "gguf/mmproj-mm-unified-bf16.gguf"}) {
    const MediaConfig c = OpenMediaOrDie(source).config();
    ASSERT_TRUE(c.vision.has_value() && c.audio.has_value());
    EXPECT_TRUE(c.vision->is_unified && c.audio->is_raw);
    EXPECT_EQ(c.vision->n_positions, 128);
    EXPECT_EQ(c.audio->n_out, 640);
    EXPECT_TRUE(c.traits().sees && c.traits().hears);
    EXPECT_EQ(c.traits().audio_form, AudioForm::kRaw);
  }
}

TEST(MediaCheckpoint, DirectoryAndFileHaveTheSameTensors) {
  const std::pair<const char*, const char*> pairs[] = {
      {"mm-etype", "gguf/mmproj-mm-etype-f16.gguf"},
      {"mm-large", "gguf/mmproj-mm-large-f16.gguf"},
      {"mm-unified", "gguf/mmproj-mm-unified-bf16.gguf"}};
  for (const auto& [directory, file] : pairs) {
    const MediaCheckpoint of_hf = OpenMediaOrDie(directory);
    const MediaCheckpoint of_gguf = OpenMediaOrDie(file);
    EXPECT_EQ(of_hf.tensors().size(), of_gguf.tensors().size());
    for (const CheckpointTensor& tensor : of_gguf.tensors()) {
      const CheckpointTensor* other = of_hf.Find(tensor.name);
      ASSERT_NE(other, nullptr) << tensor.name;
      ASSERT_EQ(other->shape, tensor.shape) << tensor.name;
      const std::vector<float> a = FloatsOf(tensor);
      const std::vector<float> b = FloatsOf(*other);
      for (size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], 2e-7) << tensor.name;
      }
    }
  }
}

TEST(MediaCheckpoint, NamesAreThoseOfTheConverter) {
  int n = 0;
  const Json mapping = JsonOrDie(MediaPath("gguf/mapping.json"));
  for (const auto& [file, entry] : mapping.members()) {
    for (const auto& [gguf_name, tensor] : entry["tensors"].members()) {
      if (file.starts_with("mmproj")) {
        EXPECT_EQ(MediaGgufNameOf(tensor["hf"].as_string()), gguf_name);
        ++n;
      }
    }
  }
  EXPECT_GT(n, 200);
  EXPECT_EQ(MediaGgufNameOf("model.vision_tower.encoder.layers.x.input_layernorm.weight"),
            std::nullopt);
  EXPECT_EQ(MediaGgufNameOf("model.layers.0.input_layernorm.weight"), std::nullopt);
}

TEST(MediaCheckpoint, WhatAFileDoesNotSayIsReadOffTheTensors) {
  const std::string source = MediaPath("gguf/mmproj-mm-etype-f16.gguf");
  const std::string path = CopyWith(
      source,
      {.metadata = [](gguf::Metadata* metadata) { *metadata = Without(*metadata, "clip."); },
       .without = "",
       .reshaped = ""});
  EXPECT_EQ(Complaint(path), "");
  const MediaConfig c = (*MediaCheckpoint::Open(path)).config();
  ASSERT_TRUE(c.vision.has_value() && c.audio.has_value());
  EXPECT_EQ(c.vision->n_layers, 3);
  EXPECT_EQ(c.vision->n_heads, 2);
  EXPECT_EQ(c.audio->n_layers, 2);
  EXPECT_EQ(c.audio->n_heads, 2);
}

TEST(MediaCheckpoint, EveryMissingOrMisshapenTensorIsRefused) {
  for (const char* file : {"gguf/mmproj-mm-large-f16.gguf", "gguf/mmproj-mm-unified-bf16.gguf"}) {
    const std::string source = MediaPath(file);
    const MediaCheckpoint whole = OpenMediaOrDie(file);
    for (const CheckpointTensor& tensor : whole.tensors()) {
      if (tensor.name != "v.std_bias") {  // its absence means that nothing is standardised
        const std::string missing =
            CopyWith(source, {.metadata = {}, .without = tensor.name, .reshaped = ""});
        EXPECT_NE(Complaint(missing), "") << tensor.name;
      }
      const std::string misshapen =
          CopyWith(source, {.metadata = {}, .without = "", .reshaped = tensor.name});
      EXPECT_NE(Complaint(misshapen), "") << tensor.name;
    }
  }
  const std::string source = MediaPath("gguf/mmproj-mm-large-f16.gguf");
  EXPECT_EQ(Complaint(CopyWith(
                source, {.metadata = {}, .without = "v.blk.1.ffn_up.weight", .reshaped = ""})),
            ", tensor v.blk.1.ffn_up.weight: missing, wanted shape [96, 72]");
  EXPECT_EQ(Complaint(CopyWith(source, {.metadata = {}, .without = "", .reshaped = "v.std_scale"})),
            ", tensor v.std_scale: shape [1], wanted [72]");
}

TEST(MediaCheckpoint, WrongKeysAreRefused) {
  const std::string source = MediaPath("gguf/mmproj-mm-large-f16.gguf");
  const auto with = [&source](const std::string& key, const gguf::Value& value) {
    return Complaint(
        CopyWith(source, {.metadata = [&](gguf::Metadata* metadata) { metadata->Set(key, value); },
                          .without = "",
                          .reshaped = ""}));
  };
  EXPECT_EQ(with("clip.vision.block_count", gguf::Value::U32(513)),
            ", vision layers: 513, wanted 1 to 512");
  EXPECT_EQ(with("clip.vision.embedding_length", gguf::Value::U32(70000)),
            ", vision width: 70000, wanted 1 to 65536");
  EXPECT_EQ(with("clip.vision.patch_size", gguf::Value::U32(14)),
            ", clip.vision.patch_size: 14, wanted 16");
  EXPECT_EQ(with("clip.vision.projector_type", gguf::Value::String("gemma3")),
            ", clip.vision.projector_type: \"gemma3\", wanted \"gemma4v\" or \"gemma4uv\"");
  EXPECT_EQ(with("clip.vision.block_count", gguf::Value::String("2")),
            ", clip.vision.block_count: string, wanted an integer");
  EXPECT_EQ(with("clip.has_vision_encoder", gguf::Value::Bool(false)),
            ": no encoder, wanted an encoder of pictures or of sound");
  EXPECT_EQ(with("clip.use_gelu", gguf::Value::Bool(false)), "");
}

TEST(MediaCheckpoint, ModelAndProjectorAreToldApart) {
  EXPECT_EQ(
      Complaint(MediaPath("gguf/mm-etype-bf16.gguf")),
      ", general.architecture: \"gemma4\" (a language model), wanted \"clip\", a projector for "
      "images or audio");
  const std::string projector = MediaPath("gguf/mmproj-mm-etype-f16.gguf");
  EXPECT_EQ(Checkpoint::Open(projector).error().Message(),
            projector +
                ", general.architecture: \"clip\" (a projector for images or audio), wanted "
                "\"gemma4\"");
}

TEST(MediaCheckpoint, FitsAModelOfItsWidth) {
  const MediaCheckpoint media = OpenMediaOrDie("gguf/mmproj-mm-etype-f16.gguf");
  EXPECT_TRUE(CheckFits(media, *Checkpoint::Open(MediaPath("mm-etype"))).ok());
  const std::string path =
      CopyWith(MediaPath("gguf/mmproj-mm-large-f16.gguf"),
               {.metadata = {}, .without = "", .reshaped = "mm.input_projection.weight"});
  const MediaCheckpoint narrow = *MediaCheckpoint::Open(path);
  const Status status = CheckFits(narrow, *Checkpoint::Open(MediaPath("mm-large")));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().Message(),
            path + ": soft tokens of width 1, wanted 64, the width of " + MediaPath("mm-large"));
}

}  // namespace
}  // namespace facet::testing
