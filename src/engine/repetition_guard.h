// SPDX-License-Identifier: Apache-2.0
// Notices that a reply is stuck in a loop: its end is one cycle of tokens over and over. The rule
// is about exact repetition only and wants a lot of it, since a table, a list of zeros or a drawing
// repeats for good reasons; docs/sampling.md states it for users.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace facet {

/// Of one reply. 64 comparisons per token.
class RepetitionGuard {
 public:
  static constexpr int kMaxPeriod = 64;   ///< tokens of the longest cycle that is noticed
  static constexpr int kMinCycles = 20;   ///< times it must have been said
  static constexpr int kMinTokens = 256;  ///< tokens that these must be in all

  /// `reply` has grown by its last token. True when its end is a cycle by the three numbers above.
  bool Push(std::span<const int32_t> reply);

 private:
  std::array<int32_t, kMaxPeriod>
      n_equal_{};  ///< [period - 1]: last tokens that each equal the one `period` before
};

}  // namespace facet
