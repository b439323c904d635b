// SPDX-License-Identifier: Apache-2.0
// Token ids back to text, as they come. Byte tokens give parts of characters, so text is released
// only in whole characters; a part that turns out to be broken becomes one U+FFFD.
#pragma once

#include <span>
#include <string>

#include "base/utf8.h"
#include "text/vocab.h"

namespace facet {

/// One for each reply; not for several threads.
class Detokenizer {
 public:
  /// The vocabulary must outlive it. With `skip_special` control and user-defined tokens add
  /// nothing, and do not end a character that is not yet complete.
  Detokenizer(const Vocab* vocab, bool skip_special) : vocab_(vocab), skip_special_(skip_special) {}

  /// Adds a token of the vocabulary; returns the text that can be released now.
  std::string Push(int id);
  /// The end of the reply: what was held back.
  std::string Flush();

 private:
  const Vocab* vocab_;
  bool skip_special_;
  Utf8Stream stream_;
  std::string held_;  // the beginning of what may be a surrogate
};

/// The text of all the ids.
std::string Decode(const Vocab& vocab, std::span<const int> ids, bool skip_special);

}  // namespace facet
