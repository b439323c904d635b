// SPDX-License-Identifier: Apache-2.0
// Any bytes give an error, or sound within the limits that can be prepared for both kinds of
// encoder, unless it is too short.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "media/audio.h"
#include "media/log_mel.h"
#include "media/prepare_audio.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr facet::AudioLimits kLimits = {.max_bytes = 1 << 16, .max_seconds = 4};
  const auto sound = facet::DecodeAudio(std::as_bytes(std::span(data, size)), kLimits, "fuzz");
  if (!sound.ok()) {
    FACET_CHECK(!sound.error().Message().empty());
    return 0;
  }
  FACET_CHECK(!sound->samples.empty() && sound->seconds() <= kLimits.max_seconds + 0.1);
  const auto raw =
      facet::PrepareAudio(*sound, facet::AudioForm::kRaw, facet::LongAudio::kRefuse, "fuzz");
  FACET_CHECK(raw.ok() && raw->items.size() == 1);
  const auto mel =
      facet::PrepareAudio(*sound, facet::AudioForm::kLogMel, facet::LongAudio::kRefuse, "fuzz");
  FACET_CHECK(mel.ok() == (sound->samples.size() > 160));
  if (mel.ok()) {
    const facet::MediaItem& item = *mel->items.at(0);
    FACET_CHECK(item.sound.size() == static_cast<size_t>(item.n_frames) * facet::kMelBands);
    for (const float value : item.sound) {
      FACET_CHECK(std::isfinite(value));
    }
  }
  return 0;
}
