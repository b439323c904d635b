// SPDX-License-Identifier: Apache-2.0
#include "model/drafter_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "model/drafter_config.h"
#include "model/drafter_names.h"
#include "model/hf_directory.h"
#include "model/tensor_binder.h"

namespace facet {

struct DrafterCheckpoint::State {
  std::string path;
  DrafterConfig config;
  std::optional<gguf::File> gguf;
  std::optional<safetensors::File> safetensors;
  std::string ordering;  // the data of kDrafterOrdering
  std::vector<CheckpointTensor> tensors;
  std::unordered_map<std::string_view, size_t> by_name;  // keys lie in tensors

  Status FillFromGguf(facet::gguf::File file);
  Status FillFromDirectory(UnknownTensors unknown);
  Status TakeTensors(UnknownTensors policy);
  Status Index();
  Status ArrangeOrdering();
  [[nodiscard]] const CheckpointTensor* Find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found != by_name.end() ? &tensors[found->second] : nullptr;
  }
};

namespace {

template <typename T>
T ValueAt(std::span<const std::byte> data, size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// Element `i`, or -1 where it is not a whole number from 0 to 2^24.
int32_t TokenAt(TensorType type, std::span<const std::byte> data, size_t i) {
  constexpr int32_t kMost = 1 << 24;
  if (type == TensorType::kF32) {
    const auto value = ValueAt<float>(data, i);
    const bool is_in = value >= 0 && value <= static_cast<float>(kMost);
    const int32_t token = is_in ? static_cast<int32_t>(value) : -1;
    return is_in && static_cast<float>(token) == value ? token : -1;
  }
  const int64_t value =
      type == TensorType::kI64 ? ValueAt<int64_t>(data, i) : ValueAt<int32_t>(data, i);
  return value >= 0 && value <= kMost ? static_cast<int32_t>(value) : -1;
}

/// The tokens in the order of their clusters as I32, each once. Files hold them in three types.
Result<std::string> ReadOrdering(const CheckpointTensor& tensor, const std::string& where) {
  if (tensor.type != TensorType::kI32 && tensor.type != TensorType::kI64 &&
      tensor.type != TensorType::kF32) {
    return Refuse(where, fmt::format("type {}", InfoOf(tensor.type).name), "I32, I64 or F32");
  }
  const auto n = static_cast<size_t>(tensor.shape[0]);
  std::vector<bool> is_there(n, false);
  std::string bytes;
  bytes.reserve(n * sizeof(int32_t));
  for (size_t i = 0; i < n; ++i) {
    const int32_t token = TokenAt(tensor.type, tensor.data, i);
    if (token < 0 || static_cast<size_t>(token) >= n || is_there[static_cast<size_t>(token)]) {
      return Refuse(fmt::format("{}, entry {}", where, i),
                    token < 0 ? "no token" : fmt::format("{}", token),
                    fmt::format("each of 0 to {} once", n - 1));
    }
    is_there[static_cast<size_t>(token)] = true;
    Append(bytes, token);
  }
  return bytes;
}

}  // namespace

DrafterCheckpoint::DrafterCheckpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
DrafterCheckpoint::DrafterCheckpoint(DrafterCheckpoint&&) noexcept = default;
DrafterCheckpoint& DrafterCheckpoint::operator=(DrafterCheckpoint&&) noexcept = default;
DrafterCheckpoint::~DrafterCheckpoint() = default;

Status DrafterCheckpoint::State::Index() {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!by_name.emplace(tensors[i].name, i).second) {
      return Refuse(path, fmt::format("tensor {} twice", tensors[i].source_name), "one");
    }
  }
  return {};
}

Status DrafterCheckpoint::State::ArrangeOrdering() {
  if (config.n_centroids == 0) {
    return {};
  }
  CheckpointTensor& tensor = tensors[by_name.at(kDrafterOrdering)];
  FACET_ASSIGN(ordering,
               ReadOrdering(tensor, fmt::format("{}, tensor {}", path, tensor.source_name)));
  tensor.type = TensorType::kI32;
  tensor.data = std::as_bytes(std::span(ordering));
  return {};
}

Status DrafterCheckpoint::State::FillFromGguf(facet::gguf::File file) {
  gguf = std::move(file);
  FACET_RETURN_IF_ERROR(CheckIsDrafter(gguf->metadata(), path));
  std::vector<std::string> unknown;
  tensors.reserve(gguf->tensors().size());
  for (const facet::gguf::TensorView& view : gguf->tensors()) {
    tensors.push_back(
        {DrafterNameFromGguf(view.name), view.name, view.type, view.shape, view.data});
    if (!IsDrafterTensorName(tensors.back().name)) {
      unknown.push_back(view.name);
    }
  }
  WarnOfUnknown(path, "a drafter", unknown);
  FACET_RETURN_IF_ERROR(Index());
  FACET_ASSIGN(config, DrafterConfigFromGguf(gguf->metadata(), path,
                                             [this](std::string_view name) { return Find(name); }));
  return ArrangeOrdering();
}

Status DrafterCheckpoint::State::TakeTensors(UnknownTensors policy) {
  std::vector<std::string> unknown;
  for (const safetensors::TensorView& view : safetensors->tensors()) {
    auto name = DrafterNameFromHf(view.name);
    if (name == "output.weight") {
      continue;  // the embedding table once more
    }
    if (name.has_value()) {
      tensors.push_back({*std::move(name), view.name, view.type, view.shape, view.data});
    } else if (policy == UnknownTensors::kRefuse) {
      return Refuse(fmt::format("{}, tensor {}", path, view.name),
                    fmt::format("unknown, shape [{}]", fmt::join(view.shape, ", ")),
                    "a tensor of a drafter");
    } else {
      unknown.push_back(view.name);
    }
  }
  WarnOfUnknown(path, "a drafter", unknown);
  return Index();
}

Status DrafterCheckpoint::State::FillFromDirectory(UnknownTensors unknown) {
  const std::string config_path = path + "/config.json";
  FACET_ASSIGN(const Json config_json, ReadJson(config_path, kMaxConfigBytes));
  FACET_RETURN_IF_ERROR(CheckIsDrafter(config_json, config_path));
  FACET_ASSIGN(safetensors, OpenSafetensors(path));
  FACET_RETURN_IF_ERROR(TakeTensors(unknown));
  FACET_ASSIGN(config, DrafterConfigFromHf(config_json, path,
                                           [this](std::string_view name) { return Find(name); }));
  return ArrangeOrdering();
}

Result<DrafterCheckpoint> DrafterCheckpoint::Open(const std::string& path, UnknownTensors unknown) {
  auto state = std::make_unique<State>();
  state->path = path;
  if (IsDirectory(path)) {
    FACET_RETURN_IF_ERROR(state->FillFromDirectory(unknown));
  } else {
    FACET_ASSIGN(gguf::File file, gguf::File::Open(path));
    FACET_RETURN_IF_ERROR(state->FillFromGguf(std::move(file)));
  }
  if (state->config.body.name.empty()) {
    state->config.body.name = LastPart(path);
  }
  return DrafterCheckpoint(std::move(state));
}

Result<DrafterCheckpoint> DrafterCheckpoint::FromGgufBytes(std::span<const std::byte> bytes,
                                                           const std::string& name) {
  auto state = std::make_unique<State>();
  state->path = name;
  FACET_ASSIGN(gguf::File file, gguf::File::FromBytes(bytes, name));
  FACET_RETURN_IF_ERROR(state->FillFromGguf(std::move(file)));
  return DrafterCheckpoint(std::move(state));
}

const std::string& DrafterCheckpoint::path() const { return state_->path; }
const DrafterConfig& DrafterCheckpoint::config() const { return state_->config; }
const std::vector<CheckpointTensor>& DrafterCheckpoint::tensors() const { return state_->tensors; }

uint64_t DrafterCheckpoint::n_bytes() const {
  uint64_t n = 0;
  for (const CheckpointTensor& tensor : state_->tensors) {
    n += tensor.data.size();
  }
  return n;
}

const CheckpointTensor* DrafterCheckpoint::Find(std::string_view gguf_name) const {
  return state_->Find(gguf_name);
}

void DrafterCheckpoint::Release(std::span<const std::byte> data) const {
  if (state_->gguf.has_value()) {
    state_->gguf->Release(data);
  }
}

const gguf::Metadata* DrafterCheckpoint::gguf_metadata() const {
  return state_->gguf.has_value() ? &state_->gguf->metadata() : nullptr;
}

bool IsDrafterDirectory(const std::string& path) {
  const auto config = ReadJson(path + "/config.json", kMaxConfigBytes);
  return config.ok() && CheckIsDrafter(*config, path).ok();
}

std::optional<int> DonorLayer(const Config& target, LayerKind kind) {
  for (int l = target.first_shared_layer() - 1; l >= 0; --l) {
    if (target.layers[static_cast<size_t>(l)].kind == kind) {
      return l;
    }
  }
  return std::nullopt;
}

namespace {

Status CheckLayerFits(const DrafterCheckpoint& drafter, size_t l, const Checkpoint& target) {
  const LayerDesc& layer = drafter.config().body.layers[l];
  const std::string where = fmt::format("{}, layer {}", drafter.path(), l);
  const std::string_view kind = layer.kind == LayerKind::kFull ? "full" : "sliding";
  const std::optional<int> donor = DonorLayer(target.config(), layer.kind);
  if (!donor.has_value()) {
    return Refuse(
        where, fmt::format("{} attention", kind),
        fmt::format("a kind of attention that {} has keys and values for", target.path()));
  }
  const LayerDesc& source = target.config().layers[static_cast<size_t>(*donor)];
  if (layer.d_head != source.d_head) {
    return Refuse(where, fmt::format("head size {}", layer.d_head),
                  fmt::format("{}, that of layer {} of {}", source.d_head, *donor, target.path()));
  }
  const int n_heads = drafter.config().body.n_heads;
  if (n_heads % source.n_kv_heads != 0) {
    return Refuse(where, fmt::format("{} attention heads", n_heads),
                  fmt::format("a multiple of {}, the KV heads of layer {} of {}", source.n_kv_heads,
                              *donor, target.path()));
  }
  return {};
}

}  // namespace

Status CheckFits(const DrafterCheckpoint& drafter, const Checkpoint& target) {
  const DrafterConfig& config = drafter.config();
  if (config.n_embd_target != target.config().n_embd) {
    return Refuse(drafter.path(), fmt::format("a drafter for width {}", config.n_embd_target),
                  fmt::format("{}, the width of {}", target.config().n_embd, target.path()));
  }
  if (config.body.n_vocab != target.config().n_vocab) {
    return Refuse(drafter.path(), fmt::format("a vocabulary of {} tokens", config.body.n_vocab),
                  fmt::format("{}, that of {}", target.config().n_vocab, target.path()));
  }
  for (size_t l = 0; l < config.body.layers.size(); ++l) {
    FACET_RETURN_IF_ERROR(CheckLayerFits(drafter, l, target));
  }
  return {};
}

}  // namespace facet
