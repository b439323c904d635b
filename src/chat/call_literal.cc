// SPDX-License-Identifier: Apache-2.0
#include "chat/call_literal.h"

#include "base/json.h"
#include "base/utf8.h"

namespace facet {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Takes digits off the front; returns whether there was one.
bool TakeDigits(std::string_view& text) {
  const size_t size = text.size();
  while (!text.empty() && IsDigit(text.front())) {
    text.remove_prefix(1);
  }
  return text.size() < size;
}

bool IsNumber(std::string_view text) {
  const std::string_view whole = text;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
  }
  const bool has_zero_first = text.size() > 1 && text[0] == '0' && IsDigit(text[1]);
  if (has_zero_first || !TakeDigits(text)) {
    return false;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!TakeDigits(text)) {
      return false;
    }
  }
  constexpr size_t kSafeDigits = 300;  // without an exponent: in the range of a double
  if (text.empty()) {
    return whole.size() <= kSafeDigits || ParseJson(whole, "number").ok();
  }
  if (text.front() != 'e' && text.front() != 'E') {
    return false;
  }
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) {
    text.remove_prefix(1);
  }
  return TakeDigits(text) && text.empty() && ParseJson(whole, "number").ok();
}

/// Of four hexadecimal digits, or -1.
int ReadHex(std::string_view text) {
  if (text.size() < 4) {
    return -1;
  }
  int value = 0;
  for (const char c : text.substr(0, 4)) {
    const bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!is_letter && !IsDigit(c)) {
      return -1;
    }
    value = value * 16 + (is_letter ? (c | 0x20) - 'a' + 10 : c - '0');
  }
  return value;
}

/// Appends the character of \uXXXX, of which `text` holds what follows the u. Returns how many
/// bytes of it were read; 0: it is no escape.
size_t AppendUnicodeEscape(std::string_view text, std::string& out) {
  const int first = ReadHex(text);
  if (first < 0) {
    return 0;
  }
  const bool is_high = first >= 0xD800 && first < 0xDC00;
  const int second = is_high && text.substr(4).starts_with("\\u") ? ReadHex(text.substr(6)) : -1;
  if (second >= 0xDC00 && second < 0xE000) {
    AppendUtf8(out, static_cast<char32_t>(0x10000 + (first - 0xD800) * 0x400 + second - 0xDC00));
    return 10;
  }
  const bool is_lone = first >= 0xD800 && first < 0xE000;
  AppendUtf8(out, is_lone ? kReplacementCharacter : static_cast<char32_t>(first));
  return 4;
}

}  // namespace

std::optional<Literal> ReadLiteral(std::string_view text) {
  struct Word {
    std::string_view text;
    ValueSchema::Type type;
    std::string_view json;
  };
  constexpr Word kWords[] = {
      {"true", ValueSchema::kBoolean, "true"},   {"false", ValueSchema::kBoolean, "false"},
      {"null", ValueSchema::kNull, "null"},      {"True", ValueSchema::kBoolean, "true"},
      {"False", ValueSchema::kBoolean, "false"}, {"None", ValueSchema::kNull, "null"},
  };
  for (const Word& word : kWords) {
    if (text == word.text) {
      return Literal{word.type, word.json, word.text == word.json};
    }
  }
  return IsNumber(text) ? std::optional(Literal{ValueSchema::kNumber, text, true}) : std::nullopt;
}

std::optional<Literal> ReadJson(std::string_view text, int max_depth) {
  const bool is_array = text.starts_with('[');
  if (!is_array && !text.starts_with('{')) {
    return ReadLiteral(text);
  }
  JsonLimits limits;
  limits.max_depth = max_depth;
  if (!ParseJson(text, "value", limits).ok()) {
    return std::nullopt;
  }
  return Literal{is_array ? ValueSchema::kArray : ValueSchema::kObject, text, true};
}

std::string UnescapeJson(std::string_view text) {
  constexpr std::string_view kLetters = "\"'\\/bfnrt";
  constexpr std::string_view kCharacters = "\"'\\/\b\f\n\r\t";
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size(); ++pos) {
    const bool is_escape = text[pos] == '\\' && pos + 1 < text.size();
    const size_t letter = is_escape ? kLetters.find(text[pos + 1]) : std::string_view::npos;
    if (letter != std::string_view::npos) {
      out += kCharacters[letter];
      ++pos;
    } else if (const size_t n_read = is_escape && text[pos + 1] == 'u'
                                         ? AppendUnicodeEscape(text.substr(pos + 2), out)
                                         : 0) {
      pos += 1 + n_read;
    } else {
      out += text[pos];
    }
  }
  return out;
}

}  // namespace facet
