// SPDX-License-Identifier: Apache-2.0
// From the tensor names of Hugging Face checkpoints to those of GGUF (reference.md 9.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace facet {

/// The GGUF name of a text tensor ("model.language_model.layers.3.mlp.up_proj.weight" ->
/// "blk.3.ffn_up.weight"), or nothing for a tensor that is not part of the text model or is not
/// known.
std::optional<std::string> GgufNameOf(std::string_view hf_name);

/// Whether the name belongs to a part that is not the text model: vision and audio towers and their
/// embedders.
bool IsMediaTensor(std::string_view hf_name);

/// A name in parts, for tables of names.
struct HfNameParts {
  std::string_view layer;  ///< the digits of "layers.12.", or empty
  std::string_view rest;
};
/// Takes away what stands before "layers.N." or before a global name: `prefix`, after the names of
/// modules that differ between versions ("model.", "language_model."). Nothing when the name does
/// not begin so.
std::optional<HfNameParts> SplitHfName(std::string_view hf_name, std::string_view prefix);

}  // namespace facet
