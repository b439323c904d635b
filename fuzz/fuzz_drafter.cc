// SPDX-License-Identifier: Apache-2.0
// A drafter's file or its config.json: an error, or numbers that hold together. The first byte says
// which: '{' begins a config.json, whose tensors are those of a small drafter.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "model/drafter_checkpoint.h"
#include "model/drafter_config.h"
#include "model/drafter_names.h"

namespace {

using facet::CheckpointTensor;
using facet::DrafterConfig;

void CheckNumbers(const DrafterConfig& c) {
  FACET_CHECK(c.n_embd_target > 0 && c.body.n_embd > 0 && c.body.n_heads > 0);
  FACET_CHECK(c.body.n_vocab > 0 && c.body.layers.size() == static_cast<size_t>(c.body.n_layers));
  FACET_CHECK(c.n_centroids >= 0 && c.n_centroids <= c.body.n_vocab);
  FACET_CHECK(c.n_top_centroids <= c.n_centroids);
  FACET_CHECK(c.n_centroids == 0 || (c.n_top_centroids > 0 && c.body.n_vocab % c.n_centroids == 0));
  for (const facet::LayerDesc& layer : c.body.layers) {
    FACET_CHECK(layer.d_head > 0 && layer.d_head % 2 == 0 && layer.n_ff > 0);
  }
}

void RunGguf(std::span<const uint8_t> data) {
  const auto drafter = facet::DrafterCheckpoint::FromGgufBytes(std::as_bytes(data), "fuzz");
  if (!drafter.ok()) {
    FACET_CHECK(!drafter.error().Message().empty());
    return;
  }
  CheckNumbers(drafter->config());
  if (drafter->config().n_centroids > 0) {
    const CheckpointTensor* ordering = drafter->Find(facet::kDrafterOrdering);
    FACET_CHECK(ordering != nullptr && ordering->type == facet::TensorType::kI32);
    FACET_CHECK(ordering->data.size() ==
                sizeof(int32_t) * static_cast<size_t>(drafter->config().body.n_vocab));
  }
  facet::gguf::Metadata metadata;
  SetGgufDrafterConfig(drafter->config(), &metadata);
  FACET_CHECK(metadata.Find("gemma4-assistant.embedding_length_out") != nullptr);
}

void RunConfig(std::string_view text) {
  const auto config = facet::ParseJson(text, "fuzz", {size_t{1} << 20, 50});
  if (!config.ok()) {
    return;
  }
  static const std::vector<CheckpointTensor> kTensors = {
      {"token_embd.weight", "", facet::TensorType::kF32, {64, 8}, {}},
      {std::string(facet::kDrafterPreProjection), "", facet::TensorType::kF32, {8, 32}, {}},
      {std::string(facet::kDrafterPostProjection), "", facet::TensorType::kF32, {16, 8}, {}},
      {std::string(facet::kDrafterCentroids), "", facet::TensorType::kF32, {4, 8}, {}},
      {std::string(facet::kDrafterOrdering), "", facet::TensorType::kI64, {64}, {}},
  };
  const auto find = [](std::string_view name) -> const CheckpointTensor* {
    const auto found =
        std::find_if(kTensors.begin(), kTensors.end(),
                     [name](const CheckpointTensor& tensor) { return tensor.name == name; });
    return found != kTensors.end() ? &*found : nullptr;
  };
  if (!facet::CheckIsDrafter(*config, "fuzz").ok()) {
    return;
  }
  const auto drafter = facet::DrafterConfigFromHf(*config, "fuzz", find);
  if (drafter.ok()) {
    CheckNumbers(*drafter);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && data[0] == '{') {
    RunConfig({reinterpret_cast<const char*>(data), size});
  } else {
    RunGguf({data, size});
  }
  return 0;
}
