// SPDX-License-Identifier: Apache-2.0
#include "helper/video_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "helper/answer.h"
#include "helper/media_file.h"
#include "helper/packet_index.h"
#include "helper/rgb_converter.h"
#include "media/video.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/rational.h>
}

namespace facet::helper {
namespace {

constexpr double kUnknownRate = 24;
constexpr double kMostRate = 1000;

/// One pass over the video track.
struct Track {
  std::unique_ptr<MediaFile> file;
  const AVStream* stream;
  Decoder decoder;
};

/// What the file says, after what it is allowed to say.
struct VideoFacts {
  VideoHead head;  ///< n_total is not yet known
  Orientation orientation;
  double seconds_per_unit = 0;
};

Error TooManyBytes(const HelperJob& job) {
  return Refuse("", fmt::format("frames of more than {} bytes", job.max_bytes),
                "fewer frames, or smaller ones");
}

Result<Track> OpenTrack(std::span<const std::byte> bytes, const HelperJob& job) {
  FACET_ASSIGN(auto file, MediaFile::Open(bytes, job.container));
  const AVStream* stream = file->BestVideo();
  if (stream == nullptr) {
    return Refuse("", file->BestSound() == nullptr ? "no track of pictures" : "sound only",
                  "a video");
  }
  const int64_t width = stream->codecpar->width;
  const int64_t height = stream->codecpar->height;
  if (width * height > job.max_pixels) {
    return Refuse("", fmt::format("frames of {} x {} pixels", width, height),
                  fmt::format("at most {} pixels", job.max_pixels));
  }
  FACET_ASSIGN(Decoder decoder, Decoder::Open(*stream, job.max_pixels));
  file->Select(*stream);
  return Track{.file = std::move(file), .stream = stream, .decoder = std::move(decoder)};
}

VideoFacts FactsOf(const Track& track) {
  VideoFacts facts;
  facts.head.rate = kUnknownRate;
  for (const AVRational rate : {track.stream->avg_frame_rate, track.stream->r_frame_rate}) {
    if (rate.num > 0 && rate.den > 0 && av_q2d(rate) <= kMostRate) {
      facts.head.rate = av_q2d(rate);
      break;
    }
  }
  facts.head.has_sound = track.file->BestSound() != nullptr;
  facts.orientation = OrientationOf(*track.stream);
  facts.seconds_per_unit = av_q2d(track.stream->time_base);
  return facts;
}

/// Says the head and then one frame after the other.
class FrameAnswer {
 public:
  FrameAnswer(const VideoFacts& facts, const HelperJob& job)
      : job_(job), converter_(facts.orientation), n_bytes_left_(job.max_bytes) {
    Answer(VideoMessage(facts.head));
  }

  Status Add(const AVFrame& frame, int64_t index, double seconds) {
    FACET_ASSIGN(const Image image, converter_.Convert(frame));
    n_bytes_left_ -= static_cast<int64_t>(image.rgb.size());
    if (n_bytes_left_ < 0) {
      return TooManyBytes(job_);
    }
    Answer(FrameMessage({.index = index,
                         .seconds = std::max(0.0, seconds),
                         .width = image.width,
                         .height = image.height}));
    Answer(std::as_bytes(std::span(image.rgb)));
    return {};
  }

 private:
  const HelperJob& job_;
  RgbConverter converter_;
  int64_t n_bytes_left_;
};

double SecondsBetween(int64_t begin, int64_t end, const VideoFacts& facts) {
  return (static_cast<double>(end) - static_cast<double>(begin)) * facts.seconds_per_unit;
}

/// Decodes the wanted frames, and of the others only what these depend on.
class IndexedReader {
 public:
  IndexedReader(Track& track, const PacketIndex& index) : track_(track), index_(index) {}

  /// Frames are asked for in ascending order. Null: the decoder did not give it.
  FramePtr Take(int64_t frame) {
    if (const auto key = index_.KeyBefore(frame, next_)) {
      SkipTo(*key);
    }
    const int64_t time = index_.TimeOf(frame);
    while (true) {
      while (const AVFrame* decoded = track_.decoder.Receive()) {
        if (decoded->pts >= time) {
          return FramePtr(decoded->pts == time ? av_frame_clone(decoded) : nullptr);
        }
      }
      if (is_drained_) {
        return nullptr;
      }
      const AVPacket* packet = track_.file->ReadPacket();
      track_.decoder.Send(packet);
      is_drained_ = packet == nullptr;
      ++next_;
    }
  }

 private:
  void SkipTo(size_t packet) {
    if (packet == next_) {
      return;  // nothing is left out
    }
    for (; next_ < packet && track_.file->ReadPacket() != nullptr; ++next_) {
    }
    track_.decoder.Flush();
  }

  Track& track_;
  const PacketIndex& index_;
  size_t next_ = 0;  // packet that will be read next
  bool is_drained_ = false;
};

/// All frames for `choice`, or nothing where the index is not true to them.
Result<std::optional<std::vector<FramePtr>>> TakeIndexed(std::span<const std::byte> bytes,
                                                         const HelperJob& job,
                                                         const PacketIndex& index,
                                                         const std::vector<int64_t>& wanted) {
  FACET_ASSIGN(Track track, OpenTrack(bytes, job));
  IndexedReader reader(track, index);
  std::vector<FramePtr> frames;
  frames.reserve(wanted.size());
  int64_t n_bytes_left = job.max_bytes;
  for (const int64_t frame : wanted) {
    frames.push_back(reader.Take(frame));
    if (frames.back() == nullptr) {
      return std::optional<std::vector<FramePtr>>();
    }
    n_bytes_left -= int64_t{3} * frames.back()->width * frames.back()->height;
    if (n_bytes_left < 0) {
      return TooManyBytes(job);
    }
  }
  return std::optional(std::move(frames));
}

/// Nothing: the packets do not tell, and nothing has been answered.
Result<bool> AnswerIndexed(std::span<const std::byte> bytes, const HelperJob& job) {
  FACET_ASSIGN(Track track, OpenTrack(bytes, job));
  VideoFacts facts = FactsOf(track);
  const auto index = PacketIndex::Read(*track.file, *track.stream);
  FACET_RETURN_IF_ERROR(track.file->CheckWhole());
  if (!index) {
    return false;
  }
  facts.head.n_total = index->n_frames();
  const auto wanted = ChooseFrames(facts.head.n_total, facts.head.rate, job.frames);
  FACET_ASSIGN(const auto frames, TakeIndexed(bytes, job, *index, wanted));
  if (!frames) {
    return false;
  }
  FrameAnswer answer(facts, job);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double seconds = SecondsBetween(index->TimeOf(0), index->TimeOf(wanted[i]), facts);
    FACET_RETURN_IF_ERROR(answer.Add(*(*frames)[i], wanted[i], seconds));
  }
  return true;
}

/// Decodes all of the track and hands each frame on, in the order of showing, until `take` fails.
template <typename Take>
Status DecodeAll(Track& track, const Take& take) {
  const AVPacket* packet = nullptr;
  do {
    packet = track.file->ReadPacket();
    track.decoder.Send(packet);
    while (const AVFrame* frame = track.decoder.Receive()) {
      FACET_RETURN_IF_ERROR(take(*frame));
    }
  } while (packet != nullptr);
  return track.file->CheckWhole();
}

Result<int64_t> CountFrames(Track& track) {
  int64_t n_frames = 0;
  FACET_RETURN_IF_ERROR(DecodeAll(track, [&](const AVFrame&) -> Status {
    if (++n_frames > kMostFramesInFile) {
      return Refuse("", fmt::format("more than {} frames", kMostFramesInFile), "a shorter video");
    }
    return {};
  }));
  if (n_frames == 0) {
    return Refuse("", "no picture that can be decoded", "a video");
  }
  return n_frames;
}

Status AnswerByCounting(std::span<const std::byte> bytes, const HelperJob& job) {
  FACET_ASSIGN(Track track, OpenTrack(bytes, job));
  VideoFacts facts = FactsOf(track);
  FACET_ASSIGN(facts.head.n_total, CountFrames(track));
  const auto wanted = ChooseFrames(facts.head.n_total, facts.head.rate, job.frames);
  FACET_ASSIGN(track, OpenTrack(bytes, job));
  FrameAnswer answer(facts, job);
  int64_t index = 0;
  int64_t first_time = AV_NOPTS_VALUE;
  size_t n_taken = 0;
  return DecodeAll(track, [&](const AVFrame& frame) -> Status {
    const int64_t time = frame.best_effort_timestamp;
    if (index == 0) {
      first_time = time;
    }
    if (n_taken < wanted.size() && index == wanted[n_taken]) {
      const bool has_time = time != AV_NOPTS_VALUE && first_time != AV_NOPTS_VALUE;
      const double seconds = has_time ? SecondsBetween(first_time, time, facts)
                                      : static_cast<double>(index) / facts.head.rate;
      FACET_RETURN_IF_ERROR(answer.Add(frame, index, seconds));
      ++n_taken;
    }
    ++index;
    return {};
  });
}

}  // namespace

Status AnswerVideo(std::span<const std::byte> file, const HelperJob& job) {
  FACET_ASSIGN(const bool is_answered, AnswerIndexed(file, job));
  return is_answered ? Status() : AnswerByCounting(file, job);
}

}  // namespace facet::helper
