// SPDX-License-Identifier: Apache-2.0
#include "convert/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "compute/context.h"
#include "compute/thread_pool.h"
#include "format/gguf.h"
#include "model/checkpoint.h"
#include "model/drafter_checkpoint.h"
#include "model/drafter_names.h"
#include "model/drafter_weights.h"
#include "model/hf_directory.h"
#include "model/weights.h"
#include "quant/codec.h"
#include "text/vocab.h"

namespace facet {
namespace {

constexpr std::string_view kFileEnd = ".gguf";

/// general.file_type as llama.cpp numbers it.
uint32_t FileTypeOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return 0;
    case TensorType::kF16:
      return 1;
    case TensorType::kQ8_0:
      return 7;
    default:
      return 32;  // BF16
  }
}

/// The type that was asked for, or nothing for "auto".
Result<std::optional<TensorType>> ParseOutType(const std::string& outtype) {
  if (outtype == "auto") {
    return std::optional<TensorType>();
  }
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ8_0}) {
    const auto found = FindTensorTypeByName(outtype);
    if (found.has_value() && found->type == type) {
      return std::optional<TensorType>(type);
    }
  }
  return Refuse("--outtype", fmt::format("\"{}\"", outtype), "auto, f32, f16, bf16 or q8_0");
}

/// Vectors, scales and the router decide much and weigh little: they stay exact.
bool StaysF32(const CheckpointTensor& tensor) {
  return tensor.shape.size() < 2 || tensor.name.ends_with(".scale") ||
         tensor.name.ends_with("ffn_gate_inp.weight");
}

TensorType ChooseType(const CheckpointTensor& tensor, std::optional<TensorType> wanted) {
  if (tensor.name == kDrafterOrdering) {
    return tensor.type;
  }
  if (StaysF32(tensor)) {
    return TensorType::kF32;
  }
  const TensorType type = wanted.value_or(tensor.type);
  return tensor.shape.back() % InfoOf(type).block_elements == 0 ? type : TensorType::kF16;
}

int64_t ElementsOf(const CheckpointTensor& tensor) {
  int64_t n = 1;
  for (const int64_t d : tensor.shape) {
    n *= d;
  }
  return n;
}

/// What is written at a time, so that memory stays small and progress is seen: bytes where they are
/// copied, else elements of whole rows (at least one).
constexpr size_t kBytesAtOnce = size_t{1} << 22;
constexpr int64_t kElementsAtOnce = int64_t{1} << 18;

Status Copy(std::span<const std::byte> bytes, gguf::ByteSink* sink) {
  for (size_t at = 0; at < bytes.size(); at += kBytesAtOnce) {
    FACET_RETURN_IF_ERROR(
        sink->Append(bytes.subspan(at, std::min(kBytesAtOnce, bytes.size() - at))));
  }
  return {};
}

/// The tensor's values in another type, a few rows at a time.
Status Recode(const CheckpointTensor& tensor, TensorType type, gguf::ByteSink* sink) {
  if (type == tensor.type) {
    return Copy(tensor.data, sink);
  }
  const int64_t n_row = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t n_rows = ElementsOf(tensor) / n_row;
  const int64_t n_at_once = std::max<int64_t>(1, kElementsAtOnce / n_row);
  const int64_t in_bytes = BytesOf(tensor.type, n_row);
  const int64_t out_bytes = BytesOf(type, n_row);
  std::vector<float> values(static_cast<size_t>(n_row));
  std::vector<std::byte> out(static_cast<size_t>(std::min(n_at_once, n_rows) * out_bytes));
  for (int64_t begin = 0; begin < n_rows; begin += n_at_once) {
    const int64_t n = std::min(n_at_once, n_rows - begin);
    for (int64_t r = 0; r < n; ++r) {
      FindCodec(tensor.type)
          ->decode(tensor.data.data() + (begin + r) * in_bytes, n_row, values.data());
      FindCodec(type)->encode(values.data(), nullptr, n_row, out.data() + r * out_bytes);
    }
    FACET_RETURN_IF_ERROR(sink->Append({out.data(), static_cast<size_t>(n * out_bytes)}));
  }
  return {};
}

/// Factors that divide the frequencies of full layers: 1 for pairs that turn, 1e30 for those that
/// stand still.
std::string RopeFactors(int n_pairs, int n_turning) {
  std::string bytes;
  for (int i = 0; i < n_pairs; ++i) {
    Append(bytes, i < n_turning ? 1.0F : 1e30F);
  }
  return bytes;
}

int FullHeadSize(const Config& config) {
  for (const LayerDesc& layer : config.layers) {
    if (layer.kind == LayerKind::kFull) {
      return layer.d_head;
    }
  }
  return 0;
}

void SetTokenizer(const Vocab& vocab, const std::string& chat_template,
                  const GenerationDefaults& defaults, gguf::Metadata* metadata) {
  using gguf::Value;
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
  for (int id = 0; id < vocab.size(); ++id) {
    tokens.emplace_back(vocab.text(id));
    kinds.push_back(vocab.GgufTokenType(id));
  }
  metadata->Set("tokenizer.ggml.model", Value::String("gemma4"));
  metadata->Set("tokenizer.ggml.scores", Value::F32s(std::vector<float>(tokens.size(), -1000.0F)));
  metadata->Set("tokenizer.ggml.tokens", Value::Strings(std::move(tokens)));
  metadata->Set("tokenizer.ggml.token_type", Value::I32s(kinds));
  metadata->Set("tokenizer.ggml.merges", Value::Strings(vocab.MergeTexts()));
  const auto set_id = [&](const char* key, int id) {
    if (id >= 0) {
      metadata->Set(key, Value::U32(static_cast<uint32_t>(id)));
    }
  };
  set_id("tokenizer.ggml.bos_token_id", vocab.bos_id());
  set_id("tokenizer.ggml.eos_token_id", vocab.eos_id());
  set_id("tokenizer.ggml.unknown_token_id", vocab.unk_id());
  set_id("tokenizer.ggml.padding_token_id", vocab.pad_id());
  if (!defaults.suppressed_tokens.empty()) {
    metadata->Set(
        "tokenizer.ggml.suppress_tokens",
        Value::I32s({defaults.suppressed_tokens.begin(), defaults.suppressed_tokens.end()}));
  }
  metadata->Set("tokenizer.ggml.add_bos_token", Value::Bool(true));
  metadata->Set("tokenizer.ggml.add_space_prefix", Value::Bool(false));
  if (!chat_template.empty()) {
    metadata->Set("tokenizer.chat_template", Value::String(chat_template));
  }
}

Status CheckTokenCount(const std::string& where, size_t found, int wanted) {
  if (found != static_cast<size_t>(wanted)) {
    return Refuse(where, fmt::format("{} tokens", found),
                  fmt::format("{}, the rows of the embedding table", wanted));
  }
  return {};
}

Result<gguf::Metadata> MakeMetadata(const Checkpoint& checkpoint, const Config& config,
                                    uint32_t file_type) {
  using gguf::Value;
  if (checkpoint.tokenizer_json().is_null()) {
    return Refuse(checkpoint.path(), "no tokenizer.json", "the tokenizer beside the weights");
  }
  FACET_ASSIGN(const Vocab vocab, Vocab::FromTokenizerJson(checkpoint.tokenizer_json(),
                                                           checkpoint.tokenizer_config_json(),
                                                           checkpoint.path() + "/tokenizer.json"));
  FACET_RETURN_IF_ERROR(CheckTokenCount(checkpoint.path() + "/tokenizer.json",
                                        static_cast<size_t>(vocab.size()), config.n_vocab));
  gguf::Metadata metadata;
  SetGgufConfig(config, &metadata);
  const GenerationDefaults& defaults = checkpoint.defaults();
  metadata.Set("general.type", Value::String("model"));
  if (!config.size_label.empty()) {
    metadata.Set("general.size_label", Value::String(config.size_label));
  }
  metadata.Set("general.file_type", Value::U32(file_type));
  metadata.Set("general.quantization_version", Value::U32(2));
  metadata.Set("general.sampling.temp", Value::F32(defaults.temperature));
  metadata.Set("general.sampling.top_k", Value::U32(static_cast<uint32_t>(defaults.top_k)));
  metadata.Set("general.sampling.top_p", Value::F32(defaults.top_p));
  SetTokenizer(vocab, checkpoint.chat_template(), defaults, &metadata);
  return metadata;
}

/// The factors of the rotation, and a checkpoint's tensors.
std::vector<gguf::TensorToWrite> ListTensors(const Config& config,
                                             const std::vector<CheckpointTensor>& sources,
                                             std::optional<TensorType> wanted) {
  std::vector<gguf::TensorToWrite> tensors;
  tensors.reserve(sources.size() + 1);
  if (const int d_full = FullHeadSize(config); d_full > 0) {
    const auto n_turning =
        static_cast<int>(config.rope_full_turning * static_cast<float>(d_full) / 2);
    tensors.push_back({"rope_freqs.weight",
                       TensorType::kF32,
                       {d_full / 2},
                       gguf::WholeTensor(RopeFactors(d_full / 2, n_turning))});
  }
  for (const CheckpointTensor& tensor : sources) {
    const TensorType type = ChooseType(tensor, wanted);
    const std::vector<int64_t> shape =
        tensor.shape.empty() ? std::vector<int64_t>{1} : tensor.shape;
    tensors.push_back({tensor.name, type, shape, [&tensor, type](gguf::ByteSink& sink) {
                         return Recode(tensor, type, &sink);
                       }});
  }
  return tensors;
}

/// The layer in "blk.N.", or nothing for a tensor that is not of a layer.
std::optional<int> LayerOf(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  int layer = 0;
  if (!name.starts_with(kPrefix) ||
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer).ec !=
          std::errc()) {
    return std::nullopt;
  }
  return layer;
}

/// What BindWeights does not see: tensors that no layer asks for, which would be copied all the
/// same.
Status CheckTensors(const std::string& path, int n_layers,
                    const std::vector<CheckpointTensor>& tensors) {
  for (const CheckpointTensor& tensor : tensors) {
    const std::string where = fmt::format("{}, tensor {}", path, tensor.source_name);
    if (FindCodec(tensor.type) == nullptr && tensor.name != kDrafterOrdering) {
      return Refuse(where, fmt::format("type {}", InfoOf(tensor.type).name), "F32, F16 or BF16");
    }
    if (const auto layer = LayerOf(tensor.name); layer.has_value() && *layer >= n_layers) {
      return Refuse(where, fmt::format("layer {}", *layer),
                    fmt::format("0 to {} by config.json", n_layers - 1));
    }
  }
  return {};
}

Status CheckPaths(const ConvertOptions& options) {
  if (!IsDirectory(options.in)) {
    return Refuse(options.in, "not a directory",
                  "a Hugging Face directory with config.json and safetensors");
  }
  if (IsDirectory(options.out)) {
    return Refuse(options.out, "a directory", "the name of a file");
  }
  if (!options.out.ends_with(kFileEnd)) {
    return Refuse(options.out, "a name of another kind", "NAME.gguf");
  }
  return {};
}

/// One file, or several; the names of what was written.
Result<std::vector<std::string>> WriteFiles(const ConvertOptions& options,
                                            const gguf::Metadata& metadata,
                                            const std::vector<gguf::TensorToWrite>& tensors) {
  std::vector<std::string> paths = {options.out};
  const auto on_paths = [&](const std::vector<std::string>& all) {
    paths = all;
    if (options.on_paths) {
      options.on_paths(all);
    }
  };
  if (options.max_file_bytes > 0) {
    const std::string prefix = options.out.substr(0, options.out.size() - kFileEnd.size());
    FACET_RETURN_IF_ERROR(gguf::WriteSplit(
        prefix, metadata, tensors, {options.max_file_bytes, on_paths, options.on_progress}));
    return paths;
  }
  on_paths({options.out});
  FACET_RETURN_IF_ERROR(gguf::Write(options.out, metadata, tensors, options.on_progress));
  return paths;
}

/// tokenizer.ggml.* of a GGUF file, as they are.
Status LendFromGguf(const std::string& path, int n_vocab, gguf::Metadata* metadata) {
  FACET_ASSIGN(const gguf::File file, gguf::File::Open(path));
  const gguf::Value* tokens = file.metadata().Find("tokenizer.ggml.tokens");
  if (tokens == nullptr) {
    return Refuse(path, "no tokenizer", "a file with tokenizer.ggml.tokens");
  }
  FACET_RETURN_IF_ERROR(CheckTokenCount(path, tokens->array_size(), n_vocab));
  for (const auto& [key, value] : file.metadata().entries()) {
    if (key.starts_with("tokenizer.ggml.")) {
      metadata->Set(key, value);
    }
  }
  return {};
}

Status LendFromDirectory(const std::string& path, int n_vocab, gguf::Metadata* metadata) {
  const std::string file = path + "/tokenizer.json";
  FACET_ASSIGN(const Json tokenizer, ReadJson(file, kMaxTokenizerBytes));
  FACET_ASSIGN(const Json config,
               ReadJsonIfThere(path + "/tokenizer_config.json", kMaxConfigBytes));
  FACET_ASSIGN(const Vocab vocab, Vocab::FromTokenizerJson(tokenizer, config, file));
  FACET_RETURN_IF_ERROR(CheckTokenCount(file, static_cast<size_t>(vocab.size()), n_vocab));
  SetTokenizer(vocab, "", GenerationDefaults(), metadata);
  return {};
}

/// The tokenizer that a drafter's file gets, if there is one; whether it is.
Result<bool> SetDrafterTokenizer(const ConvertOptions& options, int n_vocab,
                                 gguf::Metadata* metadata) {
  const bool has_own = FileExists(options.in + "/tokenizer.json");
  const std::string lender = options.tokenizer.empty() && has_own ? options.in : options.tokenizer;
  if (lender.empty()) {
    return false;
  }
  FACET_RETURN_IF_ERROR(IsDirectory(lender) ? LendFromDirectory(lender, n_vocab, metadata)
                                            : LendFromGguf(lender, n_vocab, metadata));
  return true;
}

/// Complete and well-formed: all that a runner would bind is there.
Status CheckComplete(const DrafterCheckpoint& drafter) {
  ThreadPool pool(1);
  const auto weights = LoadDrafterWeights(drafter, drafter.config().body,
                                          {&KernelsFor(Isa::kScalar), &pool}, /*pack=*/false);
  return weights.ok() ? Status() : Status(weights.error());
}

Result<ConvertSummary> ConvertDrafter(const ConvertOptions& options,
                                      std::optional<TensorType> wanted) {
  using gguf::Value;
  FACET_ASSIGN(const DrafterCheckpoint drafter,
               DrafterCheckpoint::Open(options.in, UnknownTensors::kRefuse));
  DrafterConfig config = drafter.config();
  FACET_RETURN_IF_ERROR(CheckTensors(drafter.path(), config.body.n_layers, drafter.tensors()));
  FACET_RETURN_IF_ERROR(CheckComplete(drafter));
  if (!options.name.empty()) {
    config.body.name = options.name;
  }
  if (options.leaves_out_centroids) {
    config.n_centroids = 0;
  }
  const TensorType main_type = wanted.value_or(drafter.Find("token_embd.weight")->type);
  gguf::Metadata metadata;
  SetGgufDrafterConfig(config, &metadata);
  metadata.Set("general.type", Value::String("model"));
  metadata.Set("general.file_type", Value::U32(FileTypeOf(main_type)));
  metadata.Set("general.quantization_version", Value::U32(2));
  ConvertSummary summary;
  summary.is_drafter = true;
  FACET_ASSIGN(summary.has_tokenizer, SetDrafterTokenizer(options, config.body.n_vocab, &metadata));
  std::vector<gguf::TensorToWrite> tensors = ListTensors(config.body, drafter.tensors(), wanted);
  if (config.n_centroids == 0) {
    std::erase_if(tensors, [](const gguf::TensorToWrite& tensor) {
      return tensor.name == kDrafterCentroids || tensor.name == kDrafterOrdering;
    });
  }
  FACET_ASSIGN(summary.paths, WriteFiles(options, metadata, tensors));
  return summary;
}

}  // namespace

Result<ConvertSummary> ConvertToGguf(const ConvertOptions& options) {
  FACET_RETURN_IF_ERROR(CheckPaths(options));
  FACET_ASSIGN(const std::optional<TensorType> wanted, ParseOutType(options.outtype));
  if (IsDrafterDirectory(options.in)) {
    return ConvertDrafter(options, wanted);
  }
  FACET_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(options.in, UnknownTensors::kRefuse));
  FACET_RETURN_IF_ERROR(
      CheckTensors(checkpoint.path(), checkpoint.config().n_layers, checkpoint.tensors()));
  // Complete and well-formed before anything is written.
  FACET_ASSIGN(const Weights weights, BindWeights(checkpoint));
  Config config = checkpoint.config();
  if (!options.name.empty()) {
    config.name = options.name;
  }
  const TensorType main_type = wanted.value_or(weights.token_embd.type);
  FACET_ASSIGN(const gguf::Metadata metadata,
               MakeMetadata(checkpoint, config, FileTypeOf(main_type)));
  ConvertSummary summary;
  summary.n_left_out = checkpoint.n_media_tensors();
  FACET_ASSIGN(summary.paths,
               WriteFiles(options, metadata,
                          ListTensors(checkpoint.config(), checkpoint.tensors(), wanted)));
  return summary;
}

}  // namespace facet
