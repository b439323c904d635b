// SPDX-License-Identifier: Apache-2.0
// Text as a person counts it: grapheme clusters, and the terminal columns they take. The only file
// that knows utf8proc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace facet {

/// Byte position after the grapheme cluster that begins at `pos`; `text` is valid UTF-8, pos <
/// size.
size_t NextGrapheme(std::string_view text, size_t pos);
/// Byte position of the grapheme cluster that ends at `pos` > 0.
size_t PreviousGrapheme(std::string_view text, size_t pos);

/// Columns of one grapheme cluster as ShownText shows it.
int GraphemeWidth(std::string_view grapheme);

/// Text that may be sent to a terminal: control characters (escape sequences begin with them)
/// become visible, ^[ for ESC; line breaks stay, tabs become four blanks, carriage returns vanish.
std::string ShownText(std::string_view text);
/// The same on one line: line breaks become blanks.
std::string ShownLine(std::string_view text);

}  // namespace facet
