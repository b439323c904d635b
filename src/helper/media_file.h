// SPDX-License-Identifier: Apache-2.0
// One file in memory, opened by libavformat as the one kind of container that it is said to be, and
// the decoder of one of its tracks. Nothing else is tried or opened: no other format, no playlist,
// no file that the file names, no codec off a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "media/helper_protocol.h"

struct AVCodecContext;
struct AVFormatContext;
struct AVFrame;
struct AVIOContext;
struct AVPacket;
struct AVStream;

namespace facet::helper {

struct FreeLibav {
  void operator()(AVCodecContext* context) const;
  void operator()(AVFormatContext* context) const;
  void operator()(AVFrame* frame) const;
  void operator()(AVIOContext* context) const;
  void operator()(AVPacket* packet) const;
};
using FramePtr = std::unique_ptr<AVFrame, FreeLibav>;
using PacketPtr = std::unique_ptr<AVPacket, FreeLibav>;

/// Reads the packets of one track. It stays where it is: libavformat knows its address.
class MediaFile {
 public:
  /// The bytes have to outlive it.
  static Result<std::unique_ptr<MediaFile>> Open(std::span<const std::byte> bytes,
                                                 Container container);
  MediaFile(const MediaFile&) = delete;
  MediaFile& operator=(const MediaFile&) = delete;

  /// The track that a player would choose, or null. A cover picture is no video.
  [[nodiscard]] const AVStream* BestVideo() const;
  [[nodiscard]] const AVStream* BestSound() const;

  /// From now on only packets of this track are read.
  void Select(const AVStream& stream);
  /// The next packet of that track, valid until the next call; null at the end and where no more
  /// can be found (CheckWhole).
  const AVPacket* ReadPacket();
  /// Refuses, after the last packet, a file that ended where more was to come: what was read of it
  /// is not all that it holds.
  [[nodiscard]] Status CheckWhole() const;

 private:
  explicit MediaFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  static int ReadBytes(void* file, uint8_t* out, int n_wanted);
  static int64_t Seek(void* file, int64_t offset, int whence);

  std::span<const std::byte> bytes_;
  int64_t position_ = 0;
  std::unique_ptr<AVIOContext, FreeLibav> io_;
  std::unique_ptr<AVFormatContext, FreeLibav> format_;  // uses io_
  PacketPtr packet_;
  int selected_ = -1;
  bool is_cut_ = false;
};

/// Damaged packets give no frame and are no error.
class Decoder {
 public:
  /// The stream has to outlive it. `max_pixels` of a frame.
  static Result<Decoder> Open(const AVStream& stream, int64_t max_pixels);

  /// The next packet, null for the end. All frames have to be received before the next is sent.
  void Send(const AVPacket* packet);
  /// The next frame in the order of showing, valid until the next call; null: none before the next
  /// packet.
  const AVFrame* Receive();
  /// Forgets all packets; the next one has to be one that depends on no other.
  void Flush();

 private:
  Decoder() = default;

  std::unique_ptr<AVCodecContext, FreeLibav> context_;
  FramePtr frame_;
};

}  // namespace facet::helper
