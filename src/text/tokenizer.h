// SPDX-License-Identifier: Apache-2.0
// Text to token ids: special tokens first, then byte-pair merges over each whole stretch between
// them, with single bytes where a character is no token. Exactly the ids of the reference
// tokenizer. Where special tokens may be recognised is said per run of text, so that markers typed
// by a user stay text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/join_filter.h"
#include "text/special_matcher.h"
#include "text/vocab.h"

namespace facet {

class PairMerger;

/// A piece of a prompt. With parse_special off, the text of a control token inside it stays text.
struct TextRun {
  std::string text;
  bool parse_special;
};

/// Its methods may be called by several threads at once. Time is O(n log n) in the bytes of the
/// input, which must be below 2^31; nothing recurses.
class Tokenizer {
 public:
  /// The vocabulary must outlive the tokenizer.
  explicit Tokenizer(const Vocab* vocab);

  /// Broken UTF-8 is repaired first: one U+FFFD for each maximal broken part. Never adds bos.
  [[nodiscard]] std::vector<int> Encode(std::string_view text, bool parse_special) const;
  /// As if the runs were one text, except that a special token is recognised only where all of its
  /// bytes lie in runs that allow it. A character must not be cut by the border of two runs.
  [[nodiscard]] std::vector<int> Encode(std::span<const TextRun> runs) const;

 private:
  /// Bytes up to `end` (from the end of the part before) in which specials are parsed, or not.
  struct Part {
    size_t end;
    bool parse_special;
  };
  [[nodiscard]] std::vector<int> EncodeParts(std::string_view text,
                                             std::span<const Part> parts) const;
  void EncodeStretch(std::string_view text, PairMerger& merger, std::vector<int>& ids) const;
  bool AddPieces(std::string_view character, bool is_after_unknown,
                 std::vector<int32_t>& pieces) const;
  [[nodiscard]] int32_t PieceOf(std::string_view character) const;

  const Vocab* vocab_;
  SpecialMatcher specials_;
  JoinFilter joins_;
  std::array<int32_t, 128> ascii_pieces_ = {};  // ids, or -1
};

}  // namespace facet
