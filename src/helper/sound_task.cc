// SPDX-License-Identifier: Apache-2.0
#include "helper/sound_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "helper/answer.h"
#include "helper/media_file.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/samplefmt.h>
}

namespace facet::helper {
namespace {

constexpr float kLoudest = 1e10F;  // as in files that need no helper (media/audio.cc)

float Unit(uint8_t sample) { return (static_cast<float>(sample) - 128) / 128; }
float Unit(int16_t sample) { return static_cast<float>(sample) / 32768; }
float Unit(int32_t sample) { return static_cast<float>(sample) / 2147483648.0F; }
float Unit(float sample) { return sample; }
float Unit(double sample) { return static_cast<float>(sample); }

template <typename T>
void AppendMeanOf(const AVFrame& frame, bool is_planar, std::vector<float>& out) {
  const int n_channels = frame.ch_layout.nb_channels;
  for (int i = 0; i < frame.nb_samples; ++i) {
    float sum = 0;
    for (int channel = 0; channel < n_channels; ++channel) {
      const uint8_t* plane = frame.extended_data[is_planar ? channel : 0];
      sum += Unit(reinterpret_cast<const T*>(plane)[is_planar ? i : i * n_channels + channel]);
    }
    out.push_back(sum / static_cast<float>(n_channels));
  }
}

/// Says the rate before the first samples, and holds back what is not yet worth a message.
class SampleAnswer {
 public:
  explicit SampleAnswer(const HelperJob& job) : job_(job) {}

  Status Add(const AVFrame& frame) {
    if (rate_ == 0) {
      rate_ = frame.sample_rate;
      Answer(SoundMessage(rate_));
    }
    if (frame.sample_rate != rate_) {
      return Refuse("", "sound that changes its sampling rate", "one rate");
    }
    n_samples_ += frame.nb_samples;
    if (static_cast<double>(n_samples_) > std::floor(job_.max_seconds * rate_)) {
      return Refuse("", fmt::format("more than {} s of sound", job_.max_seconds), "a shorter clip");
    }
    const auto n_before = static_cast<std::ptrdiff_t>(waiting_.size());
    FACET_RETURN_IF_ERROR(AppendMean(frame, waiting_));
    if (!std::all_of(waiting_.begin() + n_before, waiting_.end(),
                     [](float x) { return std::fabs(x) <= kLoudest; })) {
      return Refuse("", "samples that are no numbers or beyond all loudness", "sound");
    }
    if (waiting_.size() >= kMostChunkSamples) {
      Send();
    }
    return {};
  }

  Status Finish() {
    if (rate_ == 0) {
      return Refuse("", "no sound that can be decoded", "sound");
    }
    Send();
    return {};
  }

 private:
  void Send() {
    std::span<const float> rest = waiting_;
    while (!rest.empty()) {
      const auto part = rest.first(std::min<size_t>(rest.size(), kMostChunkSamples));
      Answer(SamplesMessage(part));
      rest = rest.subspan(part.size());
    }
    waiting_.clear();
  }

  const HelperJob& job_;
  int rate_ = 0;
  int64_t n_samples_ = 0;
  std::vector<float> waiting_;
};

}  // namespace

Status AppendMean(const AVFrame& frame, std::vector<float>& out) {
  const auto format = static_cast<AVSampleFormat>(frame.format);
  const bool is_planar = av_sample_fmt_is_planar(format) != 0;
  if (frame.ch_layout.nb_channels < 1) {
    return Refuse("", "sound without channels", "1 or more");
  }
  switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8:
      AppendMeanOf<uint8_t>(frame, is_planar, out);
      return {};
    case AV_SAMPLE_FMT_S16:
      AppendMeanOf<int16_t>(frame, is_planar, out);
      return {};
    case AV_SAMPLE_FMT_S32:
      AppendMeanOf<int32_t>(frame, is_planar, out);
      return {};
    case AV_SAMPLE_FMT_FLT:
      AppendMeanOf<float>(frame, is_planar, out);
      return {};
    case AV_SAMPLE_FMT_DBL:
      AppendMeanOf<double>(frame, is_planar, out);
      return {};
    default:
      return Refuse("", "samples of an unknown form", "8 to 32 bits, or floating point");
  }
}

Status AnswerSound(std::span<const std::byte> bytes, const HelperJob& job) {
  FACET_ASSIGN(const auto file, MediaFile::Open(bytes, job.container));
  const AVStream* stream = file->BestSound();
  if (stream == nullptr) {
    return Refuse("", "no track of sound", "sound");
  }
  FACET_ASSIGN(Decoder decoder, Decoder::Open(*stream, job.max_pixels));
  file->Select(*stream);
  SampleAnswer answer(job);
  const AVPacket* packet = nullptr;
  do {
    packet = file->ReadPacket();
    decoder.Send(packet);
    while (const AVFrame* frame = decoder.Receive()) {
      FACET_RETURN_IF_ERROR(answer.Add(*frame));
    }
  } while (packet != nullptr);
  FACET_RETURN_IF_ERROR(file->CheckWhole());
  return answer.Finish();
}

}  // namespace facet::helper
