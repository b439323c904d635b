// SPDX-License-Identifier: Apache-2.0
// Drafters on disk: directories and files in every spelling give the same numbers and tensors, and
// what is missing, wrong or made for another model is refused by name.
#include "model/drafter_checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "base/file.h"
#include "model/drafter_names.h"
#include "quant/codec.h"
#include "support/testing.h"

namespace facet::testing {
namespace {

constexpr const char* kEtype = "text/etype-sharing-assistant";
constexpr const char* kDense = "text/dense-keqv-assistant";
constexpr const char* kTiny = "tiny-assistant";
constexpr const char* kTinyFile = "tiny-gguf/facet-tiny-assistant-centroids-q8_0.gguf";
constexpr const char* kEtypeFile = "text/gguf/etype-sharing-assistant-centroids-Q8_0.gguf";

DrafterCheckpoint OpenOrDie(const std::string& relative) {
  auto drafter = DrafterCheckpoint::Open(TestdataPath(relative));
  EXPECT_TRUE(drafter.ok()) << drafter.error().Message();
  return std::move(*drafter);
}

/// What opening says, without the path; empty when nothing is wrong.
std::string Complaint(const std::string& path) {
  const auto drafter = DrafterCheckpoint::Open(path);
  if (drafter.ok()) {
    return "";
  }
  const std::string message = drafter.error().Message();
  return message.starts_with(path) ? message.substr(path.size()) : message;
}

/// A GGUF file taken apart, to be changed and written anew.
struct Parts {
  gguf::Metadata metadata;
  std::vector<CheckpointTensor> tensors;
  std::map<std::string, std::string> data;  // by the name before any change

  explicit Parts(const std::string& relative) {
    const gguf::File file = *gguf::File::Open(TestdataPath(relative));
    metadata = file.metadata();
    for (const gguf::TensorView& view : file.tensors()) {
      tensors.push_back({view.name, view.name, view.type, view.shape, {}});
      data[view.name] = {reinterpret_cast<const char*>(view.data.data()), view.data.size()};
    }
  }

  CheckpointTensor& Tensor(std::string_view name) {
    for (CheckpointTensor& tensor : tensors) {
      if (tensor.source_name == name) {
        return tensor;
      }
    }
    ADD_FAILURE() << name;
    return tensors.front();
  }

  void DropTensor(std::string_view name) {
    std::erase_if(tensors,
                  [name](const CheckpointTensor& tensor) { return tensor.source_name == name; });
  }

  /// Keys that begin so are left out, or get another beginning.
  void RenameKeys(const std::string& from, const std::optional<std::string>& to) {
    gguf::Metadata::Entries entries;
    for (const auto& [key, value] : metadata.entries()) {
      if (!key.starts_with(from)) {
        entries.emplace_back(key, value);
      } else if (to.has_value()) {
        entries.emplace_back(*to + key.substr(from.size()), value);
      }
    }
    metadata = gguf::Metadata(std::move(entries));
  }

  [[nodiscard]] std::string Write() const {
    std::vector<gguf::TensorToWrite> to_write;
    for (const CheckpointTensor& tensor : tensors) {
      to_write.push_back(
          {tensor.name, tensor.type, tensor.shape, gguf::WholeTensor(data.at(tensor.source_name))});
    }
    std::string path = MakeTempDir() + "/drafter.gguf";
    EXPECT_TRUE(gguf::Write(path, metadata, to_write).ok());
    return path;
  }
};

/// The ordering as floats, as files of 1-D tensors in F32 have it.
std::string AsFloats(const std::string& integers) {
  std::string floats;
  for (size_t at = 0; at < integers.size(); at += sizeof(int32_t)) {
    int32_t token = 0;
    std::memcpy(&token, integers.data() + at, sizeof(token));
    const auto value = static_cast<float>(token);
    floats.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return floats;
}

/// As the fork that first converted drafters writes them.
Parts InTheForksSpelling(const std::string& relative) {
  Parts parts(relative);
  parts.Tensor("nextn.pre_projection.weight").name = "assist_pre_proj.weight";
  parts.Tensor("nextn.post_projection.weight").name = "assist_post_proj.weight";
  parts.Tensor("masked_embd_centroids.weight").name = "assist_embed_centroids.weight";
  parts.Tensor("masked_embd_ordering").name = "assist_token_ordering.weight";
  parts.Tensor("masked_embd_ordering").type = TensorType::kF32;
  parts.data["masked_embd_ordering"] = AsFloats(parts.data["masked_embd_ordering"]);
  parts.RenameKeys("gemma4-assistant.embedding_length_out",
                   "gemma4-assistant.backbone_hidden_size");
  parts.RenameKeys("gemma4-assistant.nextn_predict_layers", std::nullopt);
  return parts;
}

/// As programs write them that name the architecture with an underscore.
Parts InTheUnderscoreSpelling(const std::string& relative) {
  Parts parts(relative);
  parts.Tensor("nextn.pre_projection.weight").name = "mtp.pre_projection.weight";
  parts.Tensor("nextn.post_projection.weight").name = "mtp.post_projection.weight";
  parts.Tensor("masked_embd_centroids.weight").name = "mtp.centroids.weight";
  parts.Tensor("masked_embd_ordering").name = "mtp.token_ordering.weight";
  parts.RenameKeys("gemma4-assistant.embedding_length_out", "gemma4_assistant.n_embd_backbone");
  parts.RenameKeys("gemma4-assistant.nextn_predict_layers", std::nullopt);
  parts.RenameKeys("gemma4-assistant.assistant.num_centroids", "gemma4_assistant.n_centroids");
  parts.RenameKeys("gemma4-assistant.assistant.centroid_intermediate_top_k",
                   "gemma4_assistant.centroid_top_k");
  parts.RenameKeys("gemma4-assistant.assistant.", "gemma4_assistant.");
  parts.RenameKeys("gemma4-assistant.", "gemma4_assistant.");
  parts.metadata.Set("general.architecture", gguf::Value::String("gemma4_assistant"));
  return parts;
}

void ExpectSameConfig(const DrafterConfig& a, const DrafterConfig& b) {
  EXPECT_EQ(a.n_embd_target, b.n_embd_target);
  EXPECT_EQ(a.n_centroids, b.n_centroids);
  EXPECT_EQ(a.n_top_centroids, b.n_top_centroids);
  EXPECT_EQ((std::vector{a.body.n_layers, a.body.n_embd, a.body.n_heads, a.body.n_vocab,
                         a.body.n_context, a.body.sliding_window, a.body.n_shared_kv_layers}),
            (std::vector{b.body.n_layers, b.body.n_embd, b.body.n_heads, b.body.n_vocab,
                         b.body.n_context, b.body.sliding_window, b.body.n_shared_kv_layers}));
  EXPECT_EQ(a.body.norm_eps, b.body.norm_eps);
  EXPECT_EQ(a.body.logit_softcap, 0);
  EXPECT_EQ(b.body.logit_softcap, 0);
  ASSERT_EQ(a.body.layers.size(), b.body.layers.size());
  for (size_t l = 0; l < a.body.layers.size(); ++l) {
    EXPECT_EQ(a.body.layers[l].kind, b.body.layers[l].kind) << l;
    EXPECT_EQ(a.body.layers[l].d_head, b.body.layers[l].d_head) << l;
    EXPECT_EQ(a.body.layers[l].n_ff, b.body.layers[l].n_ff) << l;
  }
}

void ExpectSameTensors(const DrafterCheckpoint& a, const DrafterCheckpoint& b) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const CheckpointTensor& tensor : a.tensors()) {
    const CheckpointTensor* other = b.Find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.type, other->type) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape) << tensor.name;
    ASSERT_EQ(tensor.data.size(), other->data.size()) << tensor.name;
    EXPECT_EQ(std::memcmp(tensor.data.data(), other->data.data(), tensor.data.size()), 0)
        << tensor.name;
  }
}

TEST(DrafterCheckpoint, NumbersOfEveryFixture) {
  struct Expected {
    const char* path;
    int n_embd_target, n_embd, n_ff, n_heads, n_centroids, n_top, window;
  };
  const Expected all[] = {
      {kEtype, 64, 32, 128, 4, 64, 8, 16},
      {kDense, 64, 32, 128, 8, 0, 0, 16},
      {kTiny, 128, 64, 192, 4, 64, 8, 64},
      {kEtypeFile, 64, 32, 128, 4, 64, 32, 16},  // the file does not say how many are scored
      {"text/gguf/etype-sharing-assistant-Q4_0.gguf", 64, 32, 128, 4, 0, 0, 16},
      {"text/gguf/dense-keqv-assistant-Q8_0.gguf", 64, 32, 128, 8, 0, 0, 16},
      {kTinyFile, 128, 64, 192, 4, 64, 8, 64},
      {"tiny-gguf/facet-tiny-assistant-q8_0.gguf", 128, 64, 192, 4, 0, 0, 64},
  };
  for (const Expected& e : all) {
    SCOPED_TRACE(e.path);
    const DrafterCheckpoint drafter = OpenOrDie(e.path);
    const DrafterConfig& c = drafter.config();
    EXPECT_EQ((std::vector{c.n_embd_target, c.body.n_embd, c.body.layers[0].n_ff, c.body.n_heads,
                           c.n_centroids, c.n_top_centroids, c.body.sliding_window}),
              (std::vector{e.n_embd_target, e.n_embd, e.n_ff, e.n_heads, e.n_centroids, e.n_top,
                           e.window}));
    EXPECT_EQ(c.body.n_vocab, 2048);
    EXPECT_EQ(c.body.n_layers, 4);
    EXPECT_EQ(c.body.first_shared_layer(), 0);
    for (size_t l = 0; l < 4; ++l) {
      EXPECT_EQ(c.body.layers[l].kind, l == 3 ? LayerKind::kFull : LayerKind::kSliding);
      EXPECT_EQ(c.body.layers[l].d_head, l == 3 ? 64 : 32);
      EXPECT_FALSE(c.body.layers[l].v_is_k);
    }
    EXPECT_EQ(drafter.gguf_metadata() != nullptr, std::string(e.path).ends_with(".gguf"));
    for (const CheckpointTensor& tensor : drafter.tensors()) {
      EXPECT_TRUE(IsDrafterTensorName(tensor.name)) << tensor.name;
    }
  }
}

TEST(DrafterCheckpoint, DirectoryAndFileHaveTheSameTensors) {
  const DrafterCheckpoint of_hf = OpenOrDie(kTiny);
  const DrafterCheckpoint of_gguf = OpenOrDie(kTinyFile);
  ExpectSameConfig(of_hf.config(), of_gguf.config());
  EXPECT_EQ(of_hf.tensors().size() + 1, of_gguf.tensors().size());  // rope_freqs
  for (const CheckpointTensor& tensor : of_hf.tensors()) {
    const CheckpointTensor* other = of_gguf.Find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape) << tensor.name;
  }
  const CheckpointTensor& ordering = *of_hf.Find(kDrafterOrdering);
  EXPECT_EQ(ordering.type, TensorType::kI32);  // I64 in the directory
  ASSERT_EQ(ordering.data.size(), of_gguf.Find(kDrafterOrdering)->data.size());
  EXPECT_EQ(std::memcmp(ordering.data.data(), of_gguf.Find(kDrafterOrdering)->data.data(),
                        ordering.data.size()),
            0);
}

TEST(DrafterCheckpoint, EverySpellingIsTheSameDrafter) {
  const DrafterCheckpoint master = OpenOrDie(kTinyFile);
  for (const std::string& path :
       {InTheForksSpelling(kTinyFile).Write(), InTheUnderscoreSpelling(kTinyFile).Write()}) {
    const auto drafter = DrafterCheckpoint::Open(path);
    ASSERT_TRUE(drafter.ok()) << drafter.error().Message();
    ExpectSameConfig(master.config(), drafter->config());
    ExpectSameTensors(master, *drafter);
  }
}

TEST(DrafterCheckpoint, AThirdArchitectureNameIsKnown) {
  Parts parts = InTheUnderscoreSpelling(kTinyFile);
  parts.RenameKeys("gemma4_assistant.", "gemma4_mtp.");
  parts.metadata.Set("general.architecture", gguf::Value::String("gemma4_mtp"));
  const auto drafter = DrafterCheckpoint::Open(parts.Write());
  ASSERT_TRUE(drafter.ok()) << drafter.error().Message();
  ExpectSameConfig(OpenOrDie(kTinyFile).config(), drafter->config());
}

TEST(DrafterCheckpoint, WhatAFileDoesNotSayIsReadOffTheTensors) {
  Parts parts(kTinyFile);
  for (const char* key : {"embedding_length_out", "assistant.", "attention.key_length",
                          "attention.value_length", "vocab_size", "nextn_predict_layers"}) {
    parts.RenameKeys(std::string("gemma4-assistant.") + key, std::nullopt);
  }
  parts.RenameKeys("tokenizer.", std::nullopt);
  parts.RenameKeys("general.name", std::nullopt);
  const auto drafter = DrafterCheckpoint::Open(parts.Write());
  ASSERT_TRUE(drafter.ok()) << drafter.error().Message();
  const DrafterConfig& c = drafter->config();
  EXPECT_EQ((std::vector{c.n_embd_target, c.n_centroids, c.n_top_centroids, c.body.n_vocab,
                         c.body.layers[0].d_head, c.body.layers[3].d_head}),
            (std::vector{128, 64, 32, 2048, 32, 64}));
  EXPECT_EQ(c.body.name, "drafter.gguf");
}

TEST(DrafterCheckpoint, TheHeadIsDenseWhereTheFileSaysSo) {
  Parts parts(kTinyFile);
  parts.metadata.Set("gemma4-assistant.assistant.use_ordered_embeddings", gguf::Value::Bool(false));
  const auto drafter = DrafterCheckpoint::Open(parts.Write());
  ASSERT_TRUE(drafter.ok()) << drafter.error().Message();
  EXPECT_EQ(drafter->config().n_centroids, 0);
}

TEST(DrafterCheckpoint, BytesInMemoryAreTheSameDrafter) {
  const std::string bytes = ReadOrDie(TestdataPath(kTinyFile));
  const auto drafter = DrafterCheckpoint::FromGgufBytes(std::as_bytes(std::span(bytes)), "bytes");
  ASSERT_TRUE(drafter.ok()) << drafter.error().Message();
  EXPECT_EQ(drafter->path(), "bytes");
  ExpectSameTensors(OpenOrDie(kTinyFile), *drafter);
}

TEST(DrafterCheckpoint, MetadataIsReadBack) {
  for (const char* source : {kTiny, kDense, kEtypeFile}) {
    const DrafterCheckpoint drafter = OpenOrDie(source);
    gguf::Metadata metadata;
    SetGgufDrafterConfig(drafter.config(), &metadata);
    std::vector<gguf::TensorToWrite> tensors;
    for (const CheckpointTensor& tensor : drafter.tensors()) {
      tensors.push_back({tensor.name, tensor.type,
                         tensor.shape.empty() ? std::vector<int64_t>{1} : tensor.shape,
                         gguf::WholeTensor({reinterpret_cast<const char*>(tensor.data.data()),
                                            tensor.data.size()})});
    }
    const std::string path = MakeTempDir() + "/again.gguf";
    ASSERT_TRUE(gguf::Write(path, metadata, tensors).ok());
    const auto again = DrafterCheckpoint::Open(path);
    ASSERT_TRUE(again.ok()) << again.error().Message();
    ExpectSameConfig(drafter.config(), again->config());
    EXPECT_EQ(again->config().body.rope_theta_sliding, drafter.config().body.rope_theta_sliding);
    EXPECT_EQ(again->config().body.layers[0].n_kv_heads,
              drafter.config().body.layers[0].n_kv_heads);
  }
}

TEST(DrafterCheckpoint, OtherFilesAreCalledWhatTheyAre) {
  const std::string wanted = ", wanted \"gemma4-assistant\", a drafter";
  EXPECT_EQ(Complaint(TestdataPath("tiny-gguf/facet-tiny-q8_0.gguf")),
            ", general.architecture: \"gemma4\" (a language model)" + wanted);
  EXPECT_EQ(Complaint(TestdataPath("media/gguf/mmproj-mm-large-f16.gguf")),
            ", general.architecture: \"clip\" (a projector for images or audio)" + wanted);
  Parts other(kTinyFile);
  other.metadata.Set("general.architecture", gguf::Value::String("llama"));
  EXPECT_EQ(Complaint(other.Write()), ", general.architecture: \"llama\"" + wanted);
  other.RenameKeys("general.architecture", std::nullopt);
  EXPECT_EQ(Complaint(other.Write()), ", general.architecture: nothing" + wanted);
  EXPECT_EQ(Complaint(TestdataPath("tiny-hf")),
            "/config.json, model_type: \"gemma4\" (a language model), wanted \"gemma4_assistant\" "
            "or \"gemma4_unified_assistant\", a drafter");
}

TEST(DrafterCheckpoint, MissingAndMisshapenTensorsOfTheHeadAreRefused) {
  const std::pair<const char*, const char*> missing[] = {
      {"token_embd.weight", "missing, wanted shape [2048, 64]"},
      {"nextn.pre_projection.weight", "missing, wanted shape [64, 256]"},
      {"nextn.post_projection.weight", "missing, wanted shape [128, 64]"},
      {"masked_embd_centroids.weight", "missing, wanted shape [64, 64]"},
      {"masked_embd_ordering", "missing, wanted shape [2048]"},
  };
  for (const auto& [name, complaint] : missing) {
    Parts parts(kTinyFile);
    parts.DropTensor(name);
    EXPECT_EQ(Complaint(parts.Write()), fmt::format(", tensor {}: {}", name, complaint));
  }
  Parts parts(kTinyFile);
  parts.Tensor("nextn.pre_projection.weight").shape = {128, 128};
  EXPECT_EQ(Complaint(parts.Write()),
            ", tensor nextn.pre_projection.weight: shape [128, 128], wanted shape [64, 256]");
}

TEST(DrafterCheckpoint, BothSpellingsOfOneTensorAreRefused) {
  Parts parts(kTinyFile);
  CheckpointTensor twice = parts.Tensor("nextn.pre_projection.weight");
  twice.name = "mtp.pre_projection.weight";
  parts.tensors.push_back(twice);
  EXPECT_EQ(Complaint(parts.Write()), ": tensor mtp.pre_projection.weight twice, wanted one");
}

TEST(DrafterCheckpoint, WrongNumbersAreRefused) {
  const auto with = [](const std::string& key, gguf::Value value) {
    Parts parts(kTinyFile);
    parts.metadata.Set("gemma4-assistant." + key, std::move(value));
    return Complaint(parts.Write());
  };
  using gguf::Value;
  EXPECT_EQ(with("embedding_length_out", Value::U32(64)),
            ", tensor nextn.pre_projection.weight: shape [64, 256], wanted shape [64, 128]");
  EXPECT_EQ(with("embedding_length_out", Value::U32(70000)),
            ": target width 70000, wanted 1 to 65536");
  EXPECT_EQ(with("embedding_length_out", Value::String("x")),
            ", gemma4-assistant.embedding_length_out: string, wanted an integer");
  EXPECT_EQ(with("block_count", Value::U32(65)),
            ", gemma4-assistant.attention.sliding_window_pattern: 4 entries, wanted 65, one per "
            "layer");
  EXPECT_EQ(with("assistant.num_centroids", Value::U32(32)),
            ", tensor masked_embd_centroids.weight: shape [64, 64], wanted shape [32, 64]");
  EXPECT_EQ(with("assistant.num_centroids", Value::U32(0)),
            ", gemma4-assistant.assistant.num_centroids: 0, wanted at least 1");
  EXPECT_EQ(with("assistant.centroid_intermediate_top_k", Value::U32(65)),
            ": centroids scored 65, wanted 1 to 64");
  EXPECT_EQ(with("assistant.use_ordered_embeddings", Value::String("yes")),
            ", gemma4-assistant.assistant.use_ordered_embeddings: string, wanted a bool");
  EXPECT_EQ(with("embedding_length_per_layer_input", Value::U32(8)),
            ": per-layer embeddings of width 8, wanted none in a drafter");
  EXPECT_EQ(with("expert_count", Value::U32(8)), ": 8 experts, wanted none in a drafter");
  EXPECT_EQ(with("attention.layer_norm_rms_epsilon", Value::F32(0)),
            ": norm epsilon 0, wanted above 0 and below 1");
}

TEST(DrafterCheckpoint, AnOrderingIsAPermutation) {
  const auto with = [](size_t entry, float value) {
    Parts parts = InTheForksSpelling(kTinyFile);
    std::memcpy(parts.data["masked_embd_ordering"].data() + entry * sizeof(value), &value,
                sizeof(value));
    return Complaint(parts.Write());
  };
  const std::string where = ", tensor assist_token_ordering.weight, entry ";
  const std::string wanted = ", wanted each of 0 to 2047 once";
  EXPECT_EQ(with(5, -1), where + "5: no token" + wanted);
  EXPECT_EQ(with(5, 1.5F), where + "5: no token" + wanted);
  EXPECT_EQ(with(5, std::numeric_limits<float>::quiet_NaN()), where + "5: no token" + wanted);
  EXPECT_EQ(with(5, 3e9F), where + "5: no token" + wanted);
  EXPECT_EQ(with(0, 2048), where + "0: 2048" + wanted);
  Parts twice(kTinyFile);
  std::string& data = twice.data["masked_embd_ordering"];
  std::memcpy(data.data() + 4, data.data(), 4);
  EXPECT_TRUE(Complaint(twice.Write()).starts_with(", tensor masked_embd_ordering, entry 1: "));
  Parts halves(kTinyFile);
  halves.Tensor("masked_embd_ordering").type = TensorType::kF16;
  halves.data["masked_embd_ordering"].resize(4096);
  EXPECT_EQ(Complaint(halves.Write()),
            ", tensor masked_embd_ordering: type F16, wanted I32, I64 or F32");
}

/// A copy of a directory whose config.json is another.
std::string DirectoryWith(const std::string& relative,
                          const std::vector<std::pair<std::string, std::string>>& replacements) {
  std::string config = ReadOrDie(TestdataPath(relative + "/config.json"));
  for (const auto& [from, to] : replacements) {
    const size_t at = config.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    config.replace(at, from.size(), to);
  }
  std::string directory = MakeTempDir();
  EXPECT_TRUE(WriteFile(directory + "/config.json", config).ok());
  EXPECT_TRUE(WriteFile(directory + "/model.safetensors",
                        ReadOrDie(TestdataPath(relative + "/model.safetensors")))
                  .ok());
  return directory;
}

TEST(DrafterCheckpoint, WrongDirectoriesAreRefused) {
  EXPECT_EQ(Complaint(DirectoryWith(kTiny, {})), "");
  EXPECT_EQ(Complaint(DirectoryWith(kTiny, {{"gemma4_assistant", "gemma4_unified_assistant"}})),
            "");
  EXPECT_EQ(Complaint(DirectoryWith(
                kTiny, {{"\"use_ordered_embeddings\": true", "\"use_ordered_embeddings\": 1"}})),
            "/config.json, use_ordered_embeddings: an integer, wanted true or false");
  EXPECT_EQ(Complaint(DirectoryWith(kTiny, {{"\"backbone_hidden_size\": 128,", ""}})),
            "/config.json, backbone_hidden_size: nothing, wanted an integer");
  EXPECT_EQ(Complaint(DirectoryWith(
                kTiny, {{"\"backbone_hidden_size\": 128", "\"backbone_hidden_size\": 64"}})),
            ", tensor nextn.pre_projection.weight: shape [64, 256], wanted shape [64, 128]");
  EXPECT_EQ(Complaint(DirectoryWith(kDense, {{"\"use_ordered_embeddings\": false",
                                              "\"use_ordered_embeddings\": true"}})),
            ", tensor masked_embd_centroids.weight: missing, wanted shape [2048, 32]");
  EXPECT_EQ(Complaint(DirectoryWith(kTiny, {{"\"vocab_size\": 2048", "\"vocab_size\": 1024"}})),
            ", tensor token_embd.weight: shape [2048, 64], wanted shape [1024, 64]");
  EXPECT_EQ(
      Complaint(DirectoryWith(kTiny, {{"\"tie_word_embeddings\": true,\n  \"transformers",
                                       "\"tie_word_embeddings\": false,\n  \"transformers"}})),
      "/config.json, tie_word_embeddings: false, wanted true: the table is the output matrix");
}

TEST(DrafterFits, WhereItWasMadeForTheModel) {
  const std::pair<std::string, std::string> pairs[] = {
      {kEtype, "text/etype-sharing"},
      {kEtypeFile, "text/gguf/etype-sharing-Q4_0.gguf"},
      {kDense, "text/dense-keqv"},
      {kTiny, "tiny-gguf/facet-tiny-q8_0.gguf"},
  };
  for (const auto& [drafter, target] : pairs) {
    const Checkpoint model = *Checkpoint::Open(TestdataPath(target));
    const Status status = CheckFits(OpenOrDie(drafter), model);
    EXPECT_TRUE(status.ok()) << status.error().Message();
  }
}

TEST(DrafterFits, RefusesEachThingThatDiffers) {
  const auto complaint = [](const std::string& drafter_path, const std::string& target) {
    const DrafterCheckpoint drafter = *DrafterCheckpoint::Open(drafter_path);
    const Checkpoint model = *Checkpoint::Open(TestdataPath(target));
    const Status status = CheckFits(drafter, model);
    std::string message = status.ok() ? "" : status.error().Message();
    const auto erase = [&message](const std::string& text) {
      if (const size_t at = message.find(text); at != std::string::npos) {
        message.erase(at, text.size());
      }
    };
    erase(drafter_path);
    erase(TestdataPath("") + "/");
    erase(TestdataPath(""));
    return message;
  };
  EXPECT_EQ(complaint(TestdataPath(kTiny), "text/etype-sharing"),
            ": a drafter for width 128, wanted 64, the width of text/etype-sharing");
  Parts six_heads(kEtypeFile);
  six_heads.metadata.Set("gemma4-assistant.attention.head_count", gguf::Value::U32(6));
  EXPECT_EQ(complaint(six_heads.Write(), "text/dense-keqv"),
            ", layer 0: 6 attention heads, wanted a multiple of 4, the KV heads of layer 10 of "
            "text/dense-keqv");
  Parts small_head(kEtypeFile);
  small_head.Tensor("blk.3.attn_q_norm.weight").shape = {32};
  small_head.data["blk.3.attn_q_norm.weight"].resize(32 * sizeof(float));
  EXPECT_EQ(complaint(small_head.Write(), "text/etype-sharing"),
            ", layer 3: head size 32, wanted 64, that of layer 4 of text/etype-sharing");
  Parts small(kEtypeFile);
  small.RenameKeys("tokenizer.", std::nullopt);
  for (const char* name : {"token_embd.weight", "masked_embd_ordering"}) {
    small.Tensor(name).shape[0] = 1024;
    small.data[name].resize(small.data[name].size() / 2);
  }
  for (int32_t i = 0; i < 1024; ++i) {
    std::memcpy(small.data["masked_embd_ordering"].data() + i * 4, &i, 4);
  }
  EXPECT_EQ(complaint(small.Write(), "text/etype-sharing"),
            ": a vocabulary of 1024 tokens, wanted 2048, that of text/etype-sharing");
}

TEST(DrafterFits, ADonorIsTheLastOfItsKindThatWritesItsOwn) {
  const Checkpoint sharing = *Checkpoint::Open(TestdataPath("text/etype-sharing"));
  EXPECT_EQ(DonorLayer(sharing.config(), LayerKind::kSliding), 3);
  EXPECT_EQ(DonorLayer(sharing.config(), LayerKind::kFull), 4);
  Config config = sharing.config();
  config.n_shared_kv_layers = 6;
  EXPECT_EQ(DonorLayer(config, LayerKind::kFull), std::nullopt);
}

}  // namespace
}  // namespace facet::testing
