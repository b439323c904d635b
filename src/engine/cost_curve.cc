// SPDX-License-Identifier: Apache-2.0
#include "engine/cost_curve.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace facet {
namespace {

/// A pause makes a step slower and nothing makes it faster than it is: what is slower is clipped to
/// so many times what is known, and what is faster by so much is believed at once.
constexpr double kSlowest = 1.5;
constexpr double kSlowestOfMature = 1.25;
constexpr double kFaster = 0.7;
/// Above what it can be beside another by so much, a mean is the one of a pause.
constexpr double kSlack = 1.25;
/// Measurements after which a bucket's mean is trusted as far as that.
constexpr double kMature = 8;
/// What remains of a measurement's weight when something else is measured.
constexpr double kForgetting = 1 - 1.0 / 256;
/// Measurements that a bucket's own mean counts as much as the line after.
constexpr double kShrinkage = 12;
/// What the origin counts as, in measurements: enough that a row is taken to cost its share of the
/// step until something else is known.
constexpr double kOriginWeight = 0.03;

}  // namespace

size_t CostCurve::BucketOf(int n) {
  if (n <= kExact) {
    return static_cast<size_t>(n);
  }
  const double octaves = std::min<double>(kOctaves, std::log2(static_cast<double>(n) / kExact));
  return static_cast<size_t>(kExact +
                             std::min<double>(octaves * kPerOctave + 1, kOctaves * kPerOctave));
}

double CostCurve::ClipPause(const Bucket& bucket, int n, double seconds) const {
  if (bucket.weight > 0) {
    const double slowest = bucket.weight < kMature ? kSlowest : kSlowestOfMature;
    return std::min(seconds, slowest * bucket.seconds);
  }
  for (const Bucket& other : buckets_) {
    if (other.weight > 0) {
      seconds = std::min(seconds, kSlack * other.seconds * std::max(1.0, n / other.n));
    }
  }
  return seconds;
}

void CostCurve::Add(int n, double seconds) {
  FACET_CHECK(n >= 1);
  if (!(seconds > 0) || !std::isfinite(seconds)) {
    return;
  }
  Bucket& bucket = buckets_[BucketOf(n)];
  seconds = ClipPause(bucket, n, seconds);
  const double before = bucket.seconds;
  bucket.weight = seconds < kFaster * before ? 1 : std::min(bucket.weight + 1, kMemory);
  bucket.n += (n - bucket.n) / bucket.weight;
  bucket.seconds += (seconds - before) / bucket.weight;
  n_largest_ = std::max(n_largest_, n);
  for (Bucket& other : buckets_) {
    if (&other == &bucket || other.weight == 0) {
      continue;
    }
    other.weight *= kForgetting;
    // Less takes no longer, and nothing costs more in company than alone.
    const double most = kSlack * bucket.seconds * std::max(1.0, other.n / bucket.n);
    if (other.seconds > most) {
      other.seconds = most;
      other.weight = 1;
    }
  }
}

CostCurve::Line CostCurve::LineNear(int n) const {
  double sum = 0;
  Line line;
  const auto weigh = [n](const Bucket& bucket) {
    const double distance = (bucket.n - n) / (0.5 * n + 2);
    const double nearness = 1 / (1 + distance * distance);
    return bucket.weight * nearness * nearness;
  };
  const auto add = [&](double weight, const Bucket& bucket) {
    sum += weight;
    line.n += weight * bucket.n;
    line.seconds += weight * bucket.seconds;
  };
  const Bucket origin = {kOriginWeight, 0, 0};
  add(kOriginWeight, origin);
  for (const Bucket& bucket : buckets_) {
    add(weigh(bucket), bucket);
  }
  line.n /= sum;
  line.seconds /= sum;
  double slopes = kOriginWeight * line.n * line.seconds;
  double squares = kOriginWeight * line.n * line.n;
  for (const Bucket& bucket : buckets_) {
    const double weight = weigh(bucket);
    slopes += weight * (bucket.n - line.n) * (bucket.seconds - line.seconds);
    squares += weight * (bucket.n - line.n) * (bucket.n - line.n);
  }
  line.slope = std::max(0.0, slopes / squares);
  return line;
}

std::vector<double> CostCurve::Estimate(int first, int n_more) const {
  FACET_CHECK(!empty() && first >= 1 && n_more >= 0);
  const Line line = LineNear(first);
  std::vector<double> seconds;
  seconds.reserve(static_cast<size_t>(n_more) + 1);
  // Of what is known, fewer have their share at least.
  double least = line.seconds * std::min(1.0, first / line.n);
  for (int n = first; n <= first + n_more; ++n) {
    const Bucket& bucket = buckets_[BucketOf(n)];
    const double own = bucket.weight / (bucket.weight + kShrinkage);
    least = std::max(least, line.At(n) + own * (bucket.seconds - line.At(bucket.n)));
    seconds.push_back(least);
  }
  return seconds;
}

}  // namespace facet
