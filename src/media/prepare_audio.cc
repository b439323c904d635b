// SPDX-License-Identifier: Apache-2.0
#include "media/prepare_audio.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "media/log_mel.h"

namespace facet {
namespace {

constexpr size_t kWindow = static_cast<size_t>(kWindowSeconds) * kSampleRate;
constexpr size_t kRawToken = 640;
/// The least that gives one frame of log-mel, and so one soft token.
constexpr size_t kLeastLogMel = 161;
/// Louder is no sound, and keeps all sums behind it finite. Files of floats may be scaled like
/// whole numbers of 32 bits.
constexpr float kLoudest = 1e10F;

/// In tenths, rounded up, so that what is longer than 30 s never reads as 30.0 s.
std::string SecondsText(size_t n_samples) {
  constexpr size_t kTenth = kSampleRate / 10;
  const size_t tenths = (n_samples + kTenth - 1) / kTenth;
  return fmt::format("{}.{} s", tenths / 10, tenths % 10);
}

MediaItemPtr Finished(MediaItem item) {
  item.hash = HashOf(item);
  return std::make_shared<const MediaItem>(std::move(item));
}

/// `samples`: kLeastLogMel to kWindow.
MediaItemPtr LogMelItem(std::span<const float> samples) {
  LogMel log_mel = ComputeLogMel(samples);
  MediaItem item;
  item.kind = MediaKind::kAudio;
  item.audio_form = AudioForm::kLogMel;
  item.n_frames = log_mel.n_frames;
  item.n_tokens = (log_mel.n_frames + 3) / 4;  // two halvings that round up
  item.sound = std::move(log_mel.values);
  return Finished(std::move(item));
}

MediaItemPtr RawItem(std::span<const float> samples) {
  const size_t n_tokens = (samples.size() + kRawToken - 1) / kRawToken;
  MediaItem item;
  item.kind = MediaKind::kAudio;
  item.audio_form = AudioForm::kRaw;
  item.n_tokens = static_cast<int>(n_tokens);
  item.sound.reserve(n_tokens * kRawToken);
  item.sound.assign(samples.begin(), samples.end());
  item.sound.resize(n_tokens * kRawToken);
  return Finished(std::move(item));
}

/// What is done with more samples than kWindow.
Result<PreparedAudio> PrepareLong(std::span<const float> samples, LongAudio rule,
                                  const std::string& name) {
  const std::string length = SecondsText(samples.size());
  PreparedAudio out;
  switch (rule) {
    case LongAudio::kRefuse:
      return Refuse(name, length + " of sound", "at most " + SecondsText(kWindow));
    case LongAudio::kCut:
      out.items.push_back(LogMelItem(samples.first(kWindow)));
      out.notice = fmt::format("{}: {} of sound, of which the first {} are heard", name, length,
                               SecondsText(kWindow));
      break;
    case LongAudio::kSplit:
      out.items.reserve(samples.size() / kWindow + 1);
      while (samples.size() >= kLeastLogMel) {
        const size_t n = std::min(samples.size(), kWindow);
        out.items.push_back(LogMelItem(samples.first(n)));
        samples = samples.subspan(n);
      }
      if (!samples.empty()) {
        out.notice = fmt::format("{}: the last {} of {} samples are too few to be heard", name,
                                 samples.size(), out.items.size() * kWindow + samples.size());
      }
      break;
  }
  return out;
}

}  // namespace

Result<PreparedAudio> PrepareAudio(const Waveform& waveform, AudioForm form, LongAudio rule,
                                   const std::string& name) {
  const std::span<const float> samples = waveform.samples;
  const size_t n_least = form == AudioForm::kLogMel ? kLeastLogMel : 1;
  if (samples.size() < n_least) {
    return Refuse(name, fmt::format("{} samples of 16 kHz", samples.size()),
                  fmt::format("at least {}", n_least));
  }
  const auto odd = std::find_if_not(samples.begin(), samples.end(),
                                    [](float sample) { return std::abs(sample) <= kLoudest; });
  if (odd != samples.end()) {
    return Refuse(name, fmt::format("sample {} is {}", odd - samples.begin(), *odd),
                  "numbers that sound");
  }
  if (form == AudioForm::kRaw) {
    return PreparedAudio{.items = {RawItem(samples)}, .notice = {}};
  }
  if (samples.size() > kWindow) {
    return PrepareLong(samples, rule, name);
  }
  return PreparedAudio{.items = {LogMelItem(samples)}, .notice = {}};
}

}  // namespace facet
