// SPDX-License-Identifier: Apache-2.0
// Sound files that tests of this folder make: WAV in every form, and MP3 of silence.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace facet::testing {

struct WavShape {
  int rate = 16000;
  int n_channels = 1;
  int bits = 16;
  int codec = 1;  ///< 1: whole numbers, 3: floats
  bool is_extensible = false;
};

inline std::string Chunk(std::string_view id, std::string_view body) {
  std::string out(id);
  Append(out, static_cast<uint32_t>(body.size()));
  out += body;
  if (body.size() % 2 == 1) {
    out += '\0';
  }
  return out;
}

inline std::string Riff(std::string_view chunks) {
  return Chunk("RIFF", "WAVE" + std::string(chunks));
}

inline std::string WavFormat(const WavShape& shape) {
  const int align = shape.n_channels * shape.bits / 8;
  std::string out;
  Append(out, static_cast<uint16_t>(shape.is_extensible ? 0xFFFE : shape.codec));
  Append(out, static_cast<uint16_t>(shape.n_channels));
  Append(out, static_cast<uint32_t>(shape.rate));
  Append(out, static_cast<uint32_t>(shape.rate * align));
  Append(out, static_cast<uint16_t>(align));
  Append(out, static_cast<uint16_t>(shape.bits));
  if (shape.is_extensible) {
    Append(out, uint16_t{22});
    Append(out, static_cast<uint16_t>(shape.bits));
    Append(out, static_cast<uint32_t>((1 << shape.n_channels) - 1));
    Append(out, static_cast<uint16_t>(shape.codec));
    out += std::string_view("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
  }
  return out;
}

inline void AppendSample(std::string& out, const WavShape& shape, double value) {
  if (shape.codec == 3 && shape.bits == 64) {
    Append(out, value);
  } else if (shape.codec == 3) {
    Append(out, static_cast<float>(value));
  } else {
    const double scale = std::ldexp(1.0, shape.bits - 1);
    const auto level =
        static_cast<int64_t>(std::clamp(std::round(value * scale), -scale, scale - 1));
    std::string bytes;
    Append(bytes, shape.bits == 8 ? level + 128 : level);
    out.append(bytes, 0, static_cast<size_t>(shape.bits / 8));
  }
}

/// The same `samples` in every channel.
inline std::string Wav(const WavShape& shape, std::span<const double> samples) {
  std::string data;
  for (const double sample : samples) {
    for (int channel = 0; channel < shape.n_channels; ++channel) {
      AppendSample(data, shape, sample);
    }
  }
  return Riff(Chunk("fmt ", WavFormat(shape)) + Chunk("data", data));
}

/// `seconds` of a tone of `hertz`.
inline std::vector<double> Tone(double seconds, int rate, double hertz = 440) {
  std::vector<double> out(static_cast<size_t>(std::llround(seconds * rate)));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = 0.4 * std::sin(2 * 3.141592653589793 * hertz * static_cast<double>(i) / rate);
  }
  return out;
}

/// A frame of silence: MPEG 1, layer III, 44100 Hz, one channel, 1152 samples. `index` is the one
/// of the bit rate: 1 for 32 kbit/s (104 bytes), 14 for 320 (1044 bytes).
inline std::string SilentMp3Frame(int index) {
  constexpr std::array<int, 15> kKbits = {0,   32,  40,  48,  56,  64,  80, 96,
                                          112, 128, 160, 192, 224, 256, 320};
  std::string frame = {'\xFF', '\xFB', static_cast<char>(index << 4), '\xC0'};
  frame.resize(static_cast<size_t>(144000 * kKbits[static_cast<size_t>(index)] / 44100));
  return frame;
}

inline std::string Repeated(std::string_view part, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) {
    out += part;
  }
  return out;
}

}  // namespace facet::testing
