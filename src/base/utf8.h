// SPDX-License-Identifier: Apache-2.0
// UTF-8: decoding, checking, repairing, and the streaming rule. A broken part counts once per
// maximal subpart, as Python and the web do (Unicode 15, section 3.9, "U+FFFD substitution of
// maximal subparts").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace facet {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

/// What stands at the start of `text` (which is not empty).
struct Utf8Step {
  enum class Kind { kCharacter, kBroken, kIncomplete };
  Kind kind;
  int size;  ///< bytes of the character, or of the maximal broken part; for kIncomplete all that is
             ///< left
  char32_t character;  ///< U+FFFD unless kCharacter
};
/// kIncomplete: `text` ends inside a character that could still be completed.
Utf8Step DecodeUtf8(std::string_view text);

bool IsValidUtf8(std::string_view text);

/// Each maximal broken part replaced by U+FFFD; an incomplete end too.
std::string RepairUtf8(std::string_view text);

void AppendUtf8(std::string& out, char32_t character);

/// Number of code points of valid UTF-8.
size_t CountCodePoints(std::string_view text);

/// Releases whole characters from bytes that arrive in pieces. A broken part becomes one U+FFFD as
/// soon as it is known to be broken. Not for several threads.
class Utf8Stream {
 public:
  /// Adds bytes; returns what can be released.
  std::string Push(std::string_view bytes);
  /// The end: an unfinished character becomes U+FFFD.
  std::string Flush();
  [[nodiscard]] bool has_pending() const { return !pending_.empty(); }

 private:
  std::string pending_;
};

}  // namespace facet
