// SPDX-License-Identifier: Apache-2.0
// What a file of real shape needs to know of the released sizes of Gemma 4 besides the numbers that
// every file is checked against (model/config.h), and the shapes of their drafters.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/config.h"
#include "model/drafter_checkpoint.h"

namespace facet {

/// The small network that guesses ahead for a model (reference.md section 8): three sliding layers
/// and a full one, which read the keys and values of the model.
struct DrafterShape {
  int n_embd;
  int n_ff;
  int n_heads;
  int n_centroids;  ///< of which the best 32 are scored; 0: the output is dense
};

/// One released size. What holds for all: 262144 tokens.
struct ModelShape {
  std::string_view name;  ///< as users write it: "26b-a4b"
  ReleasedSize size;
  int n_context;
  bool v_is_k;  ///< in full layers
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
DrafterConfig DrafterConfigOfShape(const ModelShape& shape);

}  // namespace facet
