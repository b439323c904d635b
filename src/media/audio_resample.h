// SPDX-License-Identifier: Apache-2.0
// One channel of any rate to kSampleRate, piece by piece, by soxr in the quality that librosa
// takes by default. Piece by piece, so that the clip at its own rate is never in memory as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

struct soxr;

namespace facet {

/// Not for several threads.
class Resampler {
 public:
  /// `rate` in Hz, positive. `name` is what the error calls the clip: soxr may lack memory.
  static Result<Resampler> Create(int rate, const std::string& name);

  void Add(std::span<const float> samples);
  /// All of it: ceil(n · 16000 / rate) samples, counted in doubles as librosa does; or the first
  /// failure of soxr. Ends the clip.
  Result<std::vector<float>> Finish();

 private:
  struct Closer {
    void operator()(soxr* resampler) const;
  };

  Resampler(std::string name, int rate, std::unique_ptr<soxr, Closer> resampler)
      : name_(std::move(name)), rate_(rate), resampler_(std::move(resampler)) {}

  std::string name_;
  int rate_;
  std::unique_ptr<soxr, Closer> resampler_;  // none: nothing to be done
  const char* error_ = nullptr;              // soxr's first; nothing is added behind it
  int64_t n_added_ = 0;
  std::vector<float> out_;
};

}  // namespace facet
