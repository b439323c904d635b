// SPDX-License-Identifier: Apache-2.0
// Ends a reply at a stop text, wherever tokens divide it. Works on bytes: a stop text may begin and
// end inside tokens. What could still become the beginning of a stop text is held back, so that no
// byte of one is ever released. One Knuth-Morris-Pratt automaton per text: constant work per byte
// and text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace facet {

/// A token and what it adds to the text.
struct TextPiece {
  int32_t token = -1;
  std::string bytes;
};

/// Of one reply. Not for several threads.
class StopMatcher {
 public:
  /// None of `stops` is empty.
  explicit StopMatcher(std::vector<std::string> stops);

  /// Adds a token; appends to `released`, in order, the tokens that no longer can belong to a stop
  /// text. True when a stop text is complete: the one that is complete first counts, of several at
  /// the same byte the longest. Then all before it is released, a token that it begins in with its
  /// bytes cut, and nothing may be pushed any more.
  bool Push(int32_t token, std::string_view bytes, std::vector<TextPiece>& released);

  /// The reply ended otherwise: releases what is held.
  void Flush(std::vector<TextPiece>& released);

 private:
  struct Pattern {
    std::string text;
    std::vector<int32_t> borders;  ///< [text.size()]: longest proper border of each prefix
    size_t n_matched = 0;
  };
  struct Held {
    TextPiece piece;
    size_t begin;  ///< offset of its bytes in the reply
  };

  size_t Advance(char byte);
  void Release(size_t end, std::vector<TextPiece>& released);

  std::vector<Pattern> patterns_;
  std::deque<Held> held_;
  size_t n_bytes_ = 0;  ///< of the reply so far
};

}  // namespace facet
