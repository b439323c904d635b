// SPDX-License-Identifier: Apache-2.0
// The spectrogram that the audio encoder reads (reference.md 4.1): 128 mel bands every 10 ms,
// natural logarithm of magnitude plus 0.001.
#pragma once

#include <span>
#include <vector>

namespace facet {

inline constexpr int kMelBands = 128;

struct LogMel {
  int n_frames = 0;
  std::vector<float> values;  ///< [n_frames, kMelBands]
};

/// The valid frames of samples at kSampleRate: floor((n - 1) / 160), none for up to 160 samples.
/// Does not cut: what is longer than 30 s is the caller's business.
LogMel ComputeLogMel(std::span<const float> samples);

}  // namespace facet
