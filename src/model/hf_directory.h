// SPDX-License-Identifier: Apache-2.0
// The files of a Hugging Face directory: JSON with limits, and the safetensors beside it.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "base/status.h"
#include "format/safetensors.h"

namespace facet {

inline constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
inline constexpr uint64_t kMaxTokenizerBytes = uint64_t{256} << 20;

Result<Json> ReadJson(const std::string& path, uint64_t limit_bytes);
/// Null when there is no such file.
Result<Json> ReadJsonIfThere(const std::string& path, uint64_t limit_bytes);

/// What stands after the last slash, for a model without a name of its own.
std::string LastPart(std::string path);

/// model.safetensors.index.json with its shards, else model.safetensors.
Result<safetensors::File> OpenSafetensors(const std::string& directory);

}  // namespace facet
