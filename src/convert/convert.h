// SPDX-License-Identifier: Apache-2.0
// A Hugging Face directory into GGUF files: names and keys as llama.cpp reads them (reference.md
// section 9, text models and drafters). Values are never transformed; types are those of the source
// unless another one is asked for. docs/convert.md says what is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace facet {

struct ConvertOptions {
  std::string in;    ///< directory with config.json, safetensors, tokenizer.json
  std::string out;   ///< NAME.gguf, which appears only when it is complete
  std::string name;  ///< general.name; empty: the directory's name
  /// Type of the matrices: "auto" keeps each tensor's own, else "f32", "f16", "bf16" or "q8_0".
  /// Norms, scales and routers are always F32, and rows that are no multiple of 32 become F16 where
  /// q8_0 was asked for.
  std::string outtype = "auto";
  /// Of a drafter: without its centroid head, with which llama.cpp loads no file.
  bool leaves_out_centroids = false;
  /// Of a drafter: who lends a tokenizer where its directory has none, the GGUF file or the
  /// directory of its target; empty: nobody.
  std::string tokenizer;
  /// 0: one file. Else files NAME-00001-of-0000N.gguf of at most this size (gguf::WriteSplit).
  uint64_t max_file_bytes = 0;
  /// Called with the names of the files once the input has been accepted, before any is written.
  std::function<void(const std::vector<std::string>& paths)> on_paths;
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
};

struct ConvertSummary {
  std::vector<std::string> paths;  ///< of the files, the one to be opened first
  size_t n_left_out = 0;           ///< tensors of vision and audio
  bool is_drafter = false;
  bool has_tokenizer = true;  ///< always, but for a drafter: Facet needs none in it
};

/// Refuses a directory that is not a complete Gemma 4 text model or drafter, tensors that are not
/// known, and an existing directory as the output.
Result<ConvertSummary> ConvertToGguf(const ConvertOptions& options);

}  // namespace facet
