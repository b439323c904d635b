// SPDX-License-Identifier: Apache-2.0
#include "media/audio_container.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "media/audio_testing.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::Chunk;
using testing::Riff;
using testing::WavFormat;
using testing::WavShape;

std::string MessageOf(const Status& status) {
  return status.ok() ? "no error" : status.error().Message();
}

std::string KindError(std::string_view file) {
  const auto start = FindAudio(AsBytes(file), "clip");
  return start.ok() ? "no error" : start.error().Message();
}

std::string WavError(const std::string& file) {
  const auto wav = PlainWav(AsBytes(file), "clip");
  return wav.ok() ? "no error" : wav.error().Message();
}
std::string OggError(std::string_view file) { return MessageOf(CheckOgg(AsBytes(file), "clip")); }

TEST(FindAudio, KnowsKindsByTheirFirstBytes) {
  struct Case {
    std::string file;
    AudioKind kind;
    size_t offset;
  };
  const std::string tag = std::string("ID3\x04\0\0\0\0\1\x01", 10) + std::string(129, 'x');
  const std::string mp3 = testing::SilentMp3Frame(1);
  for (const auto& [file, kind, offset] :
       {Case{Riff(""), AudioKind::kWav, 0}, Case{"OggS...", AudioKind::kOgg, 0},
        Case{"fLaC...", AudioKind::kFlac, 0}, Case{mp3, AudioKind::kMp3, 0},
        Case{tag + "fLaC", AudioKind::kFlac, 139}, Case{tag + mp3, AudioKind::kMp3, 139},
        Case{tag + std::string(3, '\0') + mp3, AudioKind::kMp3, 142}}) {
    const auto start = FindAudio(AsBytes(file), "clip");
    ASSERT_TRUE(start.ok()) << start.error().Message();
    EXPECT_EQ(start->kind, kind);
    EXPECT_EQ(start->offset, offset);
  }
}

TEST(FindAudio, NamesOtherKinds) {
  const std::string wanted = ", wanted WAV, FLAC, OGG or MP3";
  EXPECT_EQ(KindError(std::string("\0\0\0\x20"
                                  "ftypM4A ",
                                  12)),
            "clip: an MP4 file (m4a, mp4, mov), which only facet-media reads" + wanted);
  for (const auto& [brand, what] : {std::pair("heic", "HEIC"), std::pair("heix", "HEIC"),
                                    std::pair("mif1", "HEIF"), std::pair("avif", "AVIF")}) {
    EXPECT_EQ(KindError(std::string("\0\0\0\x20", 4) + "ftyp" + brand),
              std::string("clip: a") + (what[0] == 'A' ? "n " : " ") + what + " image" + wanted);
  }
  EXPECT_EQ(KindError("\xFF\xF1P"), "clip: an AAC file, which only facet-media reads" + wanted);
  EXPECT_EQ(KindError("\x1A\x45\xDF\xA3"),
            "clip: a Matroska or WebM file, which only facet-media reads" + wanted);
  EXPECT_EQ(KindError("FORM....AIFF"), "clip: an AIFF file" + wanted);
  EXPECT_EQ(KindError("\x89PNG"), "clip: a PNG image" + wanted);
  EXPECT_EQ(KindError("<html>"), "clip: a text file" + wanted);
  EXPECT_EQ(KindError("\1\xFE"),
            "clip: no kind of sound that is known, first bytes 01 fe" + wanted);
  EXPECT_EQ(KindError("RIFF"),
            "clip: no kind of sound that is known, first bytes 52 49 46 46" + wanted);
  EXPECT_EQ(KindError(""), "clip: an empty file" + wanted);
  EXPECT_EQ(KindError(std::string_view("ID3\x04\0\0\0\0\0\x01", 10)),
            "clip: an ID3 tag without sound" + wanted);
  EXPECT_EQ(KindError(std::string_view("ID3\x04\0\0\x7F\x7F\x7F\x7F.", 11)),
            "clip: an ID3 tag without sound" + wanted);
}

TEST(CheckSoundShape, HasBounds) {
  EXPECT_EQ(MessageOf(CheckSoundShape(1, 1000, "clip")), "no error");
  EXPECT_EQ(MessageOf(CheckSoundShape(64, 768000, "clip")), "no error");
  EXPECT_EQ(MessageOf(CheckSoundShape(0, 16000, "clip")), "clip: 0 channels, wanted 1 to 64");
  EXPECT_EQ(MessageOf(CheckSoundShape(65, 16000, "clip")), "clip: 65 channels, wanted 1 to 64");
  EXPECT_EQ(MessageOf(CheckSoundShape(1, 999, "clip")),
            "clip: a rate of 999 Hz, wanted 1000 to 768000");
  EXPECT_EQ(MessageOf(CheckSoundShape(1, 768001, "clip")),
            "clip: a rate of 768001 Hz, wanted 1000 to 768000");
}

TEST(PlainWav, LooksForFormatAndData) {
  const std::string format = Chunk("fmt ", WavFormat({}));
  const std::string data = Chunk("data", "1234");
  EXPECT_EQ(WavError(Riff(format + data)), "no error");
  EXPECT_EQ(WavError(Riff(Chunk("LIST", "odd") + format + Chunk("fact", "1") + data + "junk")),
            "no error");
  EXPECT_EQ(WavError(Riff(format)), "clip: no chunk \"data\", wanted samples");
  EXPECT_EQ(WavError(Riff(data + format)),
            "clip: data before their format, wanted chunk \"fmt \" first");
  EXPECT_EQ(WavError(Riff(format + Chunk("data", ""))), "clip: no samples, wanted sound");
  EXPECT_EQ(WavError(Riff(format + "da")),
            "clip, byte 36: 2 bytes left for name of a chunk, wanted 4");
}

TEST(PlainWav, DropsOtherChunks) {
  for (const std::string& format : {WavFormat({}), WavFormat({.is_extensible = true})}) {
    const std::string plain = Riff(Chunk("fmt ", format) + Chunk("data", "123456"));
    const std::string file =
        Riff(Chunk("LIST", "odd") + Chunk("fmt ", format) + Chunk("cue ", "\xFF\xFF\xFF\xFF") +
             Chunk("data", "123456") + Chunk("LIST", "INFO"));
    EXPECT_EQ(*PlainWav(AsBytes(file), "clip"), plain);
    EXPECT_EQ(*PlainWav(AsBytes(plain), "clip"), plain);
    std::string piped = file.substr(0, file.find("LIST", 30));
    piped.replace(piped.find("data") + 4, 4, "\xFF\xFF\xFF\xFF");
    EXPECT_EQ(*PlainWav(AsBytes(piped), "clip"), plain);
  }
}

TEST(PlainWav, RefusesWhatIsCut) {
  const std::string file = Riff(Chunk("fmt ", WavFormat({})) + Chunk("data", "12345678"));
  EXPECT_EQ(WavError(file.substr(0, file.size() - 1)),
            "clip: a chunk of 8 bytes at byte 36, of which 7 are there, wanted a file that is not "
            "cut");
  EXPECT_EQ(WavError(file.substr(0, 30)),
            "clip: a chunk of 16 bytes at byte 12, of which 10 are there, wanted a file that is "
            "not cut");
  EXPECT_EQ(WavError(Riff(Chunk("fmt ", WavFormat({})) + Chunk("data", "1234567"))),
            "clip: 7 bytes of samples, wanted frames of 2 bytes");
  // Written into a pipe: "to the end", wherever that is.
  std::string piped = file + "9";
  piped.replace(40, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(WavError(piped), "no error");
  piped.replace(40, 4, std::string("\0\0\xFF\x7F", 4));
  EXPECT_EQ(WavError(piped), "no error");
}

TEST(PlainWav, RefusesOddFormats) {
  const auto error_of = [](const WavShape& shape) {
    return WavError(Riff(Chunk("fmt ", WavFormat(shape)) + Chunk("data", "12345678")));
  };
  EXPECT_EQ(error_of({.bits = 64, .codec = 3, .is_extensible = true}), "no error");
  EXPECT_EQ(error_of({.n_channels = 0}), "clip: 0 channels, wanted 1 to 64");
  EXPECT_EQ(error_of({.rate = 0}), "clip: a rate of 0 Hz, wanted 1000 to 768000");
  EXPECT_EQ(error_of({.codec = 0x11}),
            "clip: format: codec 0x0011, wanted whole numbers, floats or G.711");
  EXPECT_EQ(error_of({.codec = 2, .is_extensible = true}),
            "clip: format: codec 0x0002, wanted whole numbers, floats or G.711");
  EXPECT_EQ(error_of({.bits = 0}),
            "clip: format: 0 bits per sample of codec 1, wanted 8, 16, 24 or 32, floats of 32 or "
            "64");
  EXPECT_EQ(error_of({.bits = 16, .codec = 3}),
            "clip: format: 16 bits per sample of codec 3, wanted 8, 16, 24 or 32, floats of 32 or "
            "64");
  std::string format = WavFormat({});
  format[12] = 0;
  EXPECT_EQ(WavError(Riff(Chunk("fmt ", format) + Chunk("data", "1234"))),
            "clip: format: 0 bytes per frame, wanted 2 for 1 channels of 16 bits");
  EXPECT_EQ(WavError(Riff(Chunk("fmt ", "12") + Chunk("data", "1234"))),
            "clip: format, byte 2: 0 bytes left for channels, wanted 2");
}

/// A page with one segment.
std::string Page(int flags, std::string_view body) {
  std::string page = "OggS";
  page += '\0';
  page += static_cast<char>(flags);
  page += std::string(20, '\0');
  page += '\1';
  page += static_cast<char>(body.size());
  page += body;
  // The check sum, bit by bit.
  uint32_t sum = 0;
  for (const char c : page) {
    for (int bit = 7; bit >= 0; --bit) {
      const bool carry = (sum >> 31 ^ (static_cast<uint8_t>(c) >> bit & 1U)) != 0;
      sum = sum << 1 ^ (carry ? 0x04C11DB7U : 0U);
    }
  }
  std::string bytes;
  Append(bytes, sum);
  return page.replace(22, 4, bytes);
}

TEST(CheckOgg, FollowsThePages) {
  const std::string first = Page(2, "\x01vorbis");
  EXPECT_EQ(OggError(first + Page(0, "x") + Page(4, "y")), "no error");
  EXPECT_EQ(OggError(Page(2, "OpusHead") + Page(4, "") + "junk"), "no error");
  EXPECT_EQ(OggError(Page(2, "\x80theora") + Page(4, "")),
            "clip: an OGG file of another codec, wanted Vorbis or Opus");
  EXPECT_EQ(OggError(first + Page(2, "\x01vorbis") + Page(4, "")),
            "clip: a second stream at byte 35 of an OGG file, wanted one");
  EXPECT_EQ(OggError(first + Page(0, "x")),
            "clip: an OGG file that breaks off at byte 64, wanted a page marked as the last");
  std::string damaged = first + Page(4, "y");
  damaged.back() = 'z';
  EXPECT_EQ(OggError(damaged).substr(0, 52),
            "clip: a damaged OGG page at byte 35, wanted check su");
  const std::string whole = first + Page(4, "yy");
  for (size_t size = 36; size < whole.size(); ++size) {
    const std::string got = OggError(std::string_view(whole).substr(0, size));
    EXPECT_EQ(got, size < 39 ? "clip: an OGG file that breaks off at byte 35, wanted a page marked "
                               "as the last"
                             : "clip: an OGG page at byte 35 that does not end, wanted a file that "
                               "is not cut");
  }
}

TEST(CheckOgg, TakesTheFilesOfEncoders) {
  for (const char* name : {"vorbis_44k_stereo.ogg", "opus_48k_mono.opus"}) {
    EXPECT_EQ(OggError(testing::ReadOrDie(
                  testing::TestdataPath(std::string("media/audio/files/") + name))),
              "no error");
  }
}

}  // namespace
}  // namespace facet
