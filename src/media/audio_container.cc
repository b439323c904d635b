// SPDX-License-Identifier: Apache-2.0
#include "media/audio_container.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string_view>

#include "base/bytes.h"
#include "media/audio_mp3.h"
#include "media/media_helper.h"

namespace facet {
namespace {

constexpr std::string_view kReadKinds = "WAV, FLAC, OGG or MP3";

bool HasAt(std::string_view bytes, size_t at, std::string_view magic) {
  return at <= bytes.size() && bytes.substr(at, magic.size()) == magic;
}

uint8_t ByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

struct KnownKind {
  size_t at;
  std::string_view magic;
  std::string_view what;
};

constexpr auto kOtherKinds = std::to_array<KnownKind>({
    {4, "ftyphe", "a HEIC image"},
    {4, "ftypmif1", "a HEIF image"},
    {4, "ftypmsf1", "a HEIF image"},
    {4, "ftypavi", "an AVIF image"},
    {4, "ftyp", "an MP4 file (m4a, mp4, mov)"},
    {0, "\xFF\xF1", "an AAC file"},
    {0, "\xFF\xF9", "an AAC file"},
    {0, "\x1A\x45\xDF\xA3", "a Matroska or WebM file"},
    {8, "AVI ", "an AVI file"},
    {0, "RF64", "a WAV file of the kind RF64"},
    {0, "RIFX", "a WAV file of the kind RIFX"},
    {0, "FORM", "an AIFF file"},
    {0, "caff", "a CAF file"},
    {0, ".snd", "an AU file"},
    {0, "#!AMR", "an AMR file"},
    {0, "MThd", "a MIDI file"},
    {0, "\x89PNG", "a PNG image"},
    {0, "\xFF\xD8\xFF", "a JPEG image"},
    {0, "GIF8", "a GIF image"},
    {8, "WEBP", "a WebP image"},
    {0, "%PDF", "a PDF document"},
    {0, "<", "a text file"},
    {0, "{", "a text file"},
});

std::string NameOfOther(std::span<const std::byte> file) {
  const std::string_view bytes = AsText(file);
  for (const KnownKind& kind : kOtherKinds) {
    if (HasAt(bytes, kind.at, kind.magic)) {
      return fmt::format("{}{}", kind.what,
                         IsForHelper(file) ? ", which only facet-media reads" : "");
    }
  }
  std::string found = "no kind of sound that is known, first bytes";
  for (const char c : bytes.substr(0, 8)) {
    found += fmt::format(" {:02x}", static_cast<uint8_t>(c));
  }
  return found;
}

/// The codec of a WAV file, and the sizes of its samples.
struct WavCodec {
  uint16_t tag;
  std::array<uint16_t, 4> bits;
};

constexpr uint16_t kExtensible = 0xFFFE;
constexpr auto kWavCodecs = std::to_array<WavCodec>({
    {1, {8, 16, 24, 32}},  // whole numbers
    {3, {32, 64}},         // floats
    {6, {8}},              // A-law
    {7, {8}},              // mu-law
});

/// The bytes of a frame, from the body of the chunk "fmt ".
Result<uint32_t> CheckWavFormat(std::span<const std::byte> body, const std::string& name) {
  const std::string where = name + ": format";
  ByteCursor cursor(body, where);
  FACET_ASSIGN(auto tag, cursor.Read<uint16_t>("codec"));
  FACET_ASSIGN(const auto n_channels, cursor.Read<uint16_t>("channels"));
  FACET_ASSIGN(const auto rate, cursor.Read<uint32_t>("rate"));
  FACET_ASSIGN([[maybe_unused]] const auto n_per_second, cursor.Read<uint32_t>("bytes per second"));
  FACET_ASSIGN(const auto align, cursor.Read<uint16_t>("bytes per frame"));
  FACET_ASSIGN(const auto bits, cursor.Read<uint16_t>("bits per sample"));
  if (tag == kExtensible) {
    FACET_ASSIGN([[maybe_unused]] const auto extension, cursor.Take(8, "extension"));
    FACET_ASSIGN(tag, cursor.Read<uint16_t>("codec"));
  }
  FACET_RETURN_IF_ERROR(CheckSoundShape(n_channels, rate, name));
  const auto codec = std::find_if(kWavCodecs.begin(), kWavCodecs.end(),
                                  [tag](const WavCodec& known) { return known.tag == tag; });
  if (codec == kWavCodecs.end()) {
    return Refuse(where, fmt::format("codec 0x{:04x}", tag), "whole numbers, floats or G.711");
  }
  if (bits == 0 || std::count(codec->bits.begin(), codec->bits.end(), bits) == 0) {
    return Refuse(where, fmt::format("{} bits per sample of codec {}", bits, tag),
                  "8, 16, 24 or 32, floats of 32 or 64");
  }
  if (align != n_channels * bits / 8) {
    return Refuse(
        where, fmt::format("{} bytes per frame", align),
        fmt::format("{} for {} channels of {} bits", n_channels * bits / 8, n_channels, bits));
  }
  return uint32_t{align};
}

/// Where the check sum of an OGG page stands in it.
constexpr size_t kOggSum = 22;

/// Of a whole page, whose own check sum counts as zero: CRC-32 by 0x04C11DB7, not reflected.
uint32_t OggSumOf(std::string_view page) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table;
    for (uint32_t byte = 0; byte < table.size(); ++byte) {
      uint32_t sum = byte << 24;
      for (int bit = 0; bit < 8; ++bit) {
        sum = (sum << 1) ^ ((sum >> 31) != 0 ? 0x04C11DB7U : 0U);
      }
      table[byte] = sum;
    }
    return table;
  }();
  uint32_t sum = 0;
  for (size_t at = 0; at < page.size(); ++at) {
    const bool is_sum = at >= kOggSum && at < kOggSum + sizeof(uint32_t);
    const uint8_t byte = is_sum ? uint8_t{0} : ByteAt(page, at);
    sum = sum << 8 ^ kTable[sum >> 24 ^ byte];
  }
  return sum;
}

void AppendChunk(std::string& out, std::string_view id, std::string_view body) {
  out += id;
  Append(out, static_cast<uint32_t>(body.size()));
  out += body;
  out.append(body.size() % 2, '\0');
}

/// The bodies of the two chunks as a file.
std::string WavOf(std::string_view format, std::string_view data) {
  constexpr size_t kHeaders = 12 + 2 * 8;
  const size_t n_bytes =
      kHeaders + format.size() + format.size() % 2 + data.size() + data.size() % 2;
  std::string out;
  out.reserve(n_bytes);
  out += "RIFF";
  Append(out, static_cast<uint32_t>(n_bytes - 8));
  out += "WAVE";
  AppendChunk(out, "fmt ", format);
  AppendChunk(out, "data", data);
  return out;
}

}  // namespace

size_t Id3Size(std::string_view bytes) {
  constexpr size_t kHeader = 10;
  size_t end = 0;
  while (HasAt(bytes, end, "ID3") && bytes.size() - end >= kHeader) {
    size_t size = 0;
    for (size_t at = end + 6; at < end + kHeader; ++at) {
      size = size << 7 | (ByteAt(bytes, at) & 0x7F);
    }
    end = std::min(bytes.find_first_not_of('\0', end + kHeader + size), bytes.size());
  }
  return end;
}

Result<AudioStart> FindAudio(std::span<const std::byte> file, const std::string& name) {
  const std::string_view bytes = AsText(file);
  if (bytes.empty()) {
    return Refuse(name, "an empty file", std::string(kReadKinds));
  }
  const size_t offset = Id3Size(bytes);
  const std::string_view sound = bytes.substr(offset);
  if (HasAt(bytes, 0, "RIFF") && HasAt(bytes, 8, "WAVE")) {
    return AudioStart{.kind = AudioKind::kWav};
  }
  if (HasAt(bytes, 0, "OggS")) {
    return AudioStart{.kind = AudioKind::kOgg};
  }
  if (HasAt(sound, 0, "fLaC")) {
    return AudioStart{.kind = AudioKind::kFlac, .offset = offset};
  }
  if (IsMp3Frame(sound)) {
    return AudioStart{.kind = AudioKind::kMp3, .offset = offset};
  }
  if (offset > 0 && sound.empty()) {
    return Refuse(name, "an ID3 tag without sound", std::string(kReadKinds));
  }
  return Refuse(name, NameOfOther(file.subspan(offset)), std::string(kReadKinds));
}

Status CheckSoundShape(int64_t n_channels, int64_t rate, const std::string& name) {
  constexpr int kMostChannels = 64;
  constexpr int kLowestRate = 1000;
  constexpr int kHighestRate = 768000;
  if (n_channels < 1 || n_channels > kMostChannels) {
    return Refuse(name, fmt::format("{} channels", n_channels),
                  fmt::format("1 to {}", kMostChannels));
  }
  if (rate < kLowestRate || rate > kHighestRate) {
    return Refuse(name, fmt::format("a rate of {} Hz", rate),
                  fmt::format("{} to {}", kLowestRate, kHighestRate));
  }
  return {};
}

Result<std::string> PlainWav(std::span<const std::byte> file, const std::string& name) {
  constexpr uint32_t kUnknownSize = 0x7FFF0000;
  ByteCursor cursor(file, name);
  FACET_ASSIGN([[maybe_unused]] const auto head, cursor.Take(12, "RIFF header"));
  std::string_view format;
  uint32_t frame_bytes = 1;
  while (cursor.remaining() > 0) {
    const size_t position = cursor.position();
    FACET_ASSIGN(const auto id, cursor.Take(4, "name of a chunk"));
    FACET_ASSIGN(auto size, cursor.Read<uint32_t>("size of a chunk"));
    const bool is_data = AsText(id) == "data";
    const bool is_unknown = is_data && size >= kUnknownSize;
    if (is_unknown) {
      size = static_cast<uint32_t>(std::min<size_t>(cursor.remaining(), kUnknownSize));
    }
    if (size > cursor.remaining()) {
      return Refuse(name,
                    fmt::format("a chunk of {} bytes at byte {}, of which {} are there", size,
                                position, cursor.remaining()),
                    "a file that is not cut");
    }
    FACET_ASSIGN(const auto body, cursor.Take(size, "chunk"));
    if (is_data && format.empty()) {
      return Refuse(name, "data before their format", "chunk \"fmt \" first");
    }
    if (is_data && size == 0) {
      return Refuse(name, "no samples", "sound");
    }
    if (is_data && !is_unknown && size % frame_bytes != 0) {
      return Refuse(name, fmt::format("{} bytes of samples", size),
                    fmt::format("frames of {} bytes", frame_bytes));
    }
    if (is_data) {
      return WavOf(format, AsText(body));
    }
    if (AsText(id) == "fmt ") {
      FACET_ASSIGN(frame_bytes, CheckWavFormat(body, name));
      format = AsText(body);
    }
    // Chunks of an odd size are followed by one byte.
    if (size % 2 == 1 && cursor.remaining() > 0) {
      FACET_ASSIGN([[maybe_unused]] const auto pad, cursor.Take(1, "byte behind a chunk"));
    }
  }
  return Refuse(name, "no chunk \"data\"", "samples");
}

Status CheckOgg(std::span<const std::byte> file, const std::string& name) {
  constexpr size_t kHeader = 27;
  constexpr uint8_t kFirst = 2;
  constexpr uint8_t kLast = 4;
  const std::string_view bytes = AsText(file);
  uint8_t flags = 0;
  size_t at = 0;
  while (HasAt(bytes, at, "OggS")) {
    const size_t n_segments = at + kHeader <= bytes.size() ? ByteAt(bytes, at + kHeader - 1) : 0;
    const std::string_view segments =
        bytes.substr(std::min(at + kHeader, bytes.size()), n_segments);
    const size_t n_body =
        std::accumulate(segments.begin(), segments.end(), size_t{0},
                        [](size_t sum, char size) { return sum + static_cast<uint8_t>(size); });
    const size_t body = at + kHeader + n_segments;
    if (body + n_body > bytes.size()) {
      return Refuse(name, fmt::format("an OGG page at byte {} that does not end", at),
                    "a file that is not cut");
    }
    const std::string_view page = bytes.substr(at, body + n_body - at);
    uint32_t sum = 0;
    std::memcpy(&sum, page.data() + kOggSum, sizeof(sum));
    if (sum != OggSumOf(page)) {
      return Refuse(name, fmt::format("a damaged OGG page at byte {}", at),
                    fmt::format("check sum {:08x}", sum));
    }
    flags = ByteAt(page, 5);
    if (at == 0 && !HasAt(bytes, body, "\x01vorbis") && !HasAt(bytes, body, "OpusHead")) {
      return Refuse(name, "an OGG file of another codec", "Vorbis or Opus");
    }
    if (at > 0 && (flags & kFirst) != 0) {
      return Refuse(name, fmt::format("a second stream at byte {} of an OGG file", at), "one");
    }
    at = body + n_body;
  }
  if ((flags & kLast) == 0) {
    return Refuse(name, fmt::format("an OGG file that breaks off at byte {}", at),
                  "a page marked as the last");
  }
  return {};
}

}  // namespace facet
