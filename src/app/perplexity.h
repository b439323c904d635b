// SPDX-License-Identifier: Apache-2.0
// The arithmetic of `facet perplexity`: which tokens of a text are scored in which window, what the
// logits of a row say about the token that follows, and the statistics of many such tokens. Pure;
// docs/perplexity.md defines each number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace facet {

/// A stretch of the text that is run by itself: tokens [begin, end), of which [first_scored, end)
/// are scored.
struct TextWindow {
  int begin;
  int end;
  int first_scored;

  bool operator==(const TextWindow&) const = default;
};

struct WindowLayout {
  int n_tokens = 0;   ///< of the text
  int n_room = 0;     ///< tokens of the text in a window, at least 1
  int stride = 0;     ///< from the begin of one window to the next, at least 1
  int n_skipped = 0;  ///< at the begin of each window that are not scored, less than n_room
};

/// The windows that have tokens to score, in order. No token is scored twice; without skipping, and
/// with a stride of at most n_room, each is scored once, with at least n_room - stride tokens
/// before it except in the first window.
std::vector<TextWindow> PlanWindows(const WindowLayout& layout);

/// Mean of values that come one at a time, and how far it may be off.
class MeanEstimate {
 public:
  void Add(double value);
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] double mean() const { return mean_; }
  /// One standard deviation of the mean; 0 for fewer than two values.
  [[nodiscard]] double standard_error() const;

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double sum_of_squares_ = 0;  // of the distances from the mean
};

/// A number and one standard deviation of it.
struct Estimate {
  double value = 0;
  double error = 0;
};

Estimate ToEstimate(const MeanEstimate& mean);
/// exp of the mean: a perplexity from negative log-likelihoods, a ratio of two from differences.
Estimate ExpOf(const MeanEstimate& mean);

/// Log of the sum of exp(logits), which are not empty and finite.
double LogSumExp(std::span<const float> logits);

/// -log of the probability that `logits` [n_vocab] give to `token`.
double NegativeLogLikelihood(std::span<const float> logits, int token);

/// Two models at one row.
struct RowComparison {
  double nll;                     ///< of the model that is measured
  double base_nll;                ///< of the other
  double divergence;              ///< KL(base || measured), in nats
  double probability_difference;  ///< of the right token: measured - base
  bool has_same_top;
};

/// Both of [n_vocab].
RowComparison CompareRow(std::span<const float> base_logits, std::span<const float> logits,
                         int token);

/// The statistics of many rows.
class ComparisonStats {
 public:
  void Add(const RowComparison& row);

  [[nodiscard]] const MeanEstimate& base_nll() const { return base_nll_; }
  /// measured - base, token by token
  [[nodiscard]] const MeanEstimate& nll_difference() const { return nll_difference_; }
  [[nodiscard]] const MeanEstimate& divergence() const { return divergence_; }
  [[nodiscard]] const MeanEstimate& probability_difference() const {
    return probability_difference_;
  }
  [[nodiscard]] const MeanEstimate& same_top() const { return same_top_; }
  /// The divergence that a `share` (0 to 1) of the rows do not exceed, interpolated between rows; 0
  /// when there are none.
  [[nodiscard]] double DivergenceQuantile(double share) const;

 private:
  MeanEstimate base_nll_;
  MeanEstimate nll_difference_;
  MeanEstimate divergence_;
  MeanEstimate probability_difference_;
  MeanEstimate same_top_;
  std::vector<double> divergences_;
};

}  // namespace facet
