// SPDX-License-Identifier: Apache-2.0
#include "media/fft.h"

#include <cmath>
#include <numbers>

namespace facet {
namespace {

constexpr int kPoints = kFftSize / 2;  // complex, and a power of 4

struct Complexes {
  std::array<double, kPoints> re;
  std::array<double, kPoints> im;
};

/// exp(-2πi·k / kFftSize)
struct Roots {
  std::array<double, kFftSize> re;
  std::array<double, kFftSize> im;

  Roots() {
    for (size_t k = 0; k < kFftSize; ++k) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(k) / kFftSize;
      re[k] = std::cos(angle);
      im[k] = std::sin(angle);
    }
  }
};

const Roots& TheRoots() {
  static const Roots kRoots;
  return kRoots;
}

/// One of Stockham's passes, which need no reordering afterwards: `stride` interleaved transforms
/// of 4 · quarter points become four times as many of a quarter of the points.
void Pass(size_t quarter, size_t stride, const Complexes& in, Complexes* out) {
  const Roots& roots = TheRoots();
  const size_t hop = quarter * stride;
  for (size_t p = 0; p < quarter; ++p) {
    const size_t turn = 2 * p * stride;  // of the 512 roots
    const double w1_re = roots.re[turn], w1_im = roots.im[turn];
    const double w2_re = roots.re[2 * turn], w2_im = roots.im[2 * turn];
    const double w3_re = roots.re[3 * turn], w3_im = roots.im[3 * turn];
    for (size_t q = 0; q < stride; ++q) {
      const size_t from = p * stride + q;
      const size_t to = 4 * p * stride + q;
      const double a_re = in.re[from], a_im = in.im[from];
      const double b_re = in.re[from + hop], b_im = in.im[from + hop];
      const double c_re = in.re[from + 2 * hop], c_im = in.im[from + 2 * hop];
      const double d_re = in.re[from + 3 * hop], d_im = in.im[from + 3 * hop];
      const double ac_re = a_re + c_re, ac_im = a_im + c_im;
      const double bd_re = b_re + d_re, bd_im = b_im + d_im;
      // a - c, and -i·(b - d)
      const double ca_re = a_re - c_re, ca_im = a_im - c_im;
      const double db_re = b_im - d_im, db_im = d_re - b_re;
      const double y1_re = ca_re + db_re, y1_im = ca_im + db_im;
      const double y2_re = ac_re - bd_re, y2_im = ac_im - bd_im;
      const double y3_re = ca_re - db_re, y3_im = ca_im - db_im;
      out->re[to] = ac_re + bd_re;
      out->im[to] = ac_im + bd_im;
      out->re[to + stride] = y1_re * w1_re - y1_im * w1_im;
      out->im[to + stride] = y1_re * w1_im + y1_im * w1_re;
      out->re[to + 2 * stride] = y2_re * w2_re - y2_im * w2_im;
      out->im[to + 2 * stride] = y2_re * w2_im + y2_im * w2_re;
      out->re[to + 3 * stride] = y3_re * w3_re - y3_im * w3_im;
      out->im[to + 3 * stride] = y3_re * w3_im + y3_im * w3_re;
    }
  }
}

}  // namespace

void TransformReal(const std::array<double, kFftSize>& values, Spectrum* out) {
  // Even values are the real parts and odd ones the imaginary parts of half as many points; their
  // two spectra are told apart by symmetry at the end.
  Complexes z;
  Complexes other;
  for (size_t k = 0; k < kPoints; ++k) {
    z.re[k] = values[2 * k];
    z.im[k] = values[2 * k + 1];
  }
  static_assert(kPoints == 4 * 4 * 4 * 4);
  Pass(64, 1, z, &other);
  Pass(16, 4, other, &z);
  Pass(4, 16, z, &other);
  Pass(1, 64, other, &z);
  const Roots& roots = TheRoots();
  for (size_t k = 0; k < kFftBins; ++k) {
    const size_t here = k % kPoints;
    const size_t mirror = (kPoints - k) % kPoints;
    const double even_re = 0.5 * (z.re[here] + z.re[mirror]);
    const double even_im = 0.5 * (z.im[here] - z.im[mirror]);
    const double odd_re = 0.5 * (z.im[here] + z.im[mirror]);
    const double odd_im = 0.5 * (z.re[mirror] - z.re[here]);
    out->re[k] = even_re + odd_re * roots.re[k] - odd_im * roots.im[k];
    out->im[k] = even_im + odd_re * roots.im[k] + odd_im * roots.re[k];
  }
}

}  // namespace facet
