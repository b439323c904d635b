// SPDX-License-Identifier: Apache-2.0
// Python's operations on strings, on text with origins: case, stripping, splitting, replacing.
// Shared by the methods of str and by the filters. All are linear in the text. Callers pay from the
// budget before they call.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "jinja/value.h"

namespace facet::jinja {

enum class CaseKind : uint8_t { kUpper, kLower, kTitle };

/// As string_view::find, but linear in the worst case too.
size_t FindText(std::string_view text, std::string_view wanted, size_t from);

/// Each character through `map`, which appends what replaces it; that gets the origin of the
/// character.
MarkedString MapCharacters(const MarkedString& text,
                           const std::function<void(std::string&, char32_t)>& map);

MarkedString Upper(const MarkedString& text);
MarkedString Lower(const MarkedString& text);
/// First character in title case, the rest lower.
MarkedString Capitalize(const MarkedString& text);
/// str.title: each run of letters.
MarkedString Title(const MarkedString& text);
MarkedString SwapCase(const MarkedString& text);

/// str.isupper, str.islower, str.istitle
bool HasCase(std::string_view text, CaseKind kind);

struct StripSides {
  bool left = true;
  bool right = true;
};
/// Removes white space, or the characters of `set` when given.
MarkedString Strip(const MarkedString& text, const std::optional<std::string>& set,
                   StripSides sides);

/// Byte ranges of the pieces. `limit` < 0: no limit.
using Pieces = std::vector<std::pair<size_t, size_t>>;
Pieces SplitSpace(std::string_view text, int64_t limit, bool from_right);
/// `separator` is not empty.
Pieces SplitAt(std::string_view text, std::string_view separator, int64_t limit, bool from_right);
Pieces SplitLines(std::string_view text, bool keeps_ends);

/// At most `limit` replacements; below 0 all.
Result<MarkedString> Replace(const MarkedString& text, const MarkedString& old_text,
                             const MarkedString& new_text, int64_t limit, Budget& budget);

/// Pads to `width` characters with `fill`.
Result<MarkedString> Pad(const Text& text, int64_t width, const MarkedString& fill, char align,
                         Budget& budget);

/// Python's int(text, base) and float(text); nothing when the text is no number.
std::optional<Value> ParseInteger(std::string_view text, int64_t base);
std::optional<double> ParseFloat(std::string_view text);

}  // namespace facet::jinja
