// SPDX-License-Identifier: Apache-2.0
// Guesses what follows a sequence's end from what followed the same tokens earlier in it: text that
// quotes, edits or lists repeats itself. No model is asked, so a guess costs next to nothing.
//
// Places with the same two tokens before them form a chain, the newest first. A table finds the
// head of a pair's chain; it holds places, not tokens, and every comparison is of the tokens
// themselves, so tokens that were chosen to collide can hide each other and do no other harm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace facet {

/// Of one sequence. Memory is linear: at most kMaxBytesPerToken a token, once there are a few.
class NgramIndex {
 public:
  static constexpr int kShortest = 2;    ///< tokens that must agree
  static constexpr int kLongest = 8;     ///< more are not compared
  static constexpr int kMaxPlaces = 32;  ///< places that a search looks at, the newest
  static constexpr size_t kMaxBytesPerToken = 24;

  struct Match {
    int n_agreeing = 0;           ///< tokens before the guess that agree; 0: no match
    std::vector<int32_t> drafts;  ///< as many as were asked for; none without a match
  };

  /// Takes up what `tokens` has beyond what was taken up before; the rest is the same as then.
  /// Constant time a token, on average over a sequence.
  void Extend(std::span<const int32_t> tokens);

  /// What followed the place that agrees longest with the end of `tokens`, all of which has been
  /// taken up; of several the newest. A guess that reaches the end goes on with its own tokens: a
  /// text that ends "abcabc" is expected to say "abcabcabc...". `n_most` is at least 0.
  [[nodiscard]] Match Find(std::span<const int32_t> tokens, int n_most) const;

  [[nodiscard]] size_t n_bytes() const;  ///< of memory that it holds

 private:
  /// The newest place after the pair before `place`, and this place in its stead; -1: none.
  int32_t Exchange(std::span<const int32_t> tokens, int32_t place);
  void Grow(std::span<const int32_t> tokens);

  std::vector<int32_t> heads_;     ///< [slot]: newest place of a pair, or -1; size a power of two
  size_t n_heads_ = 0;             ///< slots in use, at most half
  std::vector<int32_t> previous_;  ///< [place]: the place before with the same pair, or -1
};

}  // namespace facet
