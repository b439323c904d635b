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
#include "format/gguf.h"
#include "model/checkpoint.h"
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

Result<gguf::Metadata> MakeMetadata(const Checkpoint& checkpoint, const Config& config,
                                    uint32_t file_type) {
  using gguf::Value;
  if (checkpoint.tokenizer_json().is_null()) {
    return Refuse(checkpoint.path(), "no tokenizer.json", "the tokenizer beside the weights");
  }
  FACET_ASSIGN(const Vocab vocab, Vocab::FromTokenizerJson(checkpoint.tokenizer_json(),
                                                           checkpoint.tokenizer_config_json(),
                                                           checkpoint.path() + "/tokenizer.json"));
  if (vocab.size() != config.n_vocab) {
    return Refuse(checkpoint.path() + "/tokenizer.json", fmt::format("{} tokens", vocab.size()),
                  fmt::format("{}, the rows of the embedding table", config.n_vocab));
  }
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

std::vector<gguf::TensorToWrite> ListTensors(const Checkpoint& checkpoint,
                                             std::optional<TensorType> wanted) {
  std::vector<gguf::TensorToWrite> tensors;
  const Config& config = checkpoint.config();
  if (const int d_full = FullHeadSize(config); d_full > 0) {
    const auto n_turning =
        static_cast<int>(config.rope_full_turning * static_cast<float>(d_full) / 2);
    tensors.push_back({"rope_freqs.weight",
                       TensorType::kF32,
                       {d_full / 2},
                       gguf::WholeTensor(RopeFactors(d_full / 2, n_turning))});
  }
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
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
Status CheckTensors(const Checkpoint& checkpoint) {
  const int n_layers = checkpoint.config().n_layers;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const std::string where = fmt::format("{}, tensor {}", checkpoint.path(), tensor.source_name);
    if (FindCodec(tensor.type) == nullptr) {
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

}  // namespace

Result<ConvertSummary> ConvertToGguf(const ConvertOptions& options) {
  FACET_RETURN_IF_ERROR(CheckPaths(options));
  FACET_ASSIGN(const std::optional<TensorType> wanted, ParseOutType(options.outtype));
  FACET_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(options.in, UnknownTensors::kRefuse));
  FACET_RETURN_IF_ERROR(CheckTensors(checkpoint));
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
  FACET_ASSIGN(summary.paths, WriteFiles(options, metadata, ListTensors(checkpoint, wanted)));
  return summary;
}

}  // namespace facet
