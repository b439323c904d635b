// SPDX-License-Identifier: Apache-2.0
// The one Fourier transform that sound needs: 512 real values in double precision, as 256 complex
// ones by radix 4. The reference's runs in float, so its noise, not ours, bounds what can be
// compared (log_mel_test.cc).
#pragma once

#include <array>

namespace facet {

inline constexpr int kFftSize = 512;
inline constexpr int kFftBins = kFftSize / 2 + 1;

/// Bins 0 (constant) to kFftSize / 2 (Nyquist).
struct Spectrum {
  std::array<double, kFftBins> re;
  std::array<double, kFftBins> im;
};

/// out[k] = sum over j of values[j] · exp(-2πi·j·k / kFftSize). For several threads.
void TransformReal(const std::array<double, kFftSize>& values, Spectrum* out);

}  // namespace facet
