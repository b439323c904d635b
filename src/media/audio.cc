// SPDX-License-Identifier: Apache-2.0
#include "media/audio.h"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "media/audio_container.h"
#include "media/audio_mp3.h"
#include "media/audio_resample.h"

namespace facet {
namespace {

/// Of all channels together: a bound of the work that a small file can ask for. An hour of two
/// channels at 96 kHz is below it.
constexpr int64_t kMostValues = int64_t{1} << 30;

/// Bytes in the role of a file that is read.
struct MemoryFile {
  std::span<const std::byte> bytes;
  sf_count_t position = 0;

  [[nodiscard]] sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }
};

MemoryFile& FileOf(void* user) { return *static_cast<MemoryFile*>(user); }

sf_count_t Seek(sf_count_t offset, int whence, void* user) {
  MemoryFile& file = FileOf(user);
  const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.position : file.size();
  if (offset < -base || offset > file.size() - base) {
    return -1;
  }
  file.position = base + offset;
  return file.position;
}

sf_count_t Read(void* out, sf_count_t n_bytes, void* user) {
  MemoryFile& file = FileOf(user);
  const sf_count_t n = std::clamp<sf_count_t>(n_bytes, 0, file.size() - file.position);
  if (n > 0) {
    std::memcpy(out, file.bytes.data() + file.position, static_cast<size_t>(n));
  }
  file.position += n;
  return n;
}

struct SoundCloser {
  void operator()(SNDFILE* sound) const { sf_close(sound); }
};
using Sound = std::unique_ptr<SNDFILE, SoundCloser>;

/// None if libsndfile does not take it. `file` has to outlive what is returned.
Sound OpenSound(MemoryFile* file, SF_INFO* info) {
  static SF_VIRTUAL_IO reading = {
      .get_filelen = [](void* user) { return FileOf(user).size(); },
      .seek = Seek,
      .read = Read,
      .write = [](const void*, sf_count_t, void*) { return sf_count_t{0}; },
      .tell = [](void* user) { return FileOf(user).position; }};
  return Sound(sf_open_virtual(&reading, SFM_READ, info, file));
}

Error TooLong(const AudioLimits& limits, const std::string& name) {
  return Refuse(name, fmt::format("more than {:g} s of sound", limits.max_seconds),
                "a shorter clip");
}

/// The mean of the channels of each frame, summed in their order. `frames` [n, n_channels].
void MeanOfChannels(std::span<const float> frames, std::span<float> out) {
  const size_t n_channels = frames.size() / out.size();
  const float* value = frames.data();
  for (float& mean : out) {
    float sum = *value++;
    for (size_t channel = 1; channel < n_channels; ++channel) {
      sum += *value++;
    }
    mean = sum / static_cast<float>(n_channels);
  }
}

/// Reads to the end, in blocks: what a header says of the length takes no memory.
Result<Waveform> ReadAll(SNDFILE* sound, const SF_INFO& info, const AudioLimits& limits,
                         const std::string& name) {
  constexpr int kBlockValues = 1 << 14;
  const int block_frames = kBlockValues / info.channels;
  std::vector<float> block(static_cast<size_t>(block_frames * info.channels));
  std::vector<float> mean(static_cast<size_t>(block_frames));
  FACET_ASSIGN(Resampler resampler, Resampler::Create(info.samplerate, name));
  int64_t n_read = 0;
  for (;;) {
    const sf_count_t n = sf_readf_float(sound, block.data(), block_frames);
    if (n <= 0) {
      break;
    }
    const auto n_frames = static_cast<size_t>(n);
    const std::span<float> out = std::span(mean).first(n_frames);
    MeanOfChannels(std::span(block).first(n_frames * static_cast<size_t>(info.channels)), out);
    resampler.Add(out);
    n_read += n;
    const double seconds = static_cast<double>(n_read) / info.samplerate;
    if (seconds > limits.max_seconds) {
      return TooLong(limits, name);
    }
    if (n_read > kMostValues / info.channels) {
      return Refuse(name, fmt::format("more than {} values of sound", kMostValues),
                    "fewer channels, a lower rate or a shorter clip");
    }
  }
  if (sf_error(sound) != SF_ERR_NO_ERROR || n_read != info.frames) {
    return Refuse(name, fmt::format("sound that breaks off after {} frames", n_read),
                  fmt::format("{}", info.frames));
  }
  if (n_read == 0) {
    return Refuse(name, "no samples", "sound");
  }
  Waveform waveform;
  FACET_ASSIGN(waveform.samples, resampler.Finish());
  return waveform;
}

/// The bytes for libsndfile: `file`, of which nothing is cut, or a copy kept in `storage`.
Result<std::span<const std::byte>> CheckedSound(std::span<const std::byte> file,
                                                const std::string& name, std::string* storage) {
  FACET_ASSIGN(const AudioStart start, FindAudio(file, name));
  const std::span<const std::byte> sound = file.subspan(start.offset);
  switch (start.kind) {
    case AudioKind::kWav: {
      FACET_ASSIGN(*storage, PlainWav(sound, name));
      return AsBytes(*storage);
    }
    case AudioKind::kOgg:
      FACET_RETURN_IF_ERROR(CheckOgg(sound, name));
      break;
    case AudioKind::kMp3: {
      FACET_ASSIGN(*storage, CountedMp3(sound, name));
      return AsBytes(*storage);
    }
    case AudioKind::kFlac:  // has a check sum in each frame
      break;
  }
  return sound;
}

}  // namespace

Result<Waveform> DecodeAudio(std::span<const std::byte> file, const AudioLimits& limits,
                             const std::string& name) {
  if (file.size() > limits.max_bytes) {
    return Refuse(name, fmt::format("{} bytes of sound", file.size()),
                  fmt::format("at most {}", limits.max_bytes));
  }
  std::string storage;
  FACET_ASSIGN(const std::span<const std::byte> bytes, CheckedSound(file, name, &storage));
  MemoryFile memory{.bytes = bytes};
  SF_INFO info = {};
  const Sound sound = OpenSound(&memory, &info);
  if (sound == nullptr) {
    return Refuse(name, "a damaged sound file", "one that libsndfile opens");
  }
  FACET_RETURN_IF_ERROR(CheckSoundShape(info.channels, info.samplerate, name));
  if (info.frames == SF_COUNT_MAX) {  // only a FLAC file may leave that out; a cut would not show
    return Refuse(name, "a FLAC file that does not say how long it is",
                  "one that was not written into a pipe");
  }
  const double seconds = static_cast<double>(info.frames) / info.samplerate;
  if (seconds > limits.max_seconds) {
    return TooLong(limits, name);
  }
  return ReadAll(sound.get(), info, limits, name);
}

}  // namespace facet
