// SPDX-License-Identifier: Apache-2.0
// From logits to a token. Order and definitions of the steps stand in docs/sampling.md; here they
// are arranged so that a token costs a pass or two over the vocabulary and never a sort of it. The
// draw takes its randomness from (seed, position) alone: what else runs cannot change a reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/request.h"

namespace facet {

/// The steps in their order.
enum class SamplingStep {
  kLogits,
  kLogitBias,
  kRepetitionPenalty,
  kPresenceFrequency,
  kTemperature,
  kTopK,
  kTopP,
  kMinP
};

/// `params` with all steps after `last` switched off: the distribution after a step is the whole
/// sampler's with these. Before kTemperature the temperature is 1.
SamplingParams UpTo(SamplingParams params, SamplingStep last);

/// A token that can still be drawn.
struct Candidate {
  float score;
  int32_t token;
};

/// Draws the tokens of one sequence. Not for several threads. Params must have passed CheckRequest.
class Sampler {
 public:
  /// `suppressed` are never drawn; `prompt` counts for the repetition penalty.
  Sampler(SamplingParams params, std::vector<int32_t> suppressed, std::span<const int32_t> prompt);

  /// The token at absolute position `position`, drawn from `logits` [n_vocab] of the row before it.
  /// An Error when they hold a NaN or +infinity, or when no token is left. Does not count the
  /// token: Accept does.
  Result<int32_t> Draw(std::span<const float> logits, int position);

  /// Counts a token of the reply for the penalties.
  void Accept(int32_t token);

  /// From now on `token` is never drawn.
  void Suppress(int32_t token) { suppressed_.push_back(token); }

  /// Probability of each token [n_vocab] that Draw would draw with; removed tokens have exactly 0.
  Result<std::vector<double>> Distribution(std::span<const float> logits);

 private:
  Status Adjust(std::span<const float> logits);
  [[nodiscard]] int32_t Best() const;
  int32_t DrawFrom(double uniform);
  void SelectBest(size_t k);
  void Select();
  bool SelectMore();
  [[nodiscard]] double Weight(float score) const;
  size_t Keep(double uniform, double& sum);

  SamplingParams params_;
  std::vector<int32_t> suppressed_;
  std::unordered_map<int32_t, int>
      counts_;  ///< times in the reply; tokens of the prompt only are there with 0

  // State of one draw, kept for its memory.
  std::vector<float> scores_;          ///< [n_vocab] after the penalties
  std::vector<float> block_best_;      ///< the largest of each block of scores_
  std::vector<float> block_order_;     ///< scratch: block_best_ in part sorted
  std::vector<Candidate> candidates_;  ///< descending score, lowest id first: the best of scores_
  size_t n_selected_ = 0;              ///< how many candidates_ were asked for
  float best_score_ = 0;
};

}  // namespace facet
