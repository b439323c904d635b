// SPDX-License-Identifier: Apache-2.0
#include "convert/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace facet {
namespace {

constexpr int kVocabulary = 262144;
constexpr int kHeadSliding = 256;
constexpr int kHeadFull = 512;
constexpr int kDrafterLayers = 4;

constexpr std::array kShapes = {
    ModelShape{.name = "e2b",
               .label = "E2B",
               .n_layers = 35,
               .n_embd = 1536,
               .n_heads = 8,
               .n_kv_sliding = 1,
               .n_kv_full = 1,
               .n_ff = 6144,
               .n_ff_shared = 12288,
               .full_every = 5,
               .sliding_window = 512,
               .n_context = 131072,
               .n_embd_per_layer = 256,
               .n_shared = 20,
               .v_is_k = false,
               .n_experts = 0,
               .n_experts_used = 0,
               .n_ff_expert = 0,
               .drafter = {.n_embd = 256, .n_ff = 2048, .n_heads = 4}},
    ModelShape{.name = "e4b",
               .label = "E4B",
               .n_layers = 42,
               .n_embd = 2560,
               .n_heads = 8,
               .n_kv_sliding = 2,
               .n_kv_full = 2,
               .n_ff = 10240,
               .n_ff_shared = 10240,
               .full_every = 6,
               .sliding_window = 512,
               .n_context = 131072,
               .n_embd_per_layer = 256,
               .n_shared = 18,
               .v_is_k = false,
               .n_experts = 0,
               .n_experts_used = 0,
               .n_ff_expert = 0,
               .drafter = {.n_embd = 256, .n_ff = 2048, .n_heads = 4}},
    ModelShape{.name = "12b",
               .label = "12B",
               .n_layers = 48,
               .n_embd = 3840,
               .n_heads = 16,
               .n_kv_sliding = 8,
               .n_kv_full = 1,
               .n_ff = 15360,
               .n_ff_shared = 15360,
               .full_every = 6,
               .sliding_window = 1024,
               .n_context = 262144,
               .n_embd_per_layer = 0,
               .n_shared = 0,
               .v_is_k = true,
               .n_experts = 0,
               .n_experts_used = 0,
               .n_ff_expert = 0,
               .drafter = {.n_embd = 1024, .n_ff = 8192, .n_heads = 16}},
    ModelShape{.name = "26b-a4b",
               .label = "26B-A4B",
               .n_layers = 30,
               .n_embd = 2816,
               .n_heads = 16,
               .n_kv_sliding = 8,
               .n_kv_full = 2,
               .n_ff = 2112,
               .n_ff_shared = 2112,
               .full_every = 6,
               .sliding_window = 1024,
               .n_context = 262144,
               .n_embd_per_layer = 0,
               .n_shared = 0,
               .v_is_k = true,
               .n_experts = 128,
               .n_experts_used = 8,
               .n_ff_expert = 704,
               .drafter = {.n_embd = 1024, .n_ff = 8192, .n_heads = 16}},
    ModelShape{.name = "31b",
               .label = "31B",
               .n_layers = 60,
               .n_embd = 5376,
               .n_heads = 32,
               .n_kv_sliding = 16,
               .n_kv_full = 4,
               .n_ff = 21504,
               .n_ff_shared = 21504,
               .full_every = 6,
               .sliding_window = 1024,
               .n_context = 262144,
               .n_embd_per_layer = 0,
               .n_shared = 0,
               .v_is_k = true,
               .n_experts = 0,
               .n_experts_used = 0,
               .n_ff_expert = 0,
               .drafter = {.n_embd = 1024, .n_ff = 8192, .n_heads = 32}},
};

LayerDesc LayerOf(const ModelShape& shape, bool is_full) {
  LayerDesc layer;
  layer.kind = is_full ? LayerKind::kFull : LayerKind::kSliding;
  layer.d_head = is_full ? kHeadFull : kHeadSliding;
  layer.n_kv_heads = is_full ? shape.n_kv_full : shape.n_kv_sliding;
  layer.v_is_k = is_full && shape.v_is_k;
  return layer;
}

/// What a model and its drafter have in common.
Config CommonConfig(const ModelShape& shape) {
  Config c;
  c.n_vocab = kVocabulary;
  c.n_context = shape.n_context;
  c.sliding_window = shape.sliding_window;
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
    return ShapeRequest{shape, shape->n_layers};
  }
  const std::string_view digits = text.substr(colon + 1);
  const char* end = digits.data() + digits.size();
  int n_layers = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, n_layers);
  if (error != std::errc() || stop != end || n_layers < shape->full_every ||
      n_layers > shape->n_layers) {
    return Refuse("--shape", fmt::format("\"{}\"", text),
                  fmt::format("{} to {} layers of {}", shape->full_every, shape->n_layers, name));
  }
  return ShapeRequest{shape, n_layers};
}

Result<Config> ConfigOfShape(const ShapeRequest& request) {
  const ModelShape& shape = *request.shape;
  const int first_shared = shape.n_layers - shape.n_shared;
  Config c = CommonConfig(shape);
  c.n_layers = request.n_layers;
  c.n_embd = shape.n_embd;
  c.n_heads = shape.n_heads;
  c.n_embd_per_layer = shape.n_embd_per_layer;
  c.n_shared_kv_layers = std::max(0, request.n_layers - first_shared);
  c.n_experts = shape.n_experts;
  c.n_experts_used = shape.n_experts_used;
  c.n_ff_expert = shape.n_ff_expert;
  c.has_bidirectional_spans = shape.n_embd_per_layer == 0;
  for (int l = 0; l < c.n_layers; ++l) {
    LayerDesc layer = LayerOf(shape, (l + 1) % shape.full_every == 0);
    layer.n_ff = l < first_shared ? shape.n_ff : shape.n_ff_shared;
    c.layers.push_back(layer);
  }
  FACET_RETURN_IF_ERROR(CompleteConfig(&c, std::string(shape.name)));
  return c;
}

Config DrafterConfigOfShape(const ModelShape& shape) {
  Config c = CommonConfig(shape);
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
  return c;
}

}  // namespace facet
