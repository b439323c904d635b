// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace facet {
namespace {

/// Checks one number against bounds, naming it.
Status CheckRange(const std::string& name, std::string_view what, int64_t value, int64_t low,
                  int64_t high) {
  if (value < low || value > high) {
    return Refuse(name, fmt::format("{} {}", what, value), fmt::format("{} to {}", low, high));
  }
  return {};
}

Status CheckEqual(const std::string& name, const ReleasedSize& size, std::string_view what,
                  int64_t found, int64_t wanted) {
  if (found != wanted) {
    return Refuse(name, fmt::format("{} {}", what, found),
                  fmt::format("{} for Gemma 4 {}", wanted, size.label));
  }
  return {};
}

Status CheckReleased(const Config& c, const ReleasedSize& size, const std::string& name) {
  FACET_RETURN_IF_ERROR(CheckEqual(name, size, "attention heads", c.n_heads, size.n_heads));
  FACET_RETURN_IF_ERROR(
      CheckEqual(name, size, "sliding window", c.sliding_window, size.sliding_window));
  FACET_RETURN_IF_ERROR(CheckEqual(name, size, "per-layer embedding width", c.n_embd_per_layer,
                                   size.n_embd_per_layer));
  FACET_RETURN_IF_ERROR(
      CheckEqual(name, size, "shared KV layers", c.n_shared_kv_layers, size.n_shared));
  FACET_RETURN_IF_ERROR(CheckEqual(name, size, "experts", c.n_experts, size.n_experts));
  FACET_RETURN_IF_ERROR(
      CheckEqual(name, size, "experts used", c.n_experts_used, size.n_experts_used));
  FACET_RETURN_IF_ERROR(
      CheckEqual(name, size, "expert feed-forward width", c.n_ff_expert, size.n_ff_expert));
  for (int l = 0; l < c.n_layers; ++l) {
    const LayerDesc& layer = c.layers[static_cast<size_t>(l)];
    const bool is_full = layer.kind == LayerKind::kFull;
    const auto of_layer = [l](std::string_view what) {
      return fmt::format("layer {} {}", l, what);
    };
    FACET_RETURN_IF_ERROR(CheckEqual(name, size, of_layer("full attention"), is_full ? 1 : 0,
                                     (l + 1) % size.full_every == 0 ? 1 : 0));
    FACET_RETURN_IF_ERROR(CheckEqual(name, size, of_layer("head size"), layer.d_head,
                                     is_full ? kReleasedHeadFull : kReleasedHeadSliding));
    FACET_RETURN_IF_ERROR(CheckEqual(name, size, of_layer("KV heads"), layer.n_kv_heads,
                                     is_full ? size.n_kv_full : size.n_kv_sliding));
    FACET_RETURN_IF_ERROR(CheckEqual(name, size, of_layer("feed-forward width"), layer.n_ff,
                                     l >= c.first_shared_layer() ? size.n_ff_shared : size.n_ff));
  }
  return {};
}

/// The donor of a shared layer: the last layer of its kind that writes its own K and V
/// (reference.md 1.9).
Status SetDonors(Config* c, const std::string& name) {
  for (int l = 0; l < c->n_layers; ++l) {
    LayerDesc& layer = c->layers[static_cast<size_t>(l)];
    layer.kv_layer = l;
    if (l < c->first_shared_layer()) {
      continue;
    }
    int donor = c->first_shared_layer() - 1;
    while (donor >= 0 && c->layers[static_cast<size_t>(donor)].kind != layer.kind) {
      --donor;
    }
    if (donor < 0) {
      return Refuse(
          name, fmt::format("layer {} shares KV and no layer before {} of its kind writes any", l,
                            c->first_shared_layer()));
    }
    const LayerDesc& source = c->layers[static_cast<size_t>(donor)];
    if (source.d_head != layer.d_head || source.n_kv_heads != layer.n_kv_heads) {
      return Refuse(name,
                    fmt::format("layer {} with {} KV heads of {} shares the KV of layer {}", l,
                                layer.n_kv_heads, layer.d_head, donor),
                    fmt::format("{} heads of {}", source.n_kv_heads, source.d_head));
    }
    layer.kv_layer = donor;
  }
  return {};
}

Status CheckLayer(const Config& c, int l, const std::string& name) {
  const LayerDesc& layer = c.layers[static_cast<size_t>(l)];
  const auto of_layer = [l](std::string_view what) { return fmt::format("layer {} {}", l, what); };
  FACET_RETURN_IF_ERROR(CheckRange(name, of_layer("head size"), layer.d_head, 2, 4096));
  FACET_RETURN_IF_ERROR(CheckRange(name, of_layer("KV heads"), layer.n_kv_heads, 1, c.n_heads));
  FACET_RETURN_IF_ERROR(CheckRange(name, of_layer("feed-forward width"), layer.n_ff, 1, 1 << 20));
  if (layer.d_head % 2 != 0) {
    return Refuse(name, fmt::format("{} {}", of_layer("head size"), layer.d_head),
                  "an even number");
  }
  if (c.n_heads % layer.n_kv_heads != 0) {
    return Refuse(name,
                  fmt::format("layer {}: {} attention heads over {} KV heads", l, c.n_heads,
                              layer.n_kv_heads),
                  "a whole ratio");
  }
  return {};
}

}  // namespace

bool Config::has_sliding_layers() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const LayerDesc& layer) { return layer.kind == LayerKind::kSliding; });
}

Status CompleteConfig(Config* config, const std::string& name) {
  Config& c = *config;
  FACET_RETURN_IF_ERROR(CheckRange(name, "layers", c.n_layers, 1, 1024));
  FACET_RETURN_IF_ERROR(CheckRange(name, "embedding width", c.n_embd, 1, 1 << 16));
  FACET_RETURN_IF_ERROR(CheckRange(name, "attention heads", c.n_heads, 1, 1024));
  FACET_RETURN_IF_ERROR(CheckRange(name, "vocabulary size", c.n_vocab, 1, 1 << 24));
  FACET_RETURN_IF_ERROR(CheckRange(name, "context length", c.n_context, 1, 1 << 24));
  FACET_RETURN_IF_ERROR(
      CheckRange(name, "per-layer embedding width", c.n_embd_per_layer, 0, 1 << 14));
  FACET_RETURN_IF_ERROR(
      CheckRange(name, "shared KV layers", c.n_shared_kv_layers, 0, c.n_layers - 1));
  FACET_RETURN_IF_ERROR(CheckRange(name, "experts", c.n_experts, 0, 4096));
  if (c.n_experts > 0) {
    FACET_RETURN_IF_ERROR(CheckRange(name, "experts used", c.n_experts_used, 1, c.n_experts));
    FACET_RETURN_IF_ERROR(CheckRange(name, "expert feed-forward width", c.n_ff_expert, 1, 1 << 20));
  } else {
    c.n_experts_used = 0;
    c.n_ff_expert = 0;
  }
  if (!(c.norm_eps > 0 && c.norm_eps < 1)) {
    return Refuse(name, fmt::format("norm epsilon {}", c.norm_eps), "above 0 and below 1");
  }
  if (!(c.logit_softcap >= 0 && c.logit_softcap < 1e6F)) {
    return Refuse(name, fmt::format("logit softcap {}", c.logit_softcap),
                  "0 (none) or a positive number");
  }
  if (!(c.rope_theta_full > 1 && c.rope_theta_sliding > 1 && c.rope_theta_full < 1e12F)) {
    return Refuse(name,
                  fmt::format("rope bases {} and {}", c.rope_theta_full, c.rope_theta_sliding),
                  "above 1");
  }
  if (!(c.rope_full_turning > 0 && c.rope_full_turning <= 1)) {
    return Refuse(name, fmt::format("partial rotary factor {}", c.rope_full_turning),
                  "above 0 and at most 1");
  }
  FACET_CHECK(static_cast<int>(c.layers.size()) == c.n_layers);
  for (int l = 0; l < c.n_layers; ++l) {
    FACET_RETURN_IF_ERROR(CheckLayer(c, l, name));
  }
  if (c.has_sliding_layers()) {
    FACET_RETURN_IF_ERROR(CheckRange(name, "sliding window", c.sliding_window, 1, 1 << 24));
  }
  FACET_RETURN_IF_ERROR(SetDonors(&c, name));
  for (const ReleasedSize& size : kReleasedSizes) {
    if (c.n_layers == size.n_layers && c.n_embd == size.n_embd) {
      FACET_RETURN_IF_ERROR(CheckReleased(c, size, name));
      c.size_label = size.label;
    }
  }
  return {};
}

}  // namespace facet
