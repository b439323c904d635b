// SPDX-License-Identifier: Apache-2.0
#include "convert/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace facet {
namespace {

constexpr int kVocabulary = 262144;
constexpr int kDrafterLayers = 4;
constexpr int kTopCentroids = 32;

constexpr std::array kShapes = {
    ModelShape{"e2b", kReleasedSizes[0], 131072, false, {256, 2048, 4, 2048}},
    ModelShape{"e4b", kReleasedSizes[1], 131072, false, {256, 2048, 4, 2048}},
    ModelShape{"12b", kReleasedSizes[2], 262144, true, {1024, 8192, 16, 0}},
    ModelShape{"26b-a4b", kReleasedSizes[3], 262144, true, {1024, 8192, 16, 0}},
    ModelShape{"31b", kReleasedSizes[4], 262144, true, {1024, 8192, 32, 0}},
};

LayerDesc LayerOf(const ModelShape& shape, bool is_full) {
  LayerDesc layer;
  layer.kind = is_full ? LayerKind::kFull : LayerKind::kSliding;
  layer.d_head = is_full ? kReleasedHeadFull : kReleasedHeadSliding;
  layer.n_kv_heads = is_full ? shape.size.n_kv_full : shape.size.n_kv_sliding;
  layer.v_is_k = is_full && shape.v_is_k;
  return layer;
}

/// What a model and its drafter have in common.
Config CommonConfig(const ModelShape& shape) {
  Config c;
  c.n_vocab = kVocabulary;
  c.n_context = shape.n_context;
  c.sliding_window = shape.size.sliding_window;
  return c;
}

}  // namespace

std::span<const ModelShape> ModelShapes() { return kShapes; }

Result<ShapeRequest> ParseShape(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto* shape = std::find_if(kShapes.begin(), kShapes.end(),
                                   [name](const ModelShape& s) { return s.name == name; });
  if (shape == kShapes.end()) {
    return Refuse("--shape", fmt::format("\"{}\"", text), "e2b, e4b, 12b, 26b-a4b or 31b");
  }
  if (colon == std::string_view::npos) {
    return ShapeRequest{shape, shape->size.n_layers};
  }
  const std::string_view digits = text.substr(colon + 1);
  const char* end = digits.data() + digits.size();
  int n_layers = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, n_layers);
  if (error != std::errc() || stop != end || n_layers < shape->size.full_every ||
      n_layers > shape->size.n_layers) {
    return Refuse(
        "--shape", fmt::format("\"{}\"", text),
        fmt::format("{} to {} layers of {}", shape->size.full_every, shape->size.n_layers, name));
  }
  return ShapeRequest{shape, n_layers};
}

Result<Config> ConfigOfShape(const ShapeRequest& request) {
  const ModelShape& shape = *request.shape;
  const ReleasedSize& size = shape.size;
  const int first_shared = size.n_layers - size.n_shared;
  Config c = CommonConfig(shape);
  c.n_layers = request.n_layers;
  c.n_embd = size.n_embd;
  c.n_heads = size.n_heads;
  c.n_embd_per_layer = size.n_embd_per_layer;
  c.n_shared_kv_layers = std::max(0, request.n_layers - first_shared);
  c.n_experts = size.n_experts;
  c.n_experts_used = size.n_experts_used;
  c.n_ff_expert = size.n_ff_expert;
  c.has_bidirectional_spans = size.n_embd_per_layer == 0;
  for (int l = 0; l < c.n_layers; ++l) {
    LayerDesc layer = LayerOf(shape, (l + 1) % size.full_every == 0);
    layer.n_ff = l < first_shared ? size.n_ff : size.n_ff_shared;
    c.layers.push_back(layer);
  }
  FACET_RETURN_IF_ERROR(CompleteConfig(&c, std::string(shape.name)));
  return c;
}

DrafterConfig DrafterConfigOfShape(const ModelShape& shape) {
  DrafterConfig drafter;
  drafter.n_embd_target = shape.size.n_embd;
  drafter.n_centroids = shape.drafter.n_centroids;
  drafter.n_top_centroids = drafter.n_centroids > 0 ? kTopCentroids : 0;
  Config& c = drafter.body;
  c = CommonConfig(shape);
  c.n_layers = kDrafterLayers;
  c.n_shared_kv_layers = kDrafterLayers;
  c.n_embd = shape.drafter.n_embd;
  c.n_heads = shape.drafter.n_heads;
  c.logit_softcap = 0;
  for (int l = 0; l < kDrafterLayers; ++l) {
    LayerDesc layer = LayerOf(shape, l == kDrafterLayers - 1);
    layer.n_ff = shape.drafter.n_ff;
    c.layers.push_back(layer);
  }
  return drafter;
}

}  // namespace facet
