// SPDX-License-Identifier: Apache-2.0
#include "media/log_mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "media/audio.h"
#include "media/fft.h"

namespace facet {
namespace {

constexpr size_t kHop = 160;
constexpr size_t kFrame = 2 * kHop;
constexpr double kFloor = 0.001;

/// Hann, periodic: begins with zero and does not end with it. Rounded to float as the reference's.
std::array<double, kFrame> HannWindow() {
  std::array<double, kFrame> window;
  for (size_t j = 0; j < kFrame; ++j) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(j) / kFrame;
    window[j] = static_cast<float>(0.5 - 0.5 * std::cos(angle));
  }
  return window;
}

/// The bins that a band is summed of, each with its weight. None for the lowest band, which is
/// narrower than a bin.
struct MelBand {
  size_t first_bin = 0;
  std::vector<double> weights;
};

double HertzOfMel(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

/// Triangles between points that lie evenly on the HTK scale from 0 Hz to half the sample rate.
/// Their peaks are 1 whatever their width.
std::vector<MelBand> MelBands() {
  const double nyquist = kSampleRate / 2.0;
  const double top = 2595 * std::log10(1 + nyquist / 700);
  std::array<double, kMelBands + 2> edges;
  for (size_t e = 0; e < edges.size(); ++e) {
    edges[e] = HertzOfMel(top * static_cast<double>(e) / (kMelBands + 1));
  }
  std::vector<MelBand> bands(kMelBands);
  for (size_t band = 0; band < kMelBands; ++band) {
    for (size_t bin = 0; bin < kFftBins; ++bin) {
      const double hertz = nyquist * static_cast<double>(bin) / (kFftBins - 1);
      const double rise = (hertz - edges[band]) / (edges[band + 1] - edges[band]);
      const double fall = (edges[band + 2] - hertz) / (edges[band + 2] - edges[band + 1]);
      const double weight = std::min(rise, fall);
      if (weight <= 0) {
        continue;
      }
      if (bands[band].weights.empty()) {
        bands[band].first_bin = bin;
      }
      bands[band].weights.push_back(weight);
    }
  }
  return bands;
}

struct Tables {
  std::array<double, kFrame> window = HannWindow();
  std::vector<MelBand> bands = MelBands();
};

const Tables& TheTables() {
  static const Tables kTables;
  return kTables;
}

/// out [kMelBands]
void FrameLogMel(const Spectrum& spectrum, const std::vector<MelBand>& bands, float* out) {
  std::array<double, kFftBins> magnitudes;
  for (size_t bin = 0; bin < kFftBins; ++bin) {
    magnitudes[bin] =
        std::sqrt(spectrum.re[bin] * spectrum.re[bin] + spectrum.im[bin] * spectrum.im[bin]);
  }
  for (const MelBand& band : bands) {
    double sum = kFloor;
    for (size_t j = 0; j < band.weights.size(); ++j) {
      sum += band.weights[j] * magnitudes[band.first_bin + j];
    }
    *out++ = static_cast<float>(std::log(sum));
  }
}

}  // namespace

LogMel ComputeLogMel(std::span<const float> samples) {
  const Tables& tables = TheTables();
  const size_t n_frames = samples.empty() ? 0 : (samples.size() - 1) / kHop;
  LogMel out{.n_frames = static_cast<int>(n_frames),
             .values = std::vector<float>(n_frames * kMelBands)};
  std::array<double, kFftSize> frame{};
  Spectrum spectrum;
  for (size_t i = 0; i < n_frames; ++i) {
    // Frame i ends with sample 160·i + 159; of the first one, the first half lies before the sound.
    const size_t n_before = i == 0 ? kHop : 0;
    const float* source = samples.data() + (i == 0 ? 0 : (i - 1) * kHop);
    for (size_t j = n_before; j < kFrame; ++j) {
      frame[j] = tables.window[j] * source[j - n_before];
    }
    TransformReal(frame, &spectrum);
    FrameLogMel(spectrum, tables.bands, out.values.data() + i * kMelBands);
  }
  return out;
}

}  // namespace facet
