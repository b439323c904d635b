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
  std::vector<int32_t> ids(logits.size());
  for (size_t n = 0; n < ids.size(); ++n) {
    ids[n] = static_cast<int32_t>(n);
  }
  const auto end = ids.begin() + n_top;
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    const float left = logits[static_cast<size_t>(a)];
    const float right = logits[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
  result.top.reserve(static_cast<size_t>(n_top));
  std::transform(ids.begin(), end, std::back_inserter(result.top), of);
  return result;
}

}  // namespace facet
