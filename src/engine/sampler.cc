// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
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

/// Entries that share one value in Sampler::block_best_.
constexpr size_t kBlock = 64;
/// Values that are looked at side by side, so that compilers use vector registers.
constexpr size_t kLanes = 8;

/// No NaN and no +infinity.
bool IsSound(std::span<const float> logits) {
  int is_bad[kLanes] = {};
  const size_t n_whole = logits.size() / kLanes * kLanes;
  for (size_t at = 0; at < n_whole; at += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      is_bad[lane] |= logits[at + lane] < kInfinity ? 0 : 1;
    }
  }
  return std::all_of(is_bad, is_bad + kLanes, [](int bad) { return bad == 0; }) &&
         std::all_of(logits.begin() + static_cast<std::ptrdiff_t>(n_whole), logits.end(),
                     [](float logit) { return logit < kInfinity; });
}

float LargestOf(std::span<const float> values) {
  float best[kLanes];
  std::fill(best, best + kLanes, -kInfinity);
  const size_t n_whole = values.size() / kLanes * kLanes;
  for (size_t at = 0; at < n_whole; at += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      best[lane] = values[at + lane] > best[lane] ? values[at + lane] : best[lane];
    }
  }
  float largest = *std::max_element(best, best + kLanes);
  for (size_t at = n_whole; at < values.size(); ++at) {
    largest = std::max(largest, values[at]);
  }
  return largest;
}

std::span<const float> BlockOf(std::span<const float> scores, size_t block) {
  return scores.subspan(block * kBlock, std::min(kBlock, scores.size() - block * kBlock));
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

/// Fills scores_ (logits, suppression, bias, penalties), block_best_ and best_score_.
Status Sampler::Adjust(std::span<const float> logits) {
  if (!IsSound(logits)) {
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
  block_best_.resize((scores_.size() + kBlock - 1) / kBlock);
  for (size_t block = 0; block < block_best_.size(); ++block) {
    block_best_[block] = LargestOf(BlockOf(scores_, block));
  }
  best_score_ = LargestOf(block_best_);
  if (best_score_ == -kInfinity) {
    return Refuse("logits", "no token that can be drawn", "at least 1");
  }
  return {};
}

int32_t Sampler::Best() const {
  const auto block =
      std::find(block_best_.begin(), block_best_.end(), best_score_) - block_best_.begin();
  const auto first = scores_.begin() + block * static_cast<std::ptrdiff_t>(kBlock);
  return static_cast<int32_t>(std::find(first, scores_.end(), best_score_) - scores_.begin());
}

/// Fills candidates_ with all tokens whose score is not below the k-th largest; those at -infinity
/// never count.
void Sampler::SelectBest(size_t k) {
  // The k-th largest of the blocks' best cannot be above the k-th largest of all.
  float threshold = -kLargest;
  if (k < block_best_.size()) {
    block_order_ = block_best_;
    const auto kth = block_order_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(block_order_.begin(), kth, block_order_.end(), std::greater<>());
    threshold = std::max(threshold, *kth);
  }
  candidates_.clear();
  for (size_t block = 0; block < block_best_.size(); ++block) {
    if (block_best_[block] < threshold) {
      continue;
    }
    const size_t end = std::min((block + 1) * kBlock, scores_.size());
    for (size_t token = block * kBlock; token < end; ++token) {
      if (scores_[token] >= threshold) {
        candidates_.push_back({scores_[token], static_cast<int32_t>(token)});
      }
    }
  }
  if (candidates_.size() > k) {
    const auto kth = candidates_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(candidates_.begin(), kth, candidates_.end(), IsBefore);
    const float border = kth->score;
    std::erase_if(candidates_,
                  [&](const Candidate& candidate) { return candidate.score < border; });
  }
  std::sort(candidates_.begin(), candidates_.end(), IsBefore);
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
  SelectBest(n_selected_);
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
  SelectBest(n_selected_);
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
