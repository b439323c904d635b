// SPDX-License-Identifier: Apache-2.0
// Files made to break a reader: each gives sound within the limits or one line of error, at once.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "media/audio.h"
#include "media/audio_testing.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::Chunk;
using testing::Riff;
using testing::WavFormat;

constexpr AudioLimits kLimits = {.max_bytes = 1 << 20, .max_seconds = 10};

std::string FileBytes(const std::string& name) {
  return testing::ReadOrDie(testing::TestdataPath("media/audio/files/" + name));
}

/// Whether it was sound. Anything else than sound or one line fails the test.
bool Survives(const std::string& file, const std::string& what) {
  const auto begin = std::chrono::steady_clock::now();
  const Result<Waveform> got = DecodeAudio(AsBytes(file), kLimits, "clip");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << what;
  if (!got.ok()) {
    const std::string message = got.error().Message();
    EXPECT_EQ(message.rfind("clip", 0), 0U) << what << ": " << message;
    EXPECT_LT(message.size(), 200U) << what << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << what << ": " << message;
    return false;
  }
  EXPECT_FALSE(got->samples.empty()) << what;
  EXPECT_LE(got->seconds(), kLimits.max_seconds + 0.1) << what;
  return true;
}

std::string With(std::string file, size_t at, std::string_view bytes) {
  return file.replace(at, bytes.size(), bytes);
}

std::string Number(uint32_t value, size_t n_bytes) {
  std::string out;
  Append(out, value);
  return out.substr(0, n_bytes);
}

TEST(HostileAudio, FieldsOfAWav) {
  const std::string file = FileBytes("s16_16k_mono.wav").substr(0, 36) + Chunk("data", "01234567");
  struct Field {
    const char* name;
    size_t at;
    size_t n_bytes;
    bool is_checked;  ///< whether it is wrong whatever else it holds
  };
  for (const Field& field :
       {Field{"RIFF size", 4, 4, false}, Field{"format size", 16, 4, true},
        Field{"codec", 20, 2, true}, Field{"channels", 22, 2, true}, Field{"rate", 24, 4, true},
        Field{"bytes per second", 28, 4, false}, Field{"bytes per frame", 32, 2, true},
        Field{"bits", 34, 2, true}, Field{"data size", 40, 4, false}}) {
    for (const uint32_t value : {0U, 1U, 2U, 9U, 0x55U, 0x7FFFU, 0x8000U, 0xFFFFU, 0x7FFFFFFFU,
                                 0x80000000U, 0xFFFFFFFFU}) {
      const std::string number = Number(value, field.n_bytes);
      if (number == file.substr(field.at, field.n_bytes)) {
        continue;
      }
      const bool is_sound = Survives(With(file, field.at, number),
                                     std::string(field.name) + " " + std::to_string(value));
      // 32767 and 65535 Hz are rates like any other.
      const bool is_rate = std::string_view(field.name) == "rate";
      EXPECT_FALSE(is_sound && field.is_checked && !is_rate) << field.name << " " << value;
    }
  }
}

TEST(HostileAudio, ChunksOfAWav) {
  const std::string format = Chunk("fmt ", WavFormat({}));
  const std::string data = Chunk("data", "01234567");
  const std::string huge = "LIST" + Number(0xFFFFFFFE, 4);
  const std::string none = testing::Repeated(Chunk("JUNK", ""), 50000);
  EXPECT_TRUE(Survives(Riff(none + format + data), "many chunks"));
  EXPECT_TRUE(Survives(Riff(format + data) + "junk behind", "junk behind"));
  EXPECT_TRUE(Survives(Riff(format + "data" + Number(0xFFFFFFFF, 4) + "01234567"), "4 GiB"));
  EXPECT_FALSE(Survives(Riff(huge + format + data), "huge chunk first"));
  EXPECT_FALSE(Survives(Riff(format + huge + data), "huge chunk before data"));
  EXPECT_FALSE(Survives(Riff(format + "junk" + data), "junk after the format"));
  EXPECT_FALSE(Survives(Riff(format), "format only"));
  EXPECT_FALSE(Survives(Riff(data), "data only"));
  EXPECT_FALSE(Survives(Riff(""), "nothing"));
  Survives(Riff(format + format + data), "two formats");
  Survives(Riff(format + Chunk("fmt ", WavFormat({.n_channels = 64})) + data), "another format");
  Survives(Riff(format + data + Chunk("LIST", "INFOISFT\xFF\xFF\xFF\xFFtest")), "list behind");
  Survives(Riff(Chunk("LIST", "INFOISFT\xFF\xFF\xFF\xFFtest") + format + data), "list before");
  for (const char* id : {"cue ", "smpl", "inst", "bext", "fact", "PEAK", "cart", "acid", "adtl"}) {
    Survives(Riff(format + Chunk(id, std::string(3, '\xFF')) + data), id);
    Survives(Riff(format + Chunk(id, std::string(700, '\xFF')) + data), id);
  }
}

TEST(HostileAudio, CodecsOfAWav) {
  for (const int codec :
       {0x0, 0x2, 0x11, 0x14, 0x31, 0x40, 0x45, 0x50, 0x55, 0xFF, 0x674F, 0xFFFF}) {
    for (const bool is_extensible : {false, true}) {
      const testing::WavShape shape{.codec = codec, .is_extensible = is_extensible};
      EXPECT_FALSE(Survives(Riff(Chunk("fmt ", WavFormat(shape)) + Chunk("data", "01234567")),
                            "codec " + std::to_string(codec)));
    }
  }
}

TEST(HostileAudio, CutAndFlippedFiles) {
  uint64_t n_drawn = 0;
  const auto draw = [&n_drawn] { return RandomBits(7, n_drawn++); };
  for (const char* name : {"s16_22k_mono.flac", "s24_16k_stereo.flac", "vorbis_44k_stereo.ogg",
                           "opus_48k_mono.opus", "cbr32_16k_mono.mp3", "cbr96_44k_stereo.mp3",
                           "s24_44k_stereo_extensible.wav", "aac_44k_stereo.m4a"}) {
    const std::string file = FileBytes(name);
    for (int round = 0; round < 24; ++round) {
      std::string changed = file;
      // Headers first: what is wrong in the sound itself is only noise.
      const size_t n_front = round % 2 == 0 ? std::min<size_t>(file.size(), 400) : file.size();
      for (int flip = 0; flip <= round / 4; ++flip) {
        changed[draw() % n_front] = static_cast<char>(draw());
      }
      Survives(changed, std::string(name) + " changed in round " + std::to_string(round));
      const size_t size = draw() % file.size();
      EXPECT_FALSE(Survives(file.substr(0, size), name + (" cut at " + std::to_string(size))));
      Survives(file.substr(0, size) + file.substr(size / 2), std::string(name) + " stuttering");
    }
  }
}

TEST(HostileAudio, Magics) {
  for (const std::string& head :
       {std::string("fLaC"), std::string("OggS"), std::string("ID3"), std::string("RIFF"),
        std::string("RIFF\0\0\0\0WAVE", 12), std::string("\xFF\xFB\x90\x44"),
        std::string("OggS\0\2", 6), std::string("ID3\4\0\0\x7F\x7F\x7F\x7F", 10),
        std::string("\0", 1)}) {
    for (const char fill : {'\0', '\xFF', 'f'}) {
      for (const size_t n : {0U, 1U, 30U, 5000U}) {
        EXPECT_FALSE(Survives(head + std::string(n, fill), head + " then " + std::to_string(n)) &&
                     head[0] != '\xFF');
      }
    }
  }
}

/// A FLAC that says 2^36 samples, and one of 655350 Hz.
TEST(HostileAudio, LengthsOfAFlac) {
  const std::string file = FileBytes("s16_22k_mono.flac");
  EXPECT_FALSE(Survives(With(file, 21, "\xFF\xFF\xFF\xFF\xFF"), "2^36 samples"));
  EXPECT_FALSE(Survives(With(file, 22, "\xFF\xFF\xFF\xFF"), "2^32 samples"));
  const std::string streamed = With(file, 22, std::string_view("\0\0\0\0", 4));
  EXPECT_EQ(DecodeAudio(AsBytes(streamed), kLimits, "clip").error().Message(),
            "clip: a FLAC file that does not say how long it is, wanted one that was not written "
            "into a pipe");
  Survives(With(file, 18, "\x9F\xFF\x60"), "655350 Hz");
  Survives(With(file, 18, std::string_view("\0\0\0", 3)), "0 Hz");
}

}  // namespace
}  // namespace facet
