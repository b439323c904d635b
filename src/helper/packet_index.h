// SPDX-License-Identifier: Apache-2.0
// Which packets of a track are which frames, found without decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "helper/media_file.h"

namespace facet::helper {

class PacketIndex {
 public:
  /// Reads the track's packets to their end. Nothing: packets and frames do not correspond as far
  /// as one can see, or there are none or too many.
  static std::optional<PacketIndex> Read(MediaFile& file, const AVStream& stream);

  [[nodiscard]] int64_t n_frames() const { return static_cast<int64_t>(shown_.size()); }
  /// When a frame is shown, in the track's units. Frames are counted in that order.
  [[nodiscard]] int64_t TimeOf(int64_t frame) const;
  /// The packet from which on a frame can be decoded, if there is such a key frame at `next` or
  /// behind it. Packets are counted in the order of the file.
  [[nodiscard]] std::optional<size_t> KeyBefore(int64_t frame, size_t next) const;

 private:
  struct Packet {
    int64_t time = 0;
    bool is_key = false;
  };

  std::vector<Packet> packets_;
  std::vector<size_t> shown_;  // packets of frames that are shown, by time
};

}  // namespace facet::helper
