// SPDX-License-Identifier: Apache-2.0
// A Hugging Face directory into one GGUF file: names and keys as llama.cpp reads them (reference.md
// section 9, the text model). Values are never transformed; types are those of the source unless
// another one is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace facet {

struct ConvertOptions {
  std::string in;    ///< directory with config.json, safetensors, tokenizer.json
  std::string out;   ///< file to be written; it appears only when it is complete
  std::string name;  ///< general.name; empty: the directory's name
  /// Type of the matrices: "auto" keeps each tensor's own, else "f32", "f16", "bf16" or "q8_0".
  /// Norms, scales and routers are always F32, and rows that are no multiple of 32 become F16 where
  /// q8_0 was asked for.
  std::string outtype = "auto";
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
};

/// Refuses a directory that is not a complete Gemma 4 text model, and an existing directory as the
/// output.
Status ConvertToGguf(const ConvertOptions& options);

}  // namespace facet
