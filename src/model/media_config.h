// SPDX-License-Identifier: Apache-2.0
// The numbers of the encoders, from an mmproj file's metadata or from config.json; what is not said
// there is read off the shapes of the tensors. For media_checkpoint.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "format/gguf.h"
#include "model/media_checkpoint.h"

namespace facet {

inline constexpr float kEncoderNormEps = 1e-6F;  ///< always; old files carry a wrong one for sound

/// Finds a tensor by its GGUF name, in the layout of media_layout.h, or null.
using MediaTensorFinder = std::function<const CheckpointTensor*(std::string_view)>;

/// Refused: another architecture than "clip", projectors of other models, numbers outside
/// plausible ranges, a file without an encoder. `clip.use_gelu` is ignored: Gemma 4 was trained
/// with tanh-GELU whatever the key says.
Result<MediaConfig> MediaConfigFromGguf(const gguf::Metadata& metadata, const std::string& name,
                                        const MediaTensorFinder& find);

/// Encoders are those that `config` names and that have tensors. `processor` is
/// processor_config.json or null.
Result<MediaConfig> MediaConfigFromHf(const Json& config, const Json& processor,
                                      const std::string& directory, const MediaTensorFinder& find);

}  // namespace facet
