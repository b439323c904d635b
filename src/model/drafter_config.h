// SPDX-License-Identifier: Apache-2.0
// The numbers of a drafter, from metadata or config.json and from the shapes of its tensors. A
// tensor's shape decides where it tells a size; what the rest of the file says of it must agree.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "format/gguf.h"
#include "model/drafter_checkpoint.h"

namespace facet {

/// The tensor of a name of llama.cpp's master branch, or null.
using DrafterTensorFinder = std::function<const CheckpointTensor*(std::string_view name)>;

/// Clusters that are scored where a file does not say how many.
inline constexpr int kDefaultTopCentroids = 32;

/// Whether general.architecture is one that drafters are known by.
bool IsDrafterArchitecture(std::string_view architecture);

/// Refused: what is no drafter, saying what it is.
Status CheckIsDrafter(const gguf::Metadata& metadata, const std::string& name);
Status CheckIsDrafter(const Json& config, const std::string& name);

/// Of what CheckIsDrafter accepts. `name` is what errors call the file.
Result<DrafterConfig> DrafterConfigFromGguf(const gguf::Metadata& metadata, const std::string& name,
                                            const DrafterTensorFinder& find);
/// `config` is config.json of the directory.
Result<DrafterConfig> DrafterConfigFromHf(const Json& config, const std::string& directory,
                                          const DrafterTensorFinder& find);

}  // namespace facet
