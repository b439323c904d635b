// SPDX-License-Identifier: Apache-2.0
#include "convert/synth_projector.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace facet {
namespace {

constexpr int kPatch = 16;
constexpr int kColours = 3;
constexpr int kMelBands = 128;
constexpr int kKernel = 3;
constexpr int kDepthwiseKernel = 5;
/// Bounds of clipped linears that random activations hardly reach.
constexpr float kBound = 8.0F;
/// Half of what softplus gives for the released scales, which are near 0.
constexpr float kPerDimScale = 0.7F;

/// Collects tensors under a prefix.
class Tensors {
 public:
  void Matrix(const std::string& name, std::vector<int64_t> shape, int64_t fan_in) {
    all_.push_back({name + ".weight", TensorType::kBF16, std::move(shape), fan_in, 0});
  }
  void Matrix(const std::string& name, int64_t n_out, int64_t n_in) {
    Matrix(name, {n_out, n_in}, n_in);
  }
  /// One that stays F32 whatever the file's type.
  void Exact(const std::string& name, std::vector<int64_t> shape, int64_t fan_in) {
    all_.push_back({name + ".weight", TensorType::kF32, std::move(shape), fan_in, 0});
  }
  void Vector(const std::string& full_name, int64_t n, float value) {
    all_.push_back({full_name, TensorType::kF32, {n}, 0, value});
  }
  void Norm(const std::string& name, int64_t n) { Vector(name + ".weight", n, 1.0F); }
  void Linear(bool is_clipped, const std::string& name, int64_t n_out, int64_t n_in) {
    Matrix(name, n_out, n_in);
    for (const char* end : {"input", "output"}) {
      if (is_clipped) {
        Vector(fmt::format("{}.{}_min", name, end), 1, -kBound);
        Vector(fmt::format("{}.{}_max", name, end), 1, kBound);
      }
    }
  }
  std::vector<SynthTensor> Take() { return std::move(all_); }

 private:
  std::vector<SynthTensor> all_;
};

void AddVisionEmbedder(const TowerShape& v, int n_embd_text, Tensors* list) {
  const int64_t width = int64_t{kColours} * 9 * kPatch * kPatch;
  list->Norm("v.patch_norm.1", width);
  list->Vector("v.patch_norm.1.bias", width, 0);
  list->Exact("v.patch_embd", {v.n_embd, width}, width);
  list->Vector("v.patch_embd.bias", v.n_embd, 0);
  list->Norm("v.patch_norm.2", v.n_embd);
  list->Vector("v.patch_norm.2.bias", v.n_embd, 0);
  list->Exact("v.position_embd", {2, v.n_positions, v.n_embd}, v.n_embd);
  list->Norm("v.patch_norm.3", v.n_embd);
  list->Vector("v.patch_norm.3.bias", v.n_embd, 0);
  list->Matrix("mm.input_projection", n_embd_text, v.n_embd);
}

void AddVisionLayer(const TowerShape& v, int l, Tensors* list) {
  const std::string layer = fmt::format("v.blk.{}.", l);
  for (const char* norm : {"ln1", "ln2", "attn_post_norm", "ffn_post_norm"}) {
    list->Norm(layer + norm, v.n_embd);
  }
  for (const char* norm : {"attn_q_norm", "attn_k_norm"}) {
    list->Norm(layer + norm, v.n_embd / v.n_heads);
  }
  for (const char* linear : {"attn_q", "attn_k", "attn_v", "attn_out"}) {
    list->Linear(v.is_clipped, layer + linear, v.n_embd, v.n_embd);
  }
  list->Linear(v.is_clipped, layer + "ffn_gate", v.n_ff, v.n_embd);
  list->Linear(v.is_clipped, layer + "ffn_up", v.n_ff, v.n_embd);
  list->Linear(v.is_clipped, layer + "ffn_down", v.n_embd, v.n_ff);
}

void AddVision(const TowerShape& v, int n_embd_text, Tensors* list) {
  if (v.n_layers == 0) {
    AddVisionEmbedder(v, n_embd_text, list);
    return;
  }
  list->Matrix("v.patch_embd", {v.n_embd, kColours, kPatch, kPatch},
               int64_t{kColours} * kPatch * kPatch);
  list->Exact("v.position_embd", {2, v.n_positions, v.n_embd}, v.n_embd);
  for (int l = 0; l < v.n_layers; ++l) {
    AddVisionLayer(v, l, list);
  }
  if (v.is_standard) {
    list->Vector("v.std_bias", v.n_embd, 0);
    list->Vector("v.std_scale", v.n_embd, 1);
  }
  list->Matrix("mm.input_projection", n_embd_text, v.n_embd);
}

void AddAudioLayer(const TowerShape& a, int l, Tensors* list) {
  const std::string layer = fmt::format("a.blk.{}.", l);
  for (const char* norm : {"ffn_norm", "ffn_post_norm", "ffn_norm_1", "ffn_post_norm_1",
                           "attn_pre_norm", "attn_post_norm", "conv_norm", "norm_conv", "ln2"}) {
    list->Norm(layer + norm, a.n_embd);
  }
  for (const char* end : {"", "_1"}) {
    list->Linear(a.is_clipped, layer + "ffn_up" + end, a.n_ff, a.n_embd);
    list->Linear(a.is_clipped, layer + "ffn_down" + end, a.n_embd, a.n_ff);
  }
  for (const char* linear : {"attn_q", "attn_k", "attn_v", "attn_out"}) {
    list->Linear(a.is_clipped, layer + linear, a.n_embd, a.n_embd);
  }
  list->Matrix(layer + "attn_k_rel", a.n_embd, a.n_embd);
  list->Vector(layer + "per_dim_scale.weight", a.n_embd / a.n_heads, kPerDimScale);
  list->Linear(a.is_clipped, layer + "conv_pw1", int64_t{2} * a.n_embd, a.n_embd);
  list->Exact(layer + "conv_dw", {a.n_embd, kDepthwiseKernel}, kDepthwiseKernel);
  list->Linear(a.is_clipped, layer + "conv_pw2", a.n_embd, a.n_embd);
}

void AddAudio(const TowerShape& a, int n_embd_text, Tensors* list) {
  if (a.n_layers == 0) {
    list->Matrix("mm.a.input_projection", n_embd_text, a.n_embd);
    return;
  }
  constexpr int64_t kTaps = int64_t{kKernel} * kKernel;
  list->Exact("a.conv1d.0", {kMelBands, 1, kKernel, kKernel}, kTaps);
  list->Norm("a.conv1d.0.norm", kMelBands);
  list->Exact("a.conv1d.1", {a.n_channels, kMelBands, kKernel, kKernel}, kTaps * kMelBands);
  list->Norm("a.conv1d.1.norm", a.n_channels);
  const int64_t width = int64_t{a.n_channels} * kMelBands / 4;
  list->Exact("a.input_projection", {a.n_embd, width}, width);
  for (int l = 0; l < a.n_layers; ++l) {
    AddAudioLayer(a, l, list);
  }
  list->Matrix("a.pre_encode.out", a.n_out, a.n_embd);
  list->Vector("a.pre_encode.out.bias", a.n_out, 0);
  list->Matrix("mm.a.input_projection", n_embd_text, a.n_out);
}

void SetTower(const std::string& name, const TowerShape& tower, int n_embd_text,
              gguf::Metadata* metadata) {
  using gguf::Value;
  const auto set = [&](const char* key, int value) {
    metadata->Set(fmt::format("clip.{}.{}", name, key), Value::U32(static_cast<uint32_t>(value)));
  };
  constexpr float kEps = 1e-6F;
  metadata->Set(fmt::format("clip.has_{}_encoder", name), Value::Bool(true));
  set("projection_dim", n_embd_text);
  set("embedding_length", tower.n_embd);
  set("feed_forward_length", tower.n_ff);
  set("block_count", tower.n_layers);
  set("attention.head_count", tower.n_heads);
  metadata->Set(fmt::format("clip.{}.attention.layer_norm_epsilon", name), Value::F32(kEps));
}

}  // namespace

ProjectorShape ProjectorOfShape(const ModelShape& shape) {
  constexpr TowerShape kSmall{.n_embd = 768,
                              .n_ff = 3072,
                              .n_layers = 16,
                              .n_heads = 12,
                              .n_positions = 10240,
                              .is_clipped = true};
  constexpr TowerShape kLarge{.n_embd = 1152,
                              .n_ff = 4304,
                              .n_layers = 27,
                              .n_heads = 16,
                              .n_positions = 10240,
                              .is_standard = true};
  constexpr TowerShape kConformer{.n_embd = 1024,
                                  .n_ff = 4096,
                                  .n_layers = 12,
                                  .n_heads = 8,
                                  .is_clipped = true,
                                  .n_channels = 32,
                                  .n_out = 1536};
  constexpr TowerShape kRaw{.n_embd = 640};
  ProjectorShape projector;
  projector.n_embd_text = shape.size.n_embd;
  if (shape.size.n_embd_per_layer > 0) {
    projector.vision = kSmall;
    projector.audio = kConformer;
  } else if (shape.name == "12b") {
    projector.vision = {.n_embd = shape.size.n_embd, .n_positions = 1120};
    projector.audio = kRaw;
  } else {
    projector.vision = kLarge;
  }
  return projector;
}

std::vector<SynthTensor> ProjectorTensors(const ProjectorShape& shape) {
  Tensors list;
  AddVision(shape.vision, shape.n_embd_text, &list);
  if (shape.audio) {
    AddAudio(*shape.audio, shape.n_embd_text, &list);
  }
  return list.Take();
}

gguf::Metadata ProjectorMetadata(const ProjectorShape& shape) {
  using gguf::Value;
  constexpr uint32_t kImageSize = 224;
  gguf::Metadata metadata;
  metadata.Set("general.architecture", Value::String("clip"));
  SetTower("vision", shape.vision, shape.n_embd_text, &metadata);
  const bool has_tower = shape.vision.n_layers > 0;
  metadata.Set("clip.vision.projector_type", Value::String(has_tower ? "gemma4v" : "gemma4uv"));
  metadata.Set("clip.vision.image_size", Value::U32(kImageSize));
  metadata.Set("clip.vision.patch_size", Value::U32(kPatch));
  metadata.Set("clip.vision.image_mean", Value::F32s({0, 0, 0}));
  metadata.Set("clip.vision.image_std", Value::F32s({1, 1, 1}));
  if (shape.audio) {
    SetTower("audio", *shape.audio, shape.n_embd_text, &metadata);
    const bool has_layers = shape.audio->n_layers > 0;
    metadata.Set("clip.audio.projector_type", Value::String(has_layers ? "gemma4a" : "gemma4ua"));
    metadata.Set("clip.audio.num_mel_bins", Value::U32(kMelBands));
  }
  return metadata;
}

}  // namespace facet
