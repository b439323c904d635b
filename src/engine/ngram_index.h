// SPDX-License-Identifier: Apache-2.0
// Guesses what follows a sequence's end from what followed the same tokens earlier in it: text that
// quotes, edits or lists repeats itself. No model is asked, so a guess costs next to nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace facet {

/// Of one sequence. Memory is linear in its tokens: a few bytes each.
class NgramIndex {
 public:
  static constexpr int kShortest = 2;  ///< tokens that must agree
  static constexpr int kLongest = 8;   ///< more are not compared

  struct Match {
    int n_agreeing = 0;               ///< tokens before the guess that agree; 0: no match
    std::span<const int32_t> drafts;  ///< into the tokens, at most as many as were asked for
  };

  /// Takes up what `tokens` has beyond what was taken up before; the rest is the same as then.
  void Extend(std::span<const int32_t> tokens);

  /// What followed the place that agrees longest with the end of `tokens`, all of which has been
  /// taken up; of several the last. Every token of the agreement is compared.
  [[nodiscard]] Match Find(std::span<const int32_t> tokens, int n_most) const;

 private:
  std::unordered_map<uint64_t, int32_t> last_;  ///< after the last place of each pair of tokens
  std::vector<int32_t> previous_;  ///< [position]: the place before with the same pair, or -1
};

}  // namespace facet
