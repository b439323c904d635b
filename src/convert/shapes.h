// SPDX-License-Identifier: Apache-2.0
// The released sizes of Gemma 4 and of their drafters, as numbers (reference.md section 2), so that
// a file of real shape can be made without the real one. The model's own table (model/config.cc)
// checks files against the same numbers; a test holds the two together.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/config.h"

namespace facet {

/// The small network that guesses ahead for a model (reference.md section 8): three sliding layers
/// and a full one, which read the keys and values of the model.
struct DrafterShape {
  int n_embd;
  int n_ff;
  int n_heads;
};

/// One released size. What holds for all: 262144 tokens, heads of 256 in sliding layers and of 512
/// in full ones.
struct ModelShape {
  std::string_view name;   ///< as users write it: "26b-a4b"
  std::string_view label;  ///< "26B-A4B"
  int n_layers;
  int n_embd;
  int n_heads;
  int n_kv_sliding;  ///< KV heads
  int n_kv_full;
  int n_ff;
  int n_ff_shared;  ///< of the layers that share keys and values
  int full_every;   ///< every n-th layer is full
  int sliding_window;
  int n_context;
  int n_embd_per_layer;
  int n_shared;  ///< the last layers, which share keys and values
  bool v_is_k;   ///< in full layers
  int n_experts;
  int n_experts_used;
  int n_ff_expert;
  DrafterShape drafter;
};

std::span<const ModelShape> ModelShapes();

/// What `text` asks for: "e2b" is a whole size, "e2b:26" its first 26 layers. These are as in the
/// whole model: the layers from the 16th on of an E2B share the keys and values of the 14th and
/// 15th, so fewer layers have fewer that share. There is at least one full layer: no engine expects
/// a model without.
struct ShapeRequest {
  const ModelShape* shape;
  int n_layers;
};
Result<ShapeRequest> ParseShape(std::string_view text);

/// The model's numbers; complete and checked.
Result<Config> ConfigOfShape(const ShapeRequest& request);

/// The drafter's numbers, in the same terms: all four layers share. Its layers name no donors
/// (kv_layer), for these are the model's.
Config DrafterConfigOfShape(const ModelShape& shape);

}  // namespace facet
