// SPDX-License-Identifier: Apache-2.0
// A checkpoint of real shape with random weights: what it weighs, how it is read and how fast it
// computes are those of the released model; what it says is nonsense. For measurements without the
// real files. Names and keys are those that llama.cpp's converter writes, types those of `facet
// quantize`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "format/gguf.h"

namespace facet {

/// Which file of a released size is made.
enum class SynthPart {
  kModel,
  kDrafter,   ///< the number of layers has no meaning
  kProjector  ///< the encoders of pictures and sound, as an mmproj file; without a tokenizer
};

struct SynthOptions {
  std::string out;            ///< file to be written; it appears only when it is complete
  std::string shape = "e2b";  ///< see ParseShape
  SynthPart part = SynthPart::kModel;
  /// Of a drafter: the dense output also where the released one has centroids, with which llama.cpp
  /// loads no file.
  bool leaves_out_centroids = false;
  std::string type = "q4_0";  ///< what quantize_plan.h knows; of a projector f32, f16, bf16, q8_0
  /// Whose tokenizer and chat template are taken. The released models have 262144 tokens: what is
  /// missing becomes tokens that no text turns into.
  gguf::Metadata tokenizer;
  std::string tokenizer_name;  ///< what errors call it
  uint64_t seed = 0;           ///< the same seed gives the same file
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
};

/// Weights are normally distributed with the variance that keeps activations near 1; norms are 1.
/// Takes little memory besides the tokenizer, however large the file.
Status WriteSynthetic(const SynthOptions& options);

}  // namespace facet
