// SPDX-License-Identifier: Apache-2.0
// Which encoders of pictures and sound go with a model: those that were named, those of the model's
// own directory, or the projector file that lies beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/options.h"
#include "base/status.h"
#include "model/checkpoint.h"
#include "model/media_checkpoint.h"

namespace facet {

/// The files mmproj*.gguf in the folder of `model`, a .gguf file; by name.
std::vector<std::string> ProjectorsBeside(const std::string& model);

/// The encoders for the model that the options name, or nothing: text only. What was named must be
/// there and fit. What was only found beside the model is told in a line on standard error; where
/// it does not fit, or where there are several, a warning says so and the model is text only.
Result<std::optional<MediaCheckpoint>> OpenEncoders(const Options& options,
                                                    const Checkpoint& checkpoint);

}  // namespace facet
