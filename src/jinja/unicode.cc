// SPDX-License-Identifier: Apache-2.0
#include "jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/utf8.h"

namespace facet::jinja {
namespace {

struct SpecialCase {
  char32_t character;
  std::u32string_view upper;
  std::u32string_view title;
};
constexpr SpecialCase kSpecialCases[] = {
#include "jinja/special_casing.inc"
};

const SpecialCase* FindSpecialCase(char32_t c) {
  const auto* found = std::lower_bound(
      std::begin(kSpecialCases), std::end(kSpecialCases), c,
      [](const SpecialCase& row, char32_t wanted) { return row.character < wanted; });
  return found != std::end(kSpecialCases) && found->character == c ? found : nullptr;
}

utf8proc_category_t CategoryOf(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool IsOneOf(char32_t c, std::u32string_view set) {
  return set.find(c) != std::u32string_view::npos;
}

}  // namespace

bool IsSpace(char32_t c) {
  if (c < 0x80) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  }
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsLineBreak(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool IsAlpha(char32_t c) {
  const auto category = CategoryOf(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDecimal(char32_t c) { return CategoryOf(c) == UTF8PROC_CATEGORY_ND; }

bool IsDigit(char32_t c) {
  // Superscripts, subscripts and circled digits carry the property Numeric_Type=Digit.
  return IsDecimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0x1369 && c <= 0x1371) ||
         c == 0x19DA || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) ||
         (c >= 0x2474 && c <= 0x247C) || (c >= 0x2488 && c <= 0x2490) || c == 0x24EA ||
         (c >= 0x24F5 && c <= 0x24FD) || c == 0x24FF || (c >= 0x2776 && c <= 0x277E) ||
         (c >= 0x2780 && c <= 0x2788) || (c >= 0x278A && c <= 0x2792);
}

bool IsNumeric(char32_t c) {
  const auto category = CategoryOf(c);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO || IsOneOf(c, U"零一二三四五六七八九十百千万億兆");
}

bool IsUpper(char32_t c) {
  // Beyond the letters: Roman numerals and circled letters (Other_Uppercase).
  return CategoryOf(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216F) ||
         (c >= 0x24B6 && c <= 0x24CF);
}

bool IsLower(char32_t c) {
  return CategoryOf(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA ||
         (c >= 0x02B0 && c <= 0x02B8) || (c >= 0x2170 && c <= 0x217F) ||
         (c >= 0x24D0 && c <= 0x24E9);
}

bool IsTitle(char32_t c) { return CategoryOf(c) == UTF8PROC_CATEGORY_LT; }

bool IsCaseIgnorable(char32_t c) {
  const auto category = CategoryOf(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK || IsOneOf(c, U"'.:·’‘․‧");
}

bool IsPrintable(char32_t c) {
  if (c < 0x7F) {
    return c >= 0x20;
  }
  switch (CategoryOf(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool IsIdentifierStart(char32_t c) {
  if (c < 0x80) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  return IsAlpha(c) || CategoryOf(c) == UTF8PROC_CATEGORY_NL;
}

bool IsIdentifierPart(char32_t c) {
  if (c < 0x80) {
    return IsIdentifierStart(c) || (c >= '0' && c <= '9');
  }
  const auto category = CategoryOf(c);
  return IsIdentifierStart(c) || category == UTF8PROC_CATEGORY_ND ||
         category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_PC;
}

void AppendUpper(std::string& out, char32_t c) {
  if (const SpecialCase* special = FindSpecialCase(c)) {
    std::for_each(special->upper.begin(), special->upper.end(),
                  [&out](char32_t part) { AppendUtf8(out, part); });
    return;
  }
  AppendUtf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void AppendLower(std::string& out, char32_t c) {
  AppendUtf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  if (c == 0x130) {  // the only character whose lower case is two: i and a combining dot
    AppendUtf8(out, 0x307);
  }
}

void AppendTitle(std::string& out, char32_t c) {
  if (const SpecialCase* special = FindSpecialCase(c)) {
    std::for_each(special->title.begin(), special->title.end(),
                  [&out](char32_t part) { AppendUtf8(out, part); });
    return;
  }
  AppendUtf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

}  // namespace facet::jinja
