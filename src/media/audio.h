// SPDX-License-Identifier: Apache-2.0
// Sound files to one channel of 16 kHz: WAV, FLAC, OGG (Vorbis, Opus) and MP3 by libsndfile,
// resampled by soxr, known by their first bytes and never by a name. Files are hostile: lengths are
// checked before memory is taken. AAC and what lies in video files: media_helper.h.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace facet {

inline constexpr int kSampleRate = 16000;

/// One channel at kSampleRate, the mean of those in the file.
struct Waveform {
  std::vector<float> samples;

  [[nodiscard]] double seconds() const { return static_cast<double>(samples.size()) / kSampleRate; }
};

struct AudioLimits {
  size_t max_bytes = size_t{64} << 20;  ///< of the file
  double max_seconds = 3600;
};

/// `name` is what errors call the file. A file of a kind that only the helper reads is refused and
/// named (IsForHelper).
Result<Waveform> DecodeAudio(std::span<const std::byte> file, const AudioLimits& limits,
                             const std::string& name);

}  // namespace facet
