// SPDX-License-Identifier: Apache-2.0
#include "app/perplexity.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace facet {

std::vector<TextWindow> PlanWindows(const WindowLayout& layout) {
  FACET_CHECK(layout.n_room >= 1 && layout.stride >= 1 && layout.n_skipped < layout.n_room);
  std::vector<TextWindow> windows;
  int64_t n_done = 0;  // tokens before it are scored or left out
  for (int64_t begin = 0; begin < layout.n_tokens && n_done < layout.n_tokens;
       begin += layout.stride) {
    const int64_t end = std::min<int64_t>(begin + layout.n_room, layout.n_tokens);
    const int64_t first_scored = std::max(begin + layout.n_skipped, n_done);
    if (first_scored < end) {
      windows.push_back(
          {static_cast<int>(begin), static_cast<int>(end), static_cast<int>(first_scored)});
    }
    n_done = end;
  }
  return windows;
}

void MeanEstimate::Add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  sum_of_squares_ += before * (value - mean_);
}

double MeanEstimate::standard_error() const {
  if (count_ < 2) {
    return 0;
  }
  const auto n = static_cast<double>(count_);
  return std::sqrt(sum_of_squares_ / (n * (n - 1)));
}

Estimate ToEstimate(const MeanEstimate& mean) { return {mean.mean(), mean.standard_error()}; }

Estimate ExpOf(const MeanEstimate& mean) {
  const double value = std::exp(mean.mean());
  return {value, value * mean.standard_error()};
}

double LogSumExp(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - most);
  }
  return most + std::log(sum);
}

double NegativeLogLikelihood(std::span<const float> logits, int token) {
  return LogSumExp(logits) - static_cast<double>(logits[static_cast<size_t>(token)]);
}

RowComparison CompareRow(std::span<const float> base_logits, std::span<const float> logits,
                         int token) {
  FACET_CHECK(base_logits.size() == logits.size());
  const double base_norm = LogSumExp(base_logits);
  const double norm = LogSumExp(logits);
  double divergence = 0;
  for (size_t n = 0; n < logits.size(); ++n) {
    const double base_log = static_cast<double>(base_logits[n]) - base_norm;
    const double log = static_cast<double>(logits[n]) - norm;
    divergence += std::exp(base_log) * (base_log - log);
  }
  const auto right = static_cast<size_t>(token);
  const double base_nll = base_norm - static_cast<double>(base_logits[right]);
  const double nll = norm - static_cast<double>(logits[right]);
  const auto top = [](std::span<const float> row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  return {.nll = nll,
          .base_nll = base_nll,
          // It cannot be negative; sums of rounded terms can.
          .divergence = std::max(divergence, 0.0),
          .probability_difference = std::exp(-nll) - std::exp(-base_nll),
          .has_same_top = top(base_logits) == top(logits)};
}

void ComparisonStats::Add(const RowComparison& row) {
  base_nll_.Add(row.base_nll);
  nll_difference_.Add(row.nll - row.base_nll);
  divergence_.Add(row.divergence);
  probability_difference_.Add(row.probability_difference);
  same_top_.Add(row.has_same_top ? 1 : 0);
  divergences_.push_back(row.divergence);
}

double ComparisonStats::DivergenceQuantile(double share) const {
  if (divergences_.empty()) {
    return 0;
  }
  std::vector<double> sorted = divergences_;
  std::sort(sorted.begin(), sorted.end());
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace facet
