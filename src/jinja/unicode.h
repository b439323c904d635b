// SPDX-License-Identifier: Apache-2.0
// Python's questions about characters (str.isalpha, str.upper, ...), answered from utf8proc's
// tables. The only file that knows utf8proc. Case mappings that give several characters are not in
// utf8proc's simple mappings; they are a table here.
#pragma once

#include <string>

namespace facet::jinja {

bool IsSpace(char32_t c);      ///< str.isspace, str.strip, str.split
bool IsLineBreak(char32_t c);  ///< str.splitlines
bool IsAlpha(char32_t c);
bool IsDecimal(char32_t c);
bool IsDigit(char32_t c);
bool IsNumeric(char32_t c);
bool IsUpper(char32_t c);
bool IsLower(char32_t c);
bool IsTitle(char32_t c);  ///< a letter like U+01C5
bool IsCaseIgnorable(char32_t c);
bool IsPrintable(char32_t c);  ///< shown as it is by Python's repr
bool IsIdentifierStart(char32_t c);
bool IsIdentifierPart(char32_t c);

/// Append the full mapping of one character, without context (final sigma is the caller's).
void AppendUpper(std::string& out, char32_t c);
void AppendLower(std::string& out, char32_t c);
void AppendTitle(std::string& out, char32_t c);

}  // namespace facet::jinja
