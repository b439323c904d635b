// SPDX-License-Identifier: Apache-2.0
// Seconds as a function of a count (rows of a step, passes of a drafter), learnt from what was
// measured: a line through what is known near the count that is asked about, corrected by what was
// measured at the counts themselves. Old measurements are forgotten; a pause of the machine is one
// measurement among many and is clipped.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace facet {

/// Not for several threads.
class CostCurve {
 public:
  /// `n` of something, at least 1, took `seconds`. What is not above 0 and finite is ignored.
  void Add(int n, double seconds);

  [[nodiscard]] bool empty() const { return n_largest_ == 0; }
  [[nodiscard]] int n_largest() const { return n_largest_; }  ///< count that was measured; 0: none

  /// Seconds of `first`, `first` + 1, ... `first` + `n_more`: positive and never falling. While
  /// only one count is known, seconds are in proportion to counts. Not while empty().
  [[nodiscard]] std::vector<double> Estimate(int first, int n_more) const;

 private:
  struct Bucket {
    double weight = 0;  ///< measurements, at most kMemory; 0: none
    double n = 0;       ///< mean count
    double seconds = 0;
  };
  struct Line {
    double n = 0;  ///< a point of it
    double seconds = 0;
    double slope = 0;

    [[nodiscard]] double At(double count) const { return seconds + slope * (count - n); }
  };

  static constexpr int kExact = 32;   ///< counts up to this have a bucket each
  static constexpr int kOctaves = 6;  ///< above, each doubling has kPerOctave
  static constexpr int kPerOctave = 8;
  static constexpr double kMemory = 24;

  static size_t BucketOf(int n);
  [[nodiscard]] double ClipPause(const Bucket& bucket, int n, double seconds) const;
  [[nodiscard]] Line LineNear(int n) const;

  std::array<Bucket, kExact + kOctaves * kPerOctave + 1> buckets_;
  int n_largest_ = 0;
};

}  // namespace facet
