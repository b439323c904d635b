// SPDX-License-Identifier: Apache-2.0
#include "jinja/text_ops.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/utf8.h"
#include "jinja/unicode.h"

namespace facet::jinja {
namespace {

/// The character that starts at `at`, and where it ends.
struct Step {
  char32_t character;
  size_t end;
};

Step StepAt(std::string_view text, size_t at) {
  const Utf8Step step = DecodeUtf8(text.substr(at, 4));
  return {step.character, at + static_cast<size_t>(step.size)};
}

/// The character that ends at `end`, and where it begins.
Step StepBefore(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0u) == 0x80u) {
    --begin;
  }
  return {DecodeUtf8(text.substr(begin, 4)).character, begin};
}

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c) || IsTitle(c); }

constexpr char32_t kSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

/// Whether the sigma in [begin, end) ends a word: a letter before it, none after it.
bool IsFinalSigma(std::string_view text, size_t begin, size_t end) {
  bool has_letter_before = false;
  while (begin > 0) {
    const Step step = StepBefore(text, begin);
    begin = step.end;
    if (!IsCaseIgnorable(step.character)) {
      has_letter_before = IsCased(step.character);
      break;
    }
  }
  while (end < text.size()) {
    const Step step = StepAt(text, end);
    end = step.end;
    if (!IsCaseIgnorable(step.character)) {
      return has_letter_before && !IsCased(step.character);
    }
  }
  return has_letter_before;
}

/// `map` gets the text, the range of the character and the character.
template <typename Map>
MarkedString MapInContext(const MarkedString& source, Map map) {
  MarkedString out;
  out.Reserve(source.size());
  const std::string_view text = source.text();
  std::string mapped;
  size_t kept = 0;  // [kept, at) goes out unchanged, in one piece
  for (size_t at = 0; at < text.size();) {
    const Step step = StepAt(text, at);
    mapped.clear();
    map(mapped, text, at, step);
    if (std::string_view(mapped) != text.substr(at, step.end - at)) {
      out.Append(source, kept, at);
      out.Append(mapped, source.OriginAt(at));
      kept = step.end;
    }
    at = step.end;
  }
  out.Append(source, kept, text.size());
  return out;
}

void AppendLowerAt(std::string& out, std::string_view text, size_t at, const Step& step) {
  if (step.character == kSigma && IsFinalSigma(text, at, step.end)) {
    AppendUtf8(out, kFinalSigma);
  } else {
    AppendLower(out, step.character);
  }
}

bool IsInSet(char32_t c, const std::optional<std::string>& set) {
  if (!set.has_value()) {
    return IsSpace(c);
  }
  std::string bytes;
  AppendUtf8(bytes, c);
  return set->find(bytes) != std::string::npos;
}

}  // namespace

size_t FindText(std::string_view text, std::string_view wanted, size_t from) {
  if (from > text.size()) {
    return std::string_view::npos;
  }
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

MarkedString MapCharacters(const MarkedString& text,
                           const std::function<void(std::string&, char32_t)>& map) {
  return MapInContext(text, [&map](std::string& out, std::string_view, size_t, const Step& step) {
    map(out, step.character);
  });
}

MarkedString Upper(const MarkedString& text) { return MapCharacters(text, AppendUpper); }

MarkedString Lower(const MarkedString& text) { return MapInContext(text, AppendLowerAt); }

MarkedString Capitalize(const MarkedString& text) {
  return MapInContext(text,
                      [](std::string& out, std::string_view all, size_t at, const Step& step) {
                        if (at == 0) {
                          AppendTitle(out, step.character);
                        } else {
                          AppendLowerAt(out, all, at, step);
                        }
                      });
}

MarkedString Title(const MarkedString& text) {
  bool is_inside = false;
  return MapInContext(
      text, [&is_inside](std::string& out, std::string_view all, size_t at, const Step& step) {
        if (is_inside) {
          AppendLowerAt(out, all, at, step);
        } else {
          AppendTitle(out, step.character);
        }
        is_inside = IsCased(step.character);
      });
}

MarkedString SwapCase(const MarkedString& text) {
  return MapInContext(text,
                      [](std::string& out, std::string_view all, size_t at, const Step& step) {
                        if (IsUpper(step.character)) {
                          AppendLowerAt(out, all, at, step);
                        } else if (IsLower(step.character)) {
                          AppendUpper(out, step.character);
                        } else {
                          AppendUtf8(out, step.character);
                        }
                      });
}

bool HasCase(std::string_view text, CaseKind kind) {
  bool has_cased = false;
  bool is_inside = false;
  for (size_t at = 0; at < text.size();) {
    const Step step = StepAt(text, at);
    at = step.end;
    const char32_t c = step.character;
    const bool is_high = IsUpper(c) || IsTitle(c);
    if (kind == CaseKind::kTitle) {
      if ((is_high && is_inside) || (IsLower(c) && !is_inside)) {
        return false;
      }
      is_inside = IsCased(c);
    } else if (IsTitle(c) || (kind == CaseKind::kUpper ? IsLower(c) : IsUpper(c))) {
      return false;
    }
    has_cased = has_cased || IsCased(c);
  }
  return has_cased;
}

MarkedString Strip(const MarkedString& text, const std::optional<std::string>& set,
                   StripSides sides) {
  size_t begin = 0;
  size_t end = text.size();
  while (sides.left && begin < end) {
    const Step step = StepAt(text.text(), begin);
    if (!IsInSet(step.character, set)) {
      break;
    }
    begin = step.end;
  }
  while (sides.right && begin < end) {
    const Step step = StepBefore(text.text(), end);
    if (!IsInSet(step.character, set)) {
      break;
    }
    end = step.end;
  }
  return text.Substring(begin, end);
}

Pieces SplitSpace(std::string_view text, int64_t limit, bool from_right) {
  Pieces pieces;
  size_t begin = 0;
  size_t end = text.size();
  // Both directions strip the side they come from, cut one word off, and end with a rest stripped
  // on that side.
  while (true) {
    while (begin < end &&
           IsSpace(from_right ? StepBefore(text, end).character : StepAt(text, begin).character)) {
      (from_right ? end : begin) = from_right ? StepBefore(text, end).end : StepAt(text, begin).end;
    }
    if (begin == end) {
      break;
    }
    if (limit >= 0 && static_cast<int64_t>(pieces.size()) >= limit) {
      pieces.emplace_back(begin, end);  // its far side is not stripped
      break;
    }
    size_t at = from_right ? end : begin;
    while (from_right ? at > begin && !IsSpace(StepBefore(text, at).character)
                      : at < end && !IsSpace(StepAt(text, at).character)) {
      at = from_right ? StepBefore(text, at).end : StepAt(text, at).end;
    }
    pieces.emplace_back(from_right ? at : begin, from_right ? end : at);
    (from_right ? end : begin) = at;
  }
  if (from_right) {
    std::reverse(pieces.begin(), pieces.end());
  }
  return pieces;
}

Pieces SplitAt(std::string_view text, std::string_view separator, int64_t limit, bool from_right) {
  Pieces pieces;
  size_t begin = 0;
  size_t end = text.size();
  while (limit < 0 || static_cast<int64_t>(pieces.size()) < limit) {
    if (from_right) {
      const size_t found = end >= separator.size() ? text.rfind(separator, end - separator.size())
                                                   : std::string_view::npos;
      if (found == std::string_view::npos) {
        break;
      }
      pieces.emplace_back(found + separator.size(), end);
      end = found;
    } else {
      const size_t found = FindText(text, separator, begin);
      if (found == std::string_view::npos) {
        break;
      }
      pieces.emplace_back(begin, found);
      begin = found + separator.size();
    }
  }
  pieces.emplace_back(begin, end);
  if (from_right) {
    std::reverse(pieces.begin(), pieces.end());
  }
  return pieces;
}

Pieces SplitLines(std::string_view text, bool keeps_ends) {
  Pieces lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const Step step = StepAt(text, at);
    if (!IsLineBreak(step.character)) {
      at = step.end;
      continue;
    }
    const size_t next = step.character == '\r' && step.end < text.size() && text[step.end] == '\n'
                            ? step.end + 1
                            : step.end;
    lines.emplace_back(begin, keeps_ends ? next : at);
    begin = at = next;
  }
  if (begin < text.size()) {
    lines.emplace_back(begin, text.size());
  }
  return lines;
}

Result<MarkedString> Replace(const MarkedString& text, const MarkedString& old_text,
                             const MarkedString& new_text, int64_t limit, Budget& budget) {
  MarkedString out;
  size_t begin = 0;
  size_t at = 0;
  for (int64_t n = 0; limit < 0 || n < limit; ++n) {
    const size_t found = FindText(text.text(), old_text.text(), at);
    if (found == std::string::npos) {
      break;
    }
    FACET_RETURN_IF_ERROR(budget.Make(found - begin + new_text.memory()));
    out.Append(text, begin, found);
    out.Append(new_text);
    begin = found + old_text.size();
    at = begin;
    if (old_text.empty()) {  // an empty pattern stands before each character and at the end
      if (found == text.size()) {
        break;
      }
      at = StepAt(text.text(), found).end;
    }
  }
  FACET_RETURN_IF_ERROR(budget.Make(text.size() - begin));
  out.Append(text, begin, text.size());
  return out;
}

Result<MarkedString> Pad(const Text& text, int64_t width, const MarkedString& fill, char align,
                         Budget& budget) {
  const int64_t padding = width - static_cast<int64_t>(text.n_characters);
  if (padding <= 0) {
    return text.marked;
  }
  if (static_cast<uint64_t>(padding) > budget.limits().max_value_bytes / 4) {
    return budget.Make(SIZE_MAX).error();
  }
  FACET_RETURN_IF_ERROR(
      budget.Make(text.marked.memory() + static_cast<size_t>(padding) * fill.size()));
  // Python puts the odd blank of a centred text on the left when the width is odd.
  const int64_t left =
      align == '<' ? 0 : (align == '>' ? padding : padding / 2 + (padding & width & 1));
  MarkedString out;
  for (int64_t i = 0; i < padding; ++i) {
    if (i == left) {
      out.Append(text.marked);
    }
    out.Append(fill);
  }
  if (left == padding) {
    out.Append(text.marked);
  }
  return out;
}

std::optional<Value> ParseInteger(std::string_view text, int64_t base) {
  const MarkedString stripped =
      Strip(MarkedString(std::string(text), Origin::kTemplate), std::nullopt, {});
  std::string_view digits = stripped.text();
  const bool is_negative = !digits.empty() && digits.front() == '-';
  if (!digits.empty() && (digits.front() == '-' || digits.front() == '+')) {
    digits.remove_prefix(1);
  }
  if (base != 0 && (base < 2 || base > 36)) {
    return std::nullopt;
  }
  const char mark =
      digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int64_t marked_base = mark == 'x' ? 16 : (mark == 'o' ? 8 : (mark == 'b' ? 2 : 0));
  if (marked_base != 0 && (base == 0 || base == marked_base)) {
    base = marked_base;
    digits.remove_prefix(2);
  }
  base = base == 0 ? 10 : base;
  std::string plain;
  for (size_t i = 0; i < digits.size(); ++i) {
    const char c =
        static_cast<char>(digits[i] >= 'A' && digits[i] <= 'Z' ? digits[i] | 0x20 : digits[i]);
    if (c == '_' && i > 0 && i + 1 < digits.size() && digits[i - 1] != '_') {
      continue;
    }
    const int digit = c >= '0' && c <= '9' ? c - '0' : (c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99);
    if (digit >= base) {
      return std::nullopt;
    }
    plain.push_back(c);
  }
  if (plain.empty()) {
    return std::nullopt;
  }
  plain = (is_negative ? "-" : "") + std::move(plain);
  if (base == 10) {
    return Value::IntegerFromDigits(plain);
  }
  errno = 0;
  const long long value = std::strtoll(plain.c_str(), nullptr, static_cast<int>(base));
  return errno == 0 ? std::optional<Value>(Value::Integer(value)) : std::nullopt;
}

std::optional<double> ParseFloat(std::string_view text) {
  const MarkedString stripped =
      Strip(MarkedString(std::string(text), Origin::kTemplate), std::nullopt, {});
  std::string plain;
  const std::string& source = stripped.text();
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    const bool is_between_digits = i > 0 && i + 1 < source.size() &&
                                   std::isdigit(static_cast<unsigned char>(source[i - 1])) != 0 &&
                                   std::isdigit(static_cast<unsigned char>(source[i + 1])) != 0;
    if (c != '_' || !is_between_digits) {
      plain.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
  }
  const std::string_view unsigned_part = std::string_view(plain).substr(
      !plain.empty() && (plain[0] == '-' || plain[0] == '+') ? 1 : 0);
  const bool is_word =
      unsigned_part == "inf" || unsigned_part == "infinity" || unsigned_part == "nan";
  if (plain.empty() ||
      (!is_word && plain.find_first_not_of("0123456789.e+-") != std::string::npos)) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  return end == plain.c_str() + plain.size() ? std::optional<double>(value) : std::nullopt;
}

}  // namespace facet::jinja
