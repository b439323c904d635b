// SPDX-License-Identifier: Apache-2.0
// From the names of encoder tensors in Hugging Face checkpoints to those of mmproj GGUF files
// (reference.md 9.3). Names only; what else differs is changed by media_checkpoint.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace facet {

/// "model.vision_tower.encoder.layers.3.mlp.up_proj.linear.weight" -> "v.blk.3.ffn_up.weight", and
/// ".input_min" beside it likewise; nothing for a tensor that no encoder has.
std::optional<std::string> MediaGgufNameOf(std::string_view hf_name);

}  // namespace facet
