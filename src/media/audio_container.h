// SPDX-License-Identifier: Apache-2.0
// What sound files say of themselves, read before a library does: their kind, by the first bytes,
// and whether anything was cut off. libsndfile shortens a cut WAV or OGG to what is there without
// a word, and opens kinds and codecs that nobody sends and few have tested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace facet {

enum class AudioKind { kWav, kFlac, kOgg, kMp3 };

/// The bytes of the ID3v2 tags that `bytes` begin with, and of the zeros that some programs leave
/// behind them; 0 for none.
size_t Id3Size(std::string_view bytes);

/// Where the sound begins: after an ID3 tag, which FLAC and MP3 files may have in front.
struct AudioStart {
  AudioKind kind;
  size_t offset = 0;
};

/// Refused: other kinds, each by its name. `name` is what errors call the file, here and below.
Result<AudioStart> FindAudio(std::span<const std::byte> file, const std::string& name);

/// Refused: channels and rates (Hz) that no sound for people has.
Status CheckSoundShape(int64_t n_channels, int64_t rate, const std::string& name);

/// The format and the data of a RIFF file as a file without other chunks, whose readers in
/// libsndfile no input reaches. Refused unless there is a format of whole numbers, floats or G.711,
/// then data as long as they say. Lengths near 2 GiB and above are what encoders write into a pipe:
/// up to the end.
Result<std::string> PlainWav(std::span<const std::byte> file, const std::string& name);

/// An OGG file: refused unless it is one stream of Vorbis or Opus up to the page marked as last,
/// each page with its right check sum (the library passes over others).
Status CheckOgg(std::span<const std::byte> file, const std::string& name);

}  // namespace facet
