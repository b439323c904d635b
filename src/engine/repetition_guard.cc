// SPDX-License-Identifier: Apache-2.0
#include "engine/repetition_guard.h"

#include <algorithm>

namespace facet {

bool RepetitionGuard::Push(std::span<const int32_t> reply) {
  const size_t last = reply.size() - 1;
  const size_t n_periods = std::min(last, size_t{kMaxPeriod});
  bool is_stuck = false;
  for (size_t period = 1; period <= n_periods; ++period) {
    int32_t& n_equal = n_equal_[period - 1];
    n_equal = reply[last] == reply[last - period] ? n_equal + 1 : 0;
    const auto n_period = static_cast<int32_t>(period);
    is_stuck |= n_equal + n_period >= std::max(kMinTokens, kMinCycles * n_period);
  }
  return is_stuck;
}

}  // namespace facet
