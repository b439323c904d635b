// SPDX-License-Identifier: Apache-2.0
// The encoders of pictures and sound of a released size as tensors and keys of an mmproj file: what
// llama.cpp's converter would write (reference.md section 2 and 9.3).
#pragma once

#include <optional>
#include <vector>

#include "convert/shapes.h"
#include "convert/synth_tensors.h"
#include "format/gguf.h"

namespace facet {

/// A tower of layers, or none: the encoder-free embedder of the 12B.
struct TowerShape {
  int n_embd = 0;
  int n_ff = 0;
  int n_layers = 0;  ///< 0: the embedder
  int n_heads = 0;
  int n_positions = 0;       ///< pictures: of each side
  bool is_clipped = false;   ///< its linears have bounds
  bool is_standard = false;  ///< pictures: pooled values are standardised
  int n_channels = 0;        ///< sound: of the second convolution
  int n_out = 0;             ///< sound: before the projection
};

struct ProjectorShape {
  int n_embd_text = 0;
  TowerShape vision;
  std::optional<TowerShape> audio;
};

ProjectorShape ProjectorOfShape(const ModelShape& shape);
std::vector<SynthTensor> ProjectorTensors(const ProjectorShape& shape);
gguf::Metadata ProjectorMetadata(const ProjectorShape& shape);

}  // namespace facet
