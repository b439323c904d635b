// SPDX-License-Identifier: Apache-2.0
#include "convert/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/random.h"
#include "convert/quantize_plan.h"
#include "convert/shapes.h"
#include "convert/synth_projector.h"
#include "convert/synth_tensors.h"
#include "model/drafter_checkpoint.h"
#include "model/drafter_names.h"
#include "quant/codec.h"
#include "text/vocab.h"

namespace facet {
namespace {

/// Channel pairs of a full head that turn (reference.md 1.6); the others have the factor 1e30.
constexpr int kTurningPairs = 64;
constexpr float kStillFactor = 1e30F;

/// Sets each tensor's type to what `facet quantize` would make of it; returns general.file_type.
Result<uint32_t> ChooseTypes(const std::string& file_type, std::vector<SynthTensor>* tensors) {
  std::vector<TensorOutline> outlines;
  outlines.reserve(tensors->size());
  for (const SynthTensor& tensor : *tensors) {
    outlines.push_back({tensor.name, tensor.type, tensor.shape});
  }
  QuantizeChoice choice;
  choice.file_type = file_type;
  FACET_ASSIGN(const QuantizePlan plan, PlanQuantization("--type", outlines, choice));
  TensorType of_queries = TensorType::kBF16;
  for (size_t i = 0; i < tensors->size(); ++i) {
    SynthTensor& tensor = (*tensors)[i];
    tensor.type = plan.types[i];
    of_queries = tensor.name == "blk.0.attn_q.weight" ? tensor.type : of_queries;
  }
  for (SynthTensor& tensor : *tensors) {
    if (tensor.type == TensorType::kI32) {
      continue;
    }
    if (tensor.name.starts_with("nextn.") || tensor.name == kDrafterCentroids) {
      tensor.type = of_queries;  // of a drafter, which the plan does not know
    }
    if (FindCodec(tensor.type) == nullptr || FindCodec(tensor.type)->encode == nullptr) {
      return Refuse("--type",
                    fmt::format("{}, which asks for {}", file_type, InfoOf(tensor.type).name),
                    "a type that can be encoded");
    }
  }
  return plan.file_type_id;
}

/// Random weights of any type at the speed of copying. Per type and variance a pool of values is
/// encoded once; tensors are pieces of it at random places, so that rows differ and blocks are what
/// the encoder makes of real values.
class WeightMaker {
 public:
  explicit WeightMaker(uint64_t seed) : seed_(seed) {}

  /// Gives the bytes of `tensor`, the `number`-th of the file, to `sink`.
  Status Write(const SynthTensor& tensor, uint64_t number, gguf::ByteSink& sink) {
    const std::string& pool = PoolOf(tensor.type, tensor.fan_in);
    const uint64_t unit = static_cast<uint64_t>(BytesOf(tensor.type, kUnitElements));
    uint64_t left = static_cast<uint64_t>(BytesOf(tensor.type, tensor.n_elements()));
    std::string part;
    part.reserve(kPartBytes + unit * kUnitsPerPiece);
    for (uint64_t piece = 0; left > 0; ++piece) {
      const uint64_t begin =
          RandomBits(seed_, number << 40 | piece) % (kUnits - kUnitsPerPiece) * unit;
      const uint64_t n_bytes = std::min(left, unit * kUnitsPerPiece);
      part.append(pool, begin, n_bytes);
      left -= n_bytes;
      if (part.size() >= kPartBytes || left == 0) {
        FACET_RETURN_IF_ERROR(sink.Append(AsBytes(part)));
        part.clear();
      }
    }
    return {};
  }

 private:
  // A unit is a whole number of blocks of every type.
  static constexpr int64_t kUnitElements = 256;
  static constexpr uint64_t kUnits = 1024;
  static constexpr uint64_t kUnitsPerPiece = 4;
  static constexpr size_t kPartBytes = size_t{1} << 20;

  /// Approximately normal, exactly the same on every machine: the sum of eight bytes, scaled by its
  /// deviation.
  void DrawNormals() {
    constexpr float kMean = 8 * 255 / 2.0F;
    constexpr float kDeviation = 209.022F;  // sqrt(8 * (256^2 - 1) / 12)
    constexpr uint64_t kNormalStream = uint64_t{1} << 63;
    normals_.resize(kUnits * kUnitElements);
    for (size_t i = 0; i < normals_.size(); ++i) {
      uint64_t bits = RandomBits(seed_, kNormalStream | i);
      uint64_t sum = 0;
      for (; bits != 0; bits >>= 8) {
        sum += bits & 0xFF;
      }
      normals_[i] = (static_cast<float>(sum) - kMean) / kDeviation;
    }
  }

  const std::string& PoolOf(TensorType type, int64_t fan_in) {
    if (normals_.empty()) {
      DrawNormals();
    }
    std::string& pool = pools_[{type, fan_in}];
    if (pool.empty()) {
      const float deviation = 1.0F / std::sqrt(static_cast<float>(fan_in));
      std::vector<float> values(normals_.size());
      std::transform(normals_.begin(), normals_.end(), values.begin(),
                     [deviation](float normal) { return normal * deviation; });
      const auto n = static_cast<int64_t>(values.size());
      pool.resize(static_cast<size_t>(BytesOf(type, n)));
      FindCodec(type)->encode(values.data(), nullptr, n, reinterpret_cast<std::byte*>(pool.data()));
    }
    return pool;
  }

  uint64_t seed_;
  std::vector<float> normals_;
  std::map<std::pair<TensorType, int64_t>, std::string> pools_;
};

std::string VectorBytes(const SynthTensor& tensor) {
  if (tensor.type == TensorType::kI32) {
    std::vector<int32_t> tokens(static_cast<size_t>(tensor.n_elements()));
    std::iota(tokens.begin(), tokens.end(), 0);
    return std::string(AsText(std::as_bytes(std::span<const int32_t>(tokens))));
  }
  std::vector<float> values(static_cast<size_t>(tensor.n_elements()), tensor.value);
  if (tensor.name == "rope_freqs.weight") {
    std::fill(values.begin() + kTurningPairs, values.end(), kStillFactor);
  }
  return std::string(AsText(std::as_bytes(std::span<const float>(values))));
}

std::vector<gguf::TensorToWrite> ToWrite(const std::vector<SynthTensor>& tensors,
                                         WeightMaker* maker) {
  std::vector<gguf::TensorToWrite> all;
  all.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SynthTensor& tensor = tensors[i];
    all.push_back({tensor.name, tensor.type, tensor.shape, {}});
    if (tensor.fan_in == 0) {
      all.back().write = gguf::WholeTensor(VectorBytes(tensor));
    } else {
      all.back().write = [&tensor, i, maker](gguf::ByteSink& sink) {
        return maker->Write(tensor, i, sink);
      };
    }
  }
  return all;
}

/// Lengthens an array of the tokenizer; what it holds already stays.
template <typename T, typename MakeItem>
Status Lengthen(const std::string& name, const std::string& key, size_t n, MakeItem make_item,
                gguf::Metadata* metadata) {
  const gguf::Value* found = metadata->Find(key);
  if (found == nullptr) {
    return Refuse(fmt::format("{}, {}", name, key), "missing", "the tokenizer's array");
  }
  gguf::Value value = *found;
  auto* items = std::get_if<std::vector<T>>(&value.data);
  if (items == nullptr || items->size() > n) {
    return Refuse(fmt::format("{}, {}", name, key),
                  items == nullptr ? std::string(gguf::NameOf(value.type))
                                   : fmt::format("{} items", items->size()),
                  fmt::format("an array of at most {}", n));
  }
  while (items->size() < n) {
    items->push_back(make_item(items->size()));
  }
  metadata->Set(key, std::move(value));
  return {};
}

/// Copies the tokenizer and fills it up to the rows of the embedding.
Status SetTokenizer(const SynthOptions& options, int n_vocab, gguf::Metadata* metadata) {
  constexpr int64_t kNormalToken = 1;
  constexpr double kScore = -1000;
  for (const auto& [key, value] : options.tokenizer.entries()) {
    if (key.starts_with("tokenizer.")) {
      metadata->Set(key, value);
    }
  }
  const auto n = static_cast<size_t>(n_vocab);
  const std::string& name = options.tokenizer_name;
  FACET_RETURN_IF_ERROR(Lengthen<std::string>(
      name, "tokenizer.ggml.tokens", n,
      [](size_t id) { return fmt::format("{}filler{}", kSpacePiece, id); }, metadata));
  FACET_RETURN_IF_ERROR(Lengthen<double>(
      name, "tokenizer.ggml.scores", n, [](size_t) { return kScore; }, metadata));
  FACET_RETURN_IF_ERROR(Lengthen<int64_t>(
      name, "tokenizer.ggml.token_type", n, [](size_t) { return kNormalToken; }, metadata));
  const Result<Vocab> vocab = Vocab::FromGguf(*metadata, name);
  return vocab.ok() ? Status() : Status(vocab.error());
}

void SetGeneral(const Config& config, uint32_t file_type, gguf::Metadata* metadata) {
  using gguf::Value;
  const GenerationDefaults defaults;
  metadata->Set("general.type", Value::String("model"));
  if (!config.size_label.empty()) {
    metadata->Set("general.size_label", Value::String(config.size_label));
  }
  metadata->Set("general.file_type", Value::U32(file_type));
  metadata->Set("general.quantization_version", Value::U32(2));
  metadata->Set("general.sampling.temp", Value::F32(defaults.temperature));
  metadata->Set("general.sampling.top_k", Value::U32(static_cast<uint32_t>(defaults.top_k)));
  metadata->Set("general.sampling.top_p", Value::F32(defaults.top_p));
}

std::string NameOf(const ShapeRequest& request, SynthPart part) {
  std::string name = fmt::format("Gemma 4 {}", request.shape->size.label);
  if (part != SynthPart::kModel) {
    return name + (part == SynthPart::kDrafter ? " drafter" : " projector") + ", random weights";
  }
  if (request.n_layers < request.shape->size.n_layers) {
    name += fmt::format(", {} of {} layers", request.n_layers, request.shape->size.n_layers);
  }
  return name + ", random weights";
}

/// A type that projectors are made of, and its general.file_type.
struct ProjectorType {
  std::string_view name;
  TensorType type;
  uint32_t file_type;
};
constexpr ProjectorType kProjectorTypes[] = {{"f32", TensorType::kF32, 0},
                                             {"f16", TensorType::kF16, 1},
                                             {"bf16", TensorType::kBF16, 32},
                                             {"q8_0", TensorType::kQ8_0, 7}};

Status WriteProjector(const SynthOptions& options, const ShapeRequest& request) {
  const auto* type =
      std::find_if(std::begin(kProjectorTypes), std::end(kProjectorTypes),
                   [&](const ProjectorType& known) { return known.name == options.type; });
  if (type == std::end(kProjectorTypes)) {
    return Refuse("--type", fmt::format("\"{}\"", options.type), "f32, f16, bf16 or q8_0");
  }
  const ProjectorShape shape = ProjectorOfShape(*request.shape);
  std::vector<SynthTensor> tensors = ProjectorTensors(shape);
  for (SynthTensor& tensor : tensors) {
    const bool has_blocks = tensor.shape.back() % InfoOf(type->type).block_elements == 0;
    if (tensor.type == TensorType::kBF16) {
      tensor.type = has_blocks ? type->type : TensorType::kF16;
    }
  }
  using gguf::Value;
  gguf::Metadata metadata = ProjectorMetadata(shape);
  metadata.Set("general.name", Value::String(NameOf(request, options.part)));
  metadata.Set("general.type", Value::String("mmproj"));
  metadata.Set("general.file_type", Value::U32(type->file_type));
  metadata.Set("general.quantization_version", Value::U32(2));
  WeightMaker maker(options.seed);
  return gguf::Write(options.out, metadata, ToWrite(tensors, &maker), options.on_progress);
}

/// Metadata without general.* and tokenizer.* and the tensors of one file.
struct FilePlan {
  Config config;
  gguf::Metadata metadata;
  std::vector<SynthTensor> tensors;
};

FilePlan PlanDrafter(const SynthOptions& options, const ShapeRequest& request) {
  DrafterConfig drafter = DrafterConfigOfShape(*request.shape);
  if (options.leaves_out_centroids) {
    drafter.n_centroids = 0;
  }
  drafter.body.name = NameOf(request, options.part);
  FilePlan plan;
  SetGgufDrafterConfig(drafter, &plan.metadata);
  plan.tensors = DrafterTensors(drafter);
  plan.config = std::move(drafter.body);
  return plan;
}

Result<FilePlan> PlanModel(const SynthOptions& options, const ShapeRequest& request) {
  FilePlan plan;
  FACET_ASSIGN(plan.config, ConfigOfShape(request));
  plan.config.name = NameOf(request, options.part);
  SetGgufConfig(plan.config, &plan.metadata);
  plan.tensors = ModelTensors(plan.config);
  return plan;
}

Status WriteLanguageModel(const SynthOptions& options, const ShapeRequest& request) {
  FACET_ASSIGN(FilePlan plan, options.part == SynthPart::kDrafter ? PlanDrafter(options, request)
                                                                  : PlanModel(options, request));
  FACET_ASSIGN(const uint32_t file_type, ChooseTypes(options.type, &plan.tensors));
  SetGeneral(plan.config, file_type, &plan.metadata);
  FACET_RETURN_IF_ERROR(SetTokenizer(options, plan.config.n_vocab, &plan.metadata));
  WeightMaker maker(options.seed);
  return gguf::Write(options.out, plan.metadata, ToWrite(plan.tensors, &maker),
                     options.on_progress);
}

}  // namespace

Status WriteSynthetic(const SynthOptions& options) {
  if (IsDirectory(options.out)) {
    return Refuse(options.out, "a directory", "the name of a file");
  }
  FACET_ASSIGN(const ShapeRequest request, ParseShape(options.shape));
  return options.part == SynthPart::kProjector ? WriteProjector(options, request)
                                               : WriteLanguageModel(options, request);
}

}  // namespace facet
