// SPDX-License-Identifier: Apache-2.0
#include "helper/packet_index.h"

#include <algorithm>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

namespace facet::helper {
namespace {

/// VP8 has packets without a picture, GIF has pictures that need all before them, interlaced video
/// may have two packets for a frame.
bool HasFrameForPacket(const AVCodecParameters& parameters) {
  switch (parameters.codec_id) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1:
      return parameters.field_order == AV_FIELD_UNKNOWN ||
             parameters.field_order == AV_FIELD_PROGRESSIVE;
    default:
      return false;
  }
}

}  // namespace

std::optional<PacketIndex> PacketIndex::Read(MediaFile& file, const AVStream& stream) {
  if (!HasFrameForPacket(*stream.codecpar)) {
    return std::nullopt;
  }
  PacketIndex index;
  while (const AVPacket* packet = file.ReadPacket()) {
    if (packet->pts == AV_NOPTS_VALUE ||
        index.packets_.size() >= static_cast<size_t>(kMostFramesInFile)) {
      return std::nullopt;
    }
    if ((packet->flags & AV_PKT_FLAG_DISCARD) == 0) {
      index.shown_.push_back(index.packets_.size());
    }
    index.packets_.push_back(
        {.time = packet->pts, .is_key = (packet->flags & AV_PKT_FLAG_KEY) != 0});
  }
  const auto time_of = [&](size_t packet) { return index.packets_[packet].time; };
  std::sort(index.shown_.begin(), index.shown_.end(),
            [&](size_t a, size_t b) { return time_of(a) < time_of(b); });
  const auto twice =
      std::adjacent_find(index.shown_.begin(), index.shown_.end(),
                         [&](size_t a, size_t b) { return time_of(a) == time_of(b); });
  if (index.shown_.empty() || twice != index.shown_.end()) {
    return std::nullopt;
  }
  return index;
}

int64_t PacketIndex::TimeOf(int64_t frame) const {
  return packets_[shown_[static_cast<size_t>(frame)]].time;
}

std::optional<size_t> PacketIndex::KeyBefore(int64_t frame, size_t next) const {
  const size_t own = shown_[static_cast<size_t>(frame)];
  // A key frame that is shown later does not help: frames between may need what is before it.
  for (size_t packet = own + 1; packet > next; --packet) {
    const Packet& candidate = packets_[packet - 1];
    if (candidate.is_key && candidate.time <= packets_[own].time) {
      return packet - 1;
    }
  }
  return std::nullopt;
}

}  // namespace facet::helper
