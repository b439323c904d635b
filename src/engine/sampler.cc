// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace facet {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

/// Without top-k, so many of the best tokens are looked at first; most draws end among them.
constexpr size_t kFirstSelection = 1024;
constexpr size_t kSelectionGrowth = 16;

/// In place of a uniform number: above all of them, so that no draw is decided.
constexpr double kNoDraw = 2;

bool IsBefore(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

/// All entries of `scores` that are not below the k-th largest, in descending order. One pass: the
/// threshold rises whenever twice as many as needed have gathered. Entries of -infinity never
/// count.
void SelectBest(std::span<const float> scores, size_t k, std::vector<Candidate>& best) {
  best.clear();
  float threshold = -kLargest;
  size_t n_most = 2 * k;
  const auto shrink = [&] {
    const auto kth = best.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(best.begin(), kth, best.end(), IsBefore);
    threshold = kth->score;
    std::erase_if(best, [&](const Candidate& candidate) { return candidate.score < threshold; });
  };
  for (size_t token = 0; token < scores.size(); ++token) {
    if (scores[token] >= threshold) {
      best.push_back({scores[token], static_cast<int32_t>(token)});
      if (best.size() >= n_most) {
        shrink();
        n_most = std::max(n_most, 2 * best.size());  // many ties at the border: all are kept
      }
    }
  }
  if (best.size() > k) {
    shrink();
  }
  std::sort(best.begin(), best.end(), IsBefore);
}

}  // namespace

SamplingParams UpTo(SamplingParams params, SamplingStep last) {
  // Each step's "off" is said where it is: 1 for factors and top-p, 0 for all else.
  if (last < SamplingStep::kLogitBias) {
    params.logit_bias.clear();
  }
  if (last < SamplingStep::kRepetitionPenalty) {
    params.repetition_penalty = 1;
  }
  if (last < SamplingStep::kPresenceFrequency) {
    params.presence_penalty = 0;
    params.frequency_penalty = 0;
  }
  if (last < SamplingStep::kTemperature) {
    params.temperature = 1;
  }
  if (last < SamplingStep::kTopK) {
    params.top_k = 0;
  }
  if (last < SamplingStep::kTopP) {
    params.top_p = 1;
  }
  if (last < SamplingStep::kMinP) {
    params.min_p = 0;
  }
  return params;
}

Sampler::Sampler(SamplingParams params, std::vector<int32_t> suppressed,
                 std::span<const int32_t> prompt)
    : params_(std::move(params)), suppressed_(std::move(suppressed)) {
  if (params_.repetition_penalty != 1) {
    for (const int32_t token : prompt) {
      counts_.try_emplace(token, 0);
    }
  }
}

void Sampler::Accept(int32_t token) { ++counts_[token]; }

/// Fills scores_ (logits, suppression, bias, penalties) and best_score_.
Status Sampler::Adjust(std::span<const float> logits) {
  bool is_sound = true;
  for (const float logit : logits) {
    is_sound &= logit < kInfinity;  // also false for a NaN
  }
  if (!is_sound) {
    const auto bad = std::find_if(logits.begin(), logits.end(),
                                  [](float logit) { return !(logit < kInfinity); });
    return Refuse("logits", fmt::format("{} at token {}", *bad, bad - logits.begin()),
                  "finite numbers");
  }
  scores_.assign(logits.begin(), logits.end());
  for (const int32_t token : suppressed_) {
    scores_[static_cast<size_t>(token)] = -kInfinity;
  }
  for (const auto& [token, bias] : params_.logit_bias) {
    scores_[static_cast<size_t>(token)] += bias;
  }
  const float penalty = params_.repetition_penalty;
  if (penalty != 1 || params_.presence_penalty != 0 || params_.frequency_penalty != 0) {
    for (const auto& [token, count] : counts_) {
      float& score = scores_[static_cast<size_t>(token)];
      if (penalty != 1) {
        score = score < 0 ? score * penalty : score / penalty;
      }
      if (count > 0) {
        score -= static_cast<float>(count) * params_.frequency_penalty + params_.presence_penalty;
      }
      score = std::min(score, kLargest);  // a tiny penalty divides past the largest float
    }
  }
  best_score_ = *std::max_element(scores_.begin(), scores_.end());
  if (best_score_ == -kInfinity) {
    return Refuse("logits", "no token that can be drawn", "at least 1");
  }
  return {};
}

int32_t Sampler::Best() const {
  return static_cast<int32_t>(std::find(scores_.begin(), scores_.end(), best_score_) -
                              scores_.begin());
}

/// Relative to the best token's 1. In double, so that large scores and small temperatures stay
/// exact enough.
double Sampler::Weight(float score) const {
  return std::exp((double{score} - double{best_score_}) / double{params_.temperature});
}

/// The first candidates of a draw: top-k's, or so many that they probably suffice.
void Sampler::Select() {
  const bool has_top_k = params_.top_k > 0 && static_cast<size_t>(params_.top_k) < scores_.size();
  n_selected_ =
      has_top_k ? static_cast<size_t>(params_.top_k) : std::min(kFirstSelection, scores_.size());
  SelectBest(scores_, n_selected_, candidates_);
  if (has_top_k) {
    n_selected_ = scores_.size();  // no more may come
  }
}

/// Extends candidates_ downwards; false when there are no more. What is there keeps its place.
bool Sampler::SelectMore() {
  if (n_selected_ >= scores_.size()) {
    return false;
  }
  const size_t n_before = candidates_.size();
  n_selected_ = std::min(n_selected_ * kSelectionGrowth, scores_.size());
  SelectBest(scores_, n_selected_, candidates_);
  return candidates_.size() > n_before;
}

/// How many candidates top-p and min-p leave; `sum` becomes their weight. Without both, stops as
/// soon as the sum decides a draw with `uniform`, and `sum` is the weight of all tokens.
size_t Sampler::Keep(double uniform, double& sum) {
  Select();
  double total = 0;
  const bool is_filtered = params_.top_p < 1 || params_.min_p > 0;
  const bool has_all = n_selected_ >= scores_.size();
  if (has_all) {
    for (const Candidate& candidate : candidates_) {
      total += Weight(candidate.score);
    }
  } else if (!is_filtered || params_.top_p < 1) {
    for (const float score : scores_) {
      total += Weight(score);
    }
  }
  sum = 0;
  size_t n_kept = 0;
  while (n_kept < candidates_.size() || SelectMore()) {
    const double weight = Weight(candidates_[n_kept].score);
    const bool is_past_top_p = params_.top_p < 1 && sum >= double{params_.top_p} * total;
    if (n_kept > 0 && (is_past_top_p || weight < double{params_.min_p} || weight == 0)) {
      break;
    }
    sum += weight;
    ++n_kept;
    if (!is_filtered && sum > uniform * total) {
      break;
    }
  }
  if (!is_filtered) {
    sum = total;
  }
  return n_kept;
}

/// Inverse distribution function over the kept candidates, from the most probable down.
int32_t Sampler::DrawFrom(double uniform) {
  double sum = 0;
  const size_t n_kept = Keep(uniform, sum);
  const double target = uniform * sum;
  double reached = 0;
  for (size_t n = 0; n < n_kept; ++n) {
    reached += Weight(candidates_[n].score);
    if (reached > target) {
      return candidates_[n].token;
    }
  }
  // Only rounding leads here: the total was added in another order than `reached`.
  return candidates_[n_kept - 1].token;
}

Result<int32_t> Sampler::Draw(std::span<const float> logits, int position) {
  FACET_RETURN_IF_ERROR(Adjust(logits));
  if (params_.temperature == 0) {
    return Best();
  }
  return DrawFrom(RandomUniform(params_.seed, static_cast<uint64_t>(position)));
}

Result<std::vector<double>> Sampler::Distribution(std::span<const float> logits) {
  FACET_RETURN_IF_ERROR(Adjust(logits));
  std::vector<double> probabilities(scores_.size());
  if (params_.temperature == 0) {
    probabilities[static_cast<size_t>(Best())] = 1;
    return probabilities;
  }
  double sum = 0;
  const size_t n_kept = Keep(kNoDraw, sum);
  for (size_t n = 0; n < n_kept; ++n) {
    probabilities[static_cast<size_t>(candidates_[n].token)] = Weight(candidates_[n].score) / sum;
  }
  return probabilities;
}

}  // namespace facet
