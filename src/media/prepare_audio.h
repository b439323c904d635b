// SPDX-License-Identifier: Apache-2.0
// Sound made ready for the encoder. An encoder of log-mel hears 30 seconds at a time; what happens
// to longer clips is chosen, and never passed over in silence.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "media/audio.h"
#include "media/media_item.h"

namespace facet {

inline constexpr double kWindowSeconds = 30;

/// What is done with more than kWindowSeconds, where the encoder has that limit.
enum class LongAudio {
  kCut,    ///< the first 30 s, as the reference does; `notice` says so
  kSplit,  ///< windows of 30 s, one item after the other
  kRefuse
};

struct PreparedAudio {
  std::vector<MediaItemPtr> items;  ///< not empty
  std::string notice;  ///< what was left out, or empty: "clip.wav: 65.0 s of sound, of which ..."
};

/// `name` is what errors and notices call the clip. Sound too short for one soft token is refused,
/// and samples that are no numbers or beyond any loudness, wherever the sound comes from.
Result<PreparedAudio> PrepareAudio(const Waveform& waveform, AudioForm form, LongAudio rule,
                                   const std::string& name);

}  // namespace facet
