// SPDX-License-Identifier: Apache-2.0
#include "model/media_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "media/prepare_image.h"
#include "model/gguf_keys.h"
#include "model/json_members.h"

namespace facet {
namespace {

constexpr int kMaxLayers = 512;
constexpr int kMaxWidth = 65536;
constexpr int kPatchSide = 16;

/// What a file says of an encoder; 0: nothing.
struct Numbers {
  int n_layers = 0;
  int n_embd = 0;
  int n_heads = 0;
  int d_head = 0;
  int n_ff = 0;
};

/// Shapes of the tensors.
class Shapes {
 public:
  explicit Shapes(const MediaTensorFinder& find) : find_(find) {}

  [[nodiscard]] bool Has(std::string_view name) const { return find_(name) != nullptr; }

  /// Length of an axis, or 0 when there is no such tensor or it is too large for a width.
  [[nodiscard]] int Axis(std::string_view name, size_t axis) const {
    const CheckpointTensor* tensor = find_(name);
    const bool is_usable =
        tensor != nullptr && axis < tensor->shape.size() && tensor->shape[axis] <= kMaxWidth;
    return is_usable ? static_cast<int>(tensor->shape[axis]) : 0;
  }

  /// How many layers have `name`, "PREFIX.N.name", counted from 0 without a gap.
  [[nodiscard]] int Layers(std::string_view prefix, std::string_view name) const {
    int n = 0;
    while (n < kMaxLayers && Has(fmt::format("{}.{}.{}", prefix, n, name))) {
      ++n;
    }
    return n;
  }

 private:
  const MediaTensorFinder& find_;
};

/// Fills numbers in where a file says nothing of them.
void Otherwise(int value, int* number) {
  if (*number == 0) {
    *number = value;
  }
}

Status CheckRange(const std::string& where, int value, int most) {
  if (value < 1 || value > most) {
    return Refuse(where, fmt::format("{}", value), fmt::format("1 to {}", most));
  }
  return {};
}

/// A vision tower, or the 12B's embedder.
Result<VisionConfig> CompleteVision(bool is_unified, const Numbers& said, const std::string& name,
                                    const Shapes& shapes) {
  const std::string where = name + ", vision";
  VisionConfig c;
  c.is_unified = is_unified;
  c.n_positions = shapes.Axis("v.position_embd.weight", 1);
  c.n_embd = is_unified ? shapes.Axis("v.patch_embd.weight", 0) : said.n_embd;
  Otherwise(shapes.Axis("v.position_embd.weight", 2), &c.n_embd);
  FACET_RETURN_IF_ERROR(CheckRange(where + " width", c.n_embd, kMaxWidth));
  FACET_RETURN_IF_ERROR(CheckRange(where + " positions", c.n_positions, kMaxWidth));
  if (is_unified) {
    return c;
  }
  c.n_layers = said.n_layers;
  c.n_heads = said.n_heads;
  c.d_head = said.d_head;
  c.n_ff = said.n_ff;
  Otherwise(shapes.Layers("v.blk", "ln1.weight"), &c.n_layers);
  Otherwise(shapes.Axis("v.blk.0.attn_q_norm.weight", 0), &c.d_head);
  Otherwise(shapes.Axis("v.blk.0.ffn_gate.weight", 0), &c.n_ff);
  Otherwise(shapes.Axis("v.blk.0.attn_q.weight", 0) / std::max(1, c.d_head), &c.n_heads);
  c.is_standardised = shapes.Has("v.std_bias");
  FACET_RETURN_IF_ERROR(CheckRange(where + " layers", c.n_layers, kMaxLayers));
  FACET_RETURN_IF_ERROR(CheckRange(where + " heads", c.n_heads, kMaxWidth));
  FACET_RETURN_IF_ERROR(CheckRange(where + " head size", c.d_head, kMaxWidth / c.n_heads));
  FACET_RETURN_IF_ERROR(CheckRange(where + " feed-forward width", c.n_ff, kMaxWidth));
  if (c.d_head % 4 != 0) {  // pairs that turn, in each half
    return Refuse(where + " head size", fmt::format("{}", c.d_head), "a multiple of 4");
  }
  return c;
}

/// An audio tower, or the 12B's embedder.
Result<AudioConfig> CompleteAudio(bool is_raw, const Numbers& said, const std::string& name,
                                  const Shapes& shapes) {
  const std::string where = name + ", audio";
  AudioConfig c;
  c.is_raw = is_raw;
  if (is_raw) {
    c.n_embd = c.n_out = shapes.Axis("mm.a.input_projection.weight", 1);
    FACET_RETURN_IF_ERROR(CheckRange(where + " width", c.n_embd, kMaxWidth));
    return c;
  }
  c.n_layers = said.n_layers;
  c.n_embd = said.n_embd;
  c.n_heads = said.n_heads;
  c.n_ff = said.n_ff;
  c.n_conv_channels = shapes.Axis("a.conv1d.1.weight", 0);
  c.n_out = shapes.Axis("a.pre_encode.out.weight", 0);
  Otherwise(shapes.Layers("a.blk", "ln2.weight"), &c.n_layers);
  Otherwise(shapes.Axis("a.input_projection.weight", 0), &c.n_embd);
  Otherwise(shapes.Axis("a.blk.0.ffn_up.weight", 0), &c.n_ff);
  Otherwise(c.n_embd / std::max(1, shapes.Axis("a.blk.0.per_dim_scale.weight", 0)), &c.n_heads);
  FACET_RETURN_IF_ERROR(CheckRange(where + " layers", c.n_layers, kMaxLayers));
  FACET_RETURN_IF_ERROR(CheckRange(where + " width", c.n_embd, kMaxWidth));
  FACET_RETURN_IF_ERROR(CheckRange(where + " heads", c.n_heads, c.n_embd));
  FACET_RETURN_IF_ERROR(CheckRange(where + " feed-forward width", c.n_ff, kMaxWidth));
  FACET_RETURN_IF_ERROR(CheckRange(where + " convolution channels", c.n_conv_channels, kMaxWidth));
  FACET_RETURN_IF_ERROR(CheckRange(where + " output width", c.n_out, kMaxWidth));
  if (c.n_embd % c.n_heads != 0) {
    return Refuse(where + " width", fmt::format("{}", c.n_embd),
                  fmt::format("a multiple of {} heads", c.n_heads));
  }
  return c;
}

/// Both projections lead into the same text model.
Status CompleteWidth(const std::string& name, const Shapes& shapes, MediaConfig* c) {
  const int vision = shapes.Axis("mm.input_projection.weight", 0);
  const int audio = shapes.Axis("mm.a.input_projection.weight", 0);
  if (!c->vision.has_value() && !c->audio.has_value()) {
    return Refuse(name, "no encoder", "an encoder of pictures or of sound");
  }
  if (c->vision.has_value() && c->audio.has_value() && vision != audio) {
    return Refuse(name, fmt::format("soft tokens of widths {} and {}", vision, audio),
                  "one width for pictures and sound");
  }
  c->n_embd_text = c->vision.has_value() ? vision : audio;
  return CheckRange(name + ", width of the soft tokens", c->n_embd_text, kMaxWidth);
}

// --- GGUF

Status CheckArchitecture(const gguf::Metadata& metadata, const std::string& name) {
  const std::string where = name + ", general.architecture";
  const gguf::Value* value = metadata.Find("general.architecture");
  const std::string* text = value != nullptr ? value->AsString() : nullptr;
  if (text == nullptr) {
    return Refuse(where, "nothing", "\"clip\"");
  }
  if (*text == "clip") {
    return {};
  }
  const bool is_text = text->starts_with("gemma4");
  return Refuse(where, fmt::format("\"{}\"{}", *text, is_text ? " (a language model)" : ""),
                "\"clip\", a projector for images or audio");
}

/// Which of two projectors an encoder has, `type`.tower or .unified; nothing when there is no such
/// encoder. Old files name the projector of pictures without "vision", and some name none.
struct ProjectorKinds {
  std::string_view part;        ///< "vision"
  std::string_view tower;       ///< "gemma4v"
  std::string_view unified;     ///< "gemma4uv"
  std::string_view of_tower;    ///< a tensor that only it has
  std::string_view projection;  ///< a tensor that both have
};
constexpr ProjectorKinds kVisionKinds = {"vision", "gemma4v", "gemma4uv", "v.blk.0.ln1.weight",
                                         "mm.input_projection.weight"};
constexpr ProjectorKinds kAudioKinds = {"audio", "gemma4a", "gemma4ua", "a.blk.0.ln2.weight",
                                        "mm.a.input_projection.weight"};

Result<std::optional<bool>> IsUnified(const gguf::Metadata& metadata, const std::string& name,
                                      const ProjectorKinds& kinds, const Shapes& shapes) {
  const gguf::Value* has = metadata.Find(fmt::format("clip.has_{}_encoder", kinds.part));
  const bool is_there =
      has != nullptr ? has->AsBool().value_or(false) : shapes.Has(kinds.projection);
  if (!is_there) {
    return std::optional<bool>();
  }
  std::string key = fmt::format("clip.{}.projector_type", kinds.part);
  const gguf::Value* value = metadata.Find(key);
  if (value == nullptr && kinds.part == kVisionKinds.part) {
    key = "clip.projector_type";
    value = metadata.Find(key);
  }
  if (value == nullptr) {
    return std::optional<bool>(!shapes.Has(kinds.of_tower));
  }
  const std::string* type = value->AsString();
  if (type == nullptr || (*type != kinds.tower && *type != kinds.unified)) {
    return Refuse(
        fmt::format("{}, {}", name, key),
        type == nullptr ? std::string(gguf::NameOf(value->type)) : fmt::format("\"{}\"", *type),
        fmt::format("\"{}\" or \"{}\"", kinds.tower, kinds.unified));
  }
  return std::optional<bool>(*type == kinds.unified);
}

Result<Numbers> ReadNumbers(const GgufKeys& keys) {
  Numbers n;
  FACET_ASSIGN(n.n_layers, keys.Int("block_count", 0));
  FACET_ASSIGN(n.n_embd, keys.Int("embedding_length", 0));
  FACET_ASSIGN(n.n_heads, keys.Int("attention.head_count", 0));
  FACET_ASSIGN(n.n_ff, keys.Int("feed_forward_length", 0));
  return n;
}

// --- Hugging Face

/// A number of config.json that is built into our encoders.
struct BuiltIn {
  std::string_view key;
  int value;
};
constexpr std::array kVisionBuiltIn = {BuiltIn{"patch_size", kPatchSide},
                                       BuiltIn{"pooling_kernel_size", 3}};
constexpr std::array kAudioBuiltIn = {
    BuiltIn{"attention_chunk_size", 12}, BuiltIn{"attention_context_left", 13},
    BuiltIn{"attention_context_right", 0}, BuiltIn{"conv_kernel_size", 5}};

template <size_t N>
Status CheckBuiltIn(const JsonMembers& members, const std::array<BuiltIn, N>& numbers) {
  for (const BuiltIn& number : numbers) {
    FACET_ASSIGN(const int found, members.Int(number.key, number.value));
    if (found != number.value) {
      return Refuse(members.Where(number.key), fmt::format("{}", found),
                    fmt::format("{}", number.value));
    }
  }
  return {};
}

Result<Numbers> ReadNumbers(const JsonMembers& members) {
  Numbers n;
  FACET_ASSIGN(n.n_layers, members.Int("num_hidden_layers", 0));
  FACET_ASSIGN(n.n_embd, members.Int("hidden_size", 0));
  FACET_ASSIGN(n.n_heads, members.Int("num_attention_heads", 0));
  FACET_ASSIGN(n.d_head, members.Int("head_dim", 0));
  FACET_ASSIGN(n.n_ff, members.Int("intermediate_size", 0));
  return n;
}

Result<bool> IsOfType(const JsonMembers& members, std::string_view tower,
                      std::string_view unified) {
  const std::string& type = members["model_type"].as_string();
  if (type != tower && type != unified) {
    return Refuse(members.Where("model_type"), fmt::format("\"{}\"", type),
                  fmt::format("\"{}\" or \"{}\"", tower, unified));
  }
  return type == unified;
}

Status ReadImageTokens(const Json& processor, const std::string& directory, int* n) {
  const JsonMembers members(processor["image_processor"],
                            directory + "/processor_config.json, image_processor");
  FACET_ASSIGN(*n, members.Int("max_soft_tokens", *n));
  if (std::find(kImageBudgets.begin(), kImageBudgets.end(), *n) == kImageBudgets.end()) {
    return Refuse(members.Where("max_soft_tokens"), fmt::format("{}", *n),
                  fmt::format("one of {}", fmt::join(kImageBudgets, ", ")));
  }
  return {};
}

}  // namespace

Result<MediaConfig> MediaConfigFromGguf(const gguf::Metadata& metadata, const std::string& name,
                                        const MediaTensorFinder& find) {
  FACET_RETURN_IF_ERROR(CheckArchitecture(metadata, name));
  const Shapes shapes(find);
  MediaConfig c;
  FACET_ASSIGN(const auto unified_vision, IsUnified(metadata, name, kVisionKinds, shapes));
  if (unified_vision.has_value()) {
    const GgufKeys keys(metadata, name, "clip.vision");
    FACET_ASSIGN(const int patch_side, keys.Int("patch_size", kPatchSide));
    if (patch_side != kPatchSide) {
      return Refuse(keys.Where("patch_size"), fmt::format("{}", patch_side),
                    fmt::format("{}", kPatchSide));
    }
    FACET_ASSIGN(const Numbers numbers, ReadNumbers(keys));
    FACET_ASSIGN(c.vision, CompleteVision(*unified_vision, numbers, name, shapes));
  }
  FACET_ASSIGN(const auto raw_audio, IsUnified(metadata, name, kAudioKinds, shapes));
  if (raw_audio.has_value()) {
    FACET_ASSIGN(const Numbers numbers, ReadNumbers(GgufKeys(metadata, name, "clip.audio")));
    FACET_ASSIGN(c.audio, CompleteAudio(*raw_audio, numbers, name, shapes));
  }
  FACET_RETURN_IF_ERROR(CompleteWidth(name, shapes, &c));
  return c;
}

Result<MediaConfig> MediaConfigFromHf(const Json& config, const Json& processor,
                                      const std::string& directory, const MediaTensorFinder& find) {
  const Shapes shapes(find);
  const std::string path = directory + "/config.json";
  MediaConfig c;
  if (config["vision_config"].is_object() && shapes.Has(kVisionKinds.projection)) {
    const JsonMembers vision(config["vision_config"], path + ", vision_config");
    FACET_ASSIGN(const bool is_unified, IsOfType(vision, "gemma4_vision", "gemma4_unified_vision"));
    FACET_RETURN_IF_ERROR(CheckBuiltIn(vision, kVisionBuiltIn));
    FACET_ASSIGN(const Numbers numbers, ReadNumbers(vision));
    FACET_ASSIGN(c.vision, CompleteVision(is_unified, numbers, directory, shapes));
  }
  if (config["audio_config"].is_object() && shapes.Has(kAudioKinds.projection)) {
    const JsonMembers audio(config["audio_config"], path + ", audio_config");
    FACET_ASSIGN(const bool is_raw, IsOfType(audio, "gemma4_audio", "gemma4_unified_audio"));
    FACET_RETURN_IF_ERROR(CheckBuiltIn(audio, kAudioBuiltIn));
    FACET_ASSIGN(const Numbers numbers, ReadNumbers(audio));
    FACET_ASSIGN(c.audio, CompleteAudio(is_raw, numbers, directory, shapes));
  }
  FACET_RETURN_IF_ERROR(ReadImageTokens(processor, directory, &c.image_tokens));
  FACET_RETURN_IF_ERROR(CompleteWidth(directory, shapes, &c));
  return c;
}

}  // namespace facet
