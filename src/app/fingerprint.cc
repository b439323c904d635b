// SPDX-License-Identifier: Apache-2.0
#include "app/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/sha256.h"
#include "base/tensor_type.h"
#include "compute/attention.h"

namespace facet {
namespace {

constexpr size_t kSampleBytes = 64;
constexpr size_t kSamples = 16;  ///< of a tensor, evenly spread

class Hash {
 public:
  void Add(std::string_view text) {
    sha_.Add(std::as_bytes(std::span(text)));
    sha_.Add(std::as_bytes(std::span(std::string_view("\0", 1))));  // "ab" "c" is not "a" "bc"
  }
  template <typename T>
  void AddNumber(T number) {
    Add(fmt::format("{}", number));
  }
  void AddSamples(std::span<const std::byte> data) {
    const size_t step = std::max(kSampleBytes, data.size() / kSamples);
    for (size_t at = 0; at < data.size(); at += step) {
      sha_.Add(data.subspan(at, std::min(kSampleBytes, data.size() - at)));
    }
  }
  [[nodiscard]] std::string Hex() const { return sha_.Hex(); }

 private:
  Sha256 sha_;
};

/// What tensors do not show.
void AddConfig(const Config& config, Hash* hash) {
  hash->AddNumber(config.n_heads);
  hash->AddNumber(config.sliding_window);
  hash->AddNumber(config.n_experts_used);
  hash->AddNumber(config.norm_eps);
  hash->AddNumber(config.rope_theta_full);
  hash->AddNumber(config.rope_theta_sliding);
  hash->AddNumber(config.rope_full_turning);
  hash->AddNumber(static_cast<int>(config.has_bidirectional_spans));
  for (const LayerDesc& layer : config.layers) {
    hash->AddNumber(static_cast<int>(layer.kind));
    hash->AddNumber(layer.d_head);
    hash->AddNumber(layer.n_kv_heads);
    hash->AddNumber(layer.kv_layer);
  }
}

void AddTensors(const std::vector<CheckpointTensor>& tensors, Hash* hash) {
  for (const CheckpointTensor& tensor : tensors) {
    hash->Add(tensor.name);
    hash->AddNumber(static_cast<int>(tensor.type));
    for (const int64_t size : tensor.shape) {
      hash->AddNumber(size);
    }
    hash->AddSamples(tensor.data);
  }
}

}  // namespace

std::string Fingerprint(const Checkpoint& checkpoint, const RunnerOptions& options) {
  Hash hash;
  hash.Add(FACET_VERSION);
  hash.Add(NameOf(options.kv_type));
  hash.Add(NameOf(options.isa.value_or(BestIsa())));
  AddConfig(checkpoint.config(), &hash);
  AddTensors(checkpoint.tensors(), &hash);
  if (options.media != nullptr) {
    AddTensors(options.media->tensors(), &hash);
  }
  return hash.Hex();
}

}  // namespace facet
