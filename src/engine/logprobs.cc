// SPDX-License-Identifier: Apache-2.0
#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace facet {

TokenLogprobs ComputeLogprobs(std::span<const float> logits, int32_t token, int n_top) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(logit - most);
  }
  const double log_sum = std::log(sum);
  const auto of = [&](int32_t id) {
    // In this order nothing is lost where logits are large.
    const double logprob = logits[static_cast<size_t>(id)] - most - log_sum;
    return TokenLogprob{id, static_cast<float>(logprob)};
  };
  TokenLogprobs result{of(token), {}};
  const auto is_likelier = [&](int32_t a, int32_t b) {
    const float left = logits[static_cast<size_t>(a)];
    const float right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  };
  std::vector<int32_t> best;  // a heap, of which the front is the least likely
  best.reserve(static_cast<size_t>(n_top) + 1);
  for (int32_t id = 0; n_top > 0 && id < static_cast<int32_t>(logits.size()); ++id) {
    const bool is_full = best.size() == static_cast<size_t>(n_top);
    if (is_full && !is_likelier(id, best.front())) {
      continue;
    }
    if (is_full) {
      std::pop_heap(best.begin(), best.end(), is_likelier);
      best.pop_back();
    }
    best.push_back(id);
    std::push_heap(best.begin(), best.end(), is_likelier);
  }
  std::sort_heap(best.begin(), best.end(), is_likelier);
  result.top.reserve(best.size());
  std::transform(best.begin(), best.end(), std::back_inserter(result.top), of);
  return result;
}

}  // namespace facet
