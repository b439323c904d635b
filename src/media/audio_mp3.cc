// SPDX-License-Identifier: Apache-2.0
#include "media/audio_mp3.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "media/audio_container.h"

namespace facet {
namespace {

constexpr size_t kHeader = 4;

/// The first four bytes of a frame.
struct FrameHeader {
  uint8_t version = 0;  ///< 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
  int rate = 0;         ///< Hz
  int kbits = 0;        ///< per second
  bool is_mono = false;
  bool is_padded = false;

  [[nodiscard]] bool is_first_version() const { return version == 3; }
  [[nodiscard]] size_t n_bytes() const {
    const int n_sound = (is_first_version() ? 144000 : 72000) * kbits / rate;
    return static_cast<size_t>(n_sound) + (is_padded ? 1 : 0);
  }
  /// Where the data of an encoder's tag begin: behind the side information.
  [[nodiscard]] size_t tag_offset() const {
    const size_t n_side = is_first_version() ? (is_mono ? 17 : 32) : (is_mono ? 9 : 17);
    return kHeader + n_side;
  }
  /// Whether a stream may go on with that frame.
  [[nodiscard]] bool Continues(const FrameHeader& first) const {
    return version == first.version && rate == first.rate && is_mono == first.is_mono;
  }
};

/// None for other layers, reserved values and streams of a free bit rate.
std::optional<FrameHeader> ReadHeader(std::string_view bytes) {
  constexpr std::array<int, 15> kKbits1 = {0,   32,  40,  48,  56,  64,  80, 96,
                                           112, 128, 160, 192, 224, 256, 320};
  constexpr std::array<int, 15> kKbits2 = {0,  8,  16, 24,  32,  40,  48, 56,
                                           64, 80, 96, 112, 128, 144, 160};
  constexpr std::array<int, 3> kRates = {44100, 48000, 32000};
  if (bytes.size() < kHeader) {
    return std::nullopt;
  }
  const auto byte = [bytes](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  const auto version = static_cast<uint8_t>(byte(1) >> 3 & 3);
  const size_t rate = byte(2) >> 2 & 3;
  const size_t kbits = byte(2) >> 4;
  const bool is_layer_3 = (byte(1) >> 1 & 3) == 1;
  if (byte(0) != 0xFF || (byte(1) & 0xE0) != 0xE0 || !is_layer_3 || version == 1 || rate == 3 ||
      kbits == 0 || kbits == 15) {
    return std::nullopt;
  }
  const int divisor = version == 3 ? 1 : version == 2 ? 2 : 4;
  return FrameHeader{.version = version,
                     .rate = kRates[rate] / divisor,
                     .kbits = (version == 3 ? kKbits1 : kKbits2)[kbits],
                     .is_mono = byte(3) >> 6 == 3,
                     .is_padded = (byte(2) & 2) != 0};
}

std::optional<uint32_t> BigEndianAt(std::string_view bytes, size_t at) {
  if (at + 4 > bytes.size()) {
    return std::nullopt;
  }
  uint32_t value = 0;
  for (const char c : bytes.substr(at, 4)) {
    value = value << 8 | static_cast<uint8_t>(c);
  }
  return value;
}

/// What an encoder left in the first frame instead of sound.
struct Tag {
  bool is_there = false;
  std::optional<uint32_t> n_frames = {};  ///< besides this one
};

/// `frame`: the first one, as a whole.
Tag ReadTag(std::string_view frame, const FrameHeader& header) {
  constexpr size_t kFraunhoferOffset = kHeader + 32;
  const std::string_view name = frame.substr(std::min(header.tag_offset(), frame.size()), 4);
  if (name == "Xing" || name == "Info") {
    const auto fields = BigEndianAt(frame, header.tag_offset() + 4);
    const bool has_count = fields.has_value() && (*fields & 1) != 0;
    return {.is_there = true,
            .n_frames = has_count ? BigEndianAt(frame, header.tag_offset() + 8) : std::nullopt};
  }
  if (frame.substr(std::min(kFraunhoferOffset, frame.size()), 4) == "VBRI") {
    return {.is_there = true, .n_frames = BigEndianAt(frame, kFraunhoferOffset + 14)};
  }
  return {};
}

/// A frame of silence like the one given, with the tag that tells the number of those behind it.
std::string MakeTagFrame(std::string_view like, uint32_t n_frames) {
  std::string frame(like.substr(0, kHeader));
  frame[1] = static_cast<char>(static_cast<uint8_t>(frame[1]) | 1);  // no check sum
  // 64 or 112 kbit/s: room for the tag at any rate; not padded.
  frame[2] = static_cast<char>((static_cast<uint8_t>(frame[2]) & 0x0D) | 0x80);
  const FrameHeader header = *ReadHeader(frame);
  frame.resize(header.tag_offset());
  frame += "Xing";
  for (const uint32_t value : {uint32_t{1}, n_frames}) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      frame += static_cast<char>(value >> shift & 0xFF);
    }
  }
  frame.resize(header.n_bytes());
  return frame;
}

/// Bytes of the tag that `bytes` begin with, as it says itself; 0: none, or not all of it.
size_t TagSize(std::string_view bytes) {
  constexpr size_t kId3v1 = 128;
  constexpr size_t kApeHeader = 32;
  constexpr size_t kApeSizeAt = 12;
  constexpr std::string_view kLyricsEnd = "LYRICS200";
  size_t size = 0;
  if (bytes.starts_with("TAG")) {
    size = kId3v1;
  } else if (bytes.starts_with("ID3")) {
    size = Id3Size(bytes);
  } else if (bytes.starts_with("APETAGEX") && bytes.size() >= kApeHeader) {
    uint32_t rest = 0;
    std::memcpy(&rest, bytes.data() + kApeSizeAt, sizeof rest);
    size = kApeHeader + rest;
  } else if (bytes.starts_with("LYRICSBEGIN")) {
    const size_t end = bytes.find(kLyricsEnd);
    size = end == std::string_view::npos ? 0 : end + kLyricsEnd.size();
  }
  return size <= bytes.size() ? size : 0;
}

/// Whether what follows the frames is what players and taggers leave there, and nothing else.
bool IsTail(std::string_view bytes) {
  for (size_t size = TagSize(bytes); size > 0; size = TagSize(bytes)) {
    bytes.remove_prefix(size);
  }
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

struct Frames {
  size_t n_bytes = 0;
  uint32_t n = 0;
};

/// The frames that follow each other like the first, whose header is given.
Result<Frames> WalkFrames(std::string_view bytes, const FrameHeader& first,
                          const std::string& name) {
  Frames frames;
  for (;;) {
    const auto header = ReadHeader(bytes.substr(frames.n_bytes));
    if (!header.has_value() || !header->Continues(first)) {
      break;
    }
    if (header->n_bytes() > bytes.size() - frames.n_bytes) {
      return Refuse(name,
                    fmt::format("an MP3 frame of {} bytes at byte {}, of which {} are there",
                                header->n_bytes(), frames.n_bytes, bytes.size() - frames.n_bytes),
                    "a file that is not cut");
    }
    frames.n_bytes += header->n_bytes();
    ++frames.n;
  }
  if (!IsTail(bytes.substr(frames.n_bytes))) {
    return Refuse(name, fmt::format("bytes that are no sound at byte {}", frames.n_bytes),
                  "MP3 frames of one kind up to the end");
  }
  return frames;
}

}  // namespace

bool IsMp3Frame(std::string_view bytes) { return ReadHeader(bytes).has_value(); }

Result<std::string> CountedMp3(std::span<const std::byte> file, const std::string& name) {
  const std::string_view bytes = AsText(file);
  const auto first = ReadHeader(bytes);
  if (!first.has_value()) {
    return Refuse(name, "no MP3 frame", "one at the beginning");
  }
  FACET_ASSIGN(const Frames frames, WalkFrames(bytes, *first, name));
  std::string_view sound = bytes.substr(0, frames.n_bytes);
  const Tag tag = ReadTag(sound.substr(0, first->n_bytes()), *first);
  const uint32_t n_sounding = frames.n - (tag.is_there ? 1 : 0);
  if (!tag.n_frames.has_value()) {
    if (tag.is_there) {
      sound.remove_prefix(first->n_bytes());
    }
    return MakeTagFrame(bytes, n_sounding).append(sound);
  }
  // Some encoders count the frame with the tag.
  if (*tag.n_frames != n_sounding && *tag.n_frames != frames.n) {
    return Refuse(name, fmt::format("{} MP3 frames", n_sounding),
                  fmt::format("{}, as its header says", *tag.n_frames));
  }
  return std::string(sound);
}

}  // namespace facet
