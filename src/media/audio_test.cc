// SPDX-License-Identifier: Apache-2.0
#include "media/audio.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/bytes.h"
#include "format/safetensors.h"
#include "media/audio_testing.h"
#include "media/prepare_audio.h"
#include "support/testing.h"

namespace facet {
namespace {

using testing::Tone;
using testing::Wav;
using testing::WavShape;

constexpr const char* kM4a = "aac_44k_stereo.m4a";

std::string FileBytes(const std::string& name) {
  return testing::ReadOrDie(testing::TestdataPath("media/audio/files/" + name));
}

Result<Waveform> Decode(std::string_view bytes, const AudioLimits& limits = {}) {
  return DecodeAudio(AsBytes(bytes), limits, "clip");
}

std::string ErrorOf(const Result<Waveform>& result) {
  return result.ok() ? "no error" : result.error().Message();
}

/// By the README of the data.
double ToleranceOf(const Json& row) {
  const std::string& format = row["format"].as_string();
  const double of_decoder = format == "OGG" || format == "MP3" ? 1e-3 : 1e-7;
  return row["rate"].as_int() == kSampleRate ? of_decoder : 2e-3 + of_decoder;
}

TEST(DecodeAudio, IsLibrosas) {
  auto goldens =
      safetensors::File::Open(testing::TestdataPath("media/audio/files_16k.safetensors"));
  ASSERT_TRUE(goldens.ok()) << goldens.error().Message();
  const Json files = testing::JsonOrDie(testing::TestdataPath("media/audio/files.json"));
  int n_compared = 0;
  for (const Json& row : files["files"].items()) {
    const std::string& name = row["file"].as_string();
    if (name == kM4a) {
      continue;
    }
    const Result<Waveform> got = Decode(FileBytes(name));
    ASSERT_TRUE(got.ok()) << got.error().Message();
    const safetensors::TensorView* wanted = goldens->Find(name);
    ASSERT_NE(wanted, nullptr) << name;
    ASSERT_EQ(got->samples.size(), static_cast<size_t>(row["samples_16k"].as_int())) << name;
    ASSERT_EQ(got->samples.size() * sizeof(float), wanted->data.size()) << name;
    std::vector<float> samples(got->samples.size());
    std::memcpy(samples.data(), wanted->data.data(), wanted->data.size());
    double worst = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      worst = std::max(worst, std::abs(double{samples[i]} - double{got->samples[i]}));
    }
    EXPECT_LE(worst, ToleranceOf(row)) << name;
    RecordProperty(name, std::to_string(worst));
    ++n_compared;
  }
  EXPECT_EQ(n_compared, 15);
}

TEST(DecodeAudio, NamesWhoReadsAac) {
  EXPECT_EQ(ErrorOf(Decode(FileBytes(kM4a))),
            "clip: an MP4 file (m4a, mp4, mov), which only facet-media reads, wanted WAV, FLAC, "
            "OGG or MP3");
}

/// Whatever the form, a clip is as long as it is, sounds the same and costs the same.
TEST(DecodeAudio, FormsOfAWavAgree) {
  struct Form {
    int bits;
    int codec;
    double step;  ///< of its levels
  };
  const std::vector<float> wanted =
      Decode(Wav({.bits = 64, .codec = 3}, Tone(0.5, 16000)))->samples;
  for (const auto& [bits, codec, step] :
       {Form{8, 1, 1.0 / 128}, Form{16, 1, 1.0 / 32768}, Form{24, 1, 1e-6}, Form{32, 1, 1e-6},
        Form{32, 3, 1e-6}, Form{64, 3, 1e-6}}) {
    for (const int rate : {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}) {
      for (const int n_channels : {1, 2}) {
        const bool is_extensible = n_channels == 2;
        const WavShape shape{rate, n_channels, bits, codec, is_extensible};
        const Result<Waveform> got = Decode(Wav(shape, Tone(0.5, rate)));
        ASSERT_TRUE(got.ok()) << got.error().Message();
        EXPECT_NEAR(static_cast<double>(got->samples.size()), 8000, 1) << rate;
        for (const size_t i : {2000U, 4001U, 6002U}) {
          EXPECT_NEAR(got->samples[i], wanted[i], step + 2e-3) << rate << " " << bits;
        }
        const auto prepared = PrepareAudio(*got, AudioForm::kLogMel, LongAudio::kRefuse, "clip");
        ASSERT_TRUE(prepared.ok());
        EXPECT_EQ(prepared->items[0]->n_tokens, 13) << rate << " " << bits;
      }
    }
  }
}

TEST(DecodeAudio, TakesTheMeanOfChannels) {
  std::string data;
  for (const float value : {1.0F, 0.0F, -0.5F, 0.25F, 0.5F, 0.125F}) {
    Append(data, value);
  }
  const WavShape shape{.n_channels = 3, .bits = 32, .codec = 3};
  const auto got = Decode(testing::Riff(testing::Chunk("fmt ", testing::WavFormat(shape)) +
                                        testing::Chunk("data", data)));
  ASSERT_TRUE(got.ok()) << got.error().Message();
  EXPECT_EQ(got->samples, (std::vector<float>{0.5F / 3, 0.875F / 3}));
}

TEST(DecodeAudio, ReadsG711) {
  const std::string quiet(1600, '\xFF');  // zero in mu-law
  const WavShape shape{.rate = 8000, .bits = 8, .codec = 7};
  const auto got = Decode(testing::Riff(testing::Chunk("fmt ", testing::WavFormat(shape)) +
                                        testing::Chunk("data", quiet)));
  ASSERT_TRUE(got.ok()) << got.error().Message();
  EXPECT_EQ(got->samples, std::vector<float>(3200));
}

TEST(DecodeAudio, PreparingRefusesWhatIsNoNumber) {
  std::vector<double> samples(100);
  const WavShape shape{.bits = 32, .codec = 3};
  const auto error_of = [&shape](const std::vector<double>& with) {
    const auto prepared =
        PrepareAudio(*Decode(Wav(shape, with)), AudioForm::kRaw, LongAudio::kCut, "clip");
    return prepared.ok() ? "no error" : prepared.error().Message();
  };
  samples[7] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of(samples), "clip: sample 7 is nan, wanted numbers that sound");
  samples[7] = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of(samples), "clip: sample 7 is -inf, wanted numbers that sound");
  samples[7] = 1e20;
  EXPECT_EQ(error_of(samples), "clip: sample 7 is 1e+20, wanted numbers that sound");
  samples[7] = 2147483647;
  EXPECT_TRUE(Decode(Wav(shape, samples)).ok());
}

TEST(DecodeAudio, RefusesWhatIsEmpty) {
  EXPECT_EQ(ErrorOf(Decode("")), "clip: an empty file, wanted WAV, FLAC, OGG or MP3");
  EXPECT_EQ(ErrorOf(Decode(Wav({}, {}))), "clip: no samples, wanted sound");
  EXPECT_EQ(ErrorOf(Decode(Wav({}, std::vector<double>(1)))), "no error");
}

TEST(DecodeAudio, KeepsToItsLimits) {
  const std::string second = Wav({}, Tone(1, 16000));
  EXPECT_EQ(ErrorOf(Decode(second, {.max_seconds = 0.5})),
            "clip: more than 0.5 s of sound, wanted a shorter clip");
  EXPECT_EQ(ErrorOf(Decode(second, {.max_seconds = 1})), "no error");
  EXPECT_EQ(ErrorOf(Decode(second, {.max_bytes = 1000})),
            "clip: 32044 bytes of sound, wanted at most 1000");
  EXPECT_EQ(ErrorOf(Decode(FileBytes("vorbis_44k_stereo.ogg"), {.max_seconds = 0.25})),
            "clip: more than 0.25 s of sound, wanted a shorter clip");
  const std::string mp3 = testing::Repeated(testing::SilentMp3Frame(1), 100);
  EXPECT_EQ(ErrorOf(Decode(mp3, {.max_seconds = 2})),
            "clip: more than 2 s of sound, wanted a shorter clip");
}

/// A cut file is refused, not heard as far as it goes. Where it was cut between two frames of an
/// MP3 that does not say its length, nothing tells; all of these say it.
TEST(DecodeAudio, RefusesCutFiles) {
  const Json files = testing::JsonOrDie(testing::TestdataPath("media/audio/files.json"));
  for (const Json& row : files["files"].items()) {
    const std::string& name = row["file"].as_string();
    const std::string whole = FileBytes(name);
    for (const double part : {0.001, 0.01, 0.3, 0.6, 0.95, 0.999}) {
      const auto size = static_cast<size_t>(static_cast<double>(whole.size()) * part);
      const Result<Waveform> got = Decode(std::string_view(whole).substr(0, size));
      EXPECT_FALSE(got.ok()) << name << " " << size;
    }
  }
  EXPECT_EQ(ErrorOf(Decode(FileBytes("s16_16k_mono.wav").substr(0, 9000))),
            "clip: a chunk of 16000 bytes at byte 36, of which 8956 are there, wanted a file that "
            "is not cut");
  EXPECT_EQ(ErrorOf(Decode(FileBytes("s16_22k_mono.flac").substr(0, 9000))),
            "clip: sound that breaks off after 8192 frames, wanted 11025");
}

TEST(DecodeAudio, ReadsPastAnId3Tag) {
  const std::string tag = std::string("ID3\x04\0\0\0\0\1\x10", 10) + std::string(144 + 30, '\0');
  for (const char* name : {"s16_22k_mono.flac", "cbr96_44k_stereo.mp3"}) {
    const std::string file = FileBytes(name);
    const Result<Waveform> got = Decode(tag + file);
    ASSERT_TRUE(got.ok()) << got.error().Message();
    EXPECT_EQ(got->samples, Decode(file)->samples);
  }
}

/// libsndfile alone takes the first frame's bit rate for that of all, and would stop early here.
TEST(DecodeAudio, HearsAllOfAnMp3WithoutATag) {
  const std::string mp3 =
      testing::SilentMp3Frame(14) + testing::Repeated(testing::SilentMp3Frame(1), 99);
  const Result<Waveform> got = Decode(mp3);
  ASSERT_TRUE(got.ok()) << got.error().Message();
  // Less up to one frame, which is the delay of the decoder.
  EXPECT_LE(got->samples.size(), 100 * 1152 * 16000 / 44100 + 1);
  EXPECT_GE(got->samples.size(), 99 * 1152 * 16000 / 44100);
}

}  // namespace
}  // namespace facet
