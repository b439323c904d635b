// SPDX-License-Identifier: Apache-2.0
// What the model thought of the tokens: logarithms of the softmax of its logits, before penalties,
// temperature and filters change them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace facet {

struct TokenLogprobs {
  TokenLogprob drawn;
  std::vector<TokenLogprob> top;  ///< likeliest first, lowest id first among equals
};

/// Of the row that `token` was drawn from. `logits` hold neither NaN nor +infinity, and something
/// finite; `n_top` is at most their number.
TokenLogprobs ComputeLogprobs(std::span<const float> logits, int32_t token, int n_top);

}  // namespace facet
