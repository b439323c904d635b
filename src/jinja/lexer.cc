// SPDX-License-Identifier: Apache-2.0
#include "jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "jinja/unicode.h"

namespace facet::jinja {
namespace {

/// CR LF and CR become LF; one newline at the end is dropped.
std::string NormalizeNewlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text.push_back(source[i]);
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      text.push_back('\n');
    }
  }
  if (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

bool IsDigitOf(char c, int base) {
  const int digit =
      c >= '0' && c <= '9'
          ? c - '0'
          : (c >= 'a' && c <= 'f' ? c - 'a' + 10 : (c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99));
  return digit < base;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name)
      : name_(name), source_(NormalizeNewlines(source)), text_(source_) {}

  Result<std::vector<Token>> Run() {
    while (at_ < text_.size()) {
      FACET_RETURN_IF_ERROR(LexData());
    }
    Emit(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  struct Opening {
    size_t at = std::string_view::npos;
    char kind = 0;  ///< '{', '%', '#'
    char sign = 0;  ///< '-', '+' or 0
  };

  [[nodiscard]] Opening FindOpening() const {
    for (size_t i = at_; i + 1 < text_.size(); ++i) {
      i = text_.find('{', i);
      if (i == std::string_view::npos || i + 1 >= text_.size()) {
        break;
      }
      const char kind = text_[i + 1];
      if (kind == '{' || kind == '%' || kind == '#') {
        const char sign = i + 2 < text_.size() && (text_[i + 2] == '-' || text_[i + 2] == '+')
                              ? text_[i + 2]
                              : '\0';
        return {i, kind, sign};
      }
    }
    return {};
  }

  /// Text up to the next tag, and the tag.
  Status LexData() {
    const Opening opening = FindOpening();
    if (opening.at == std::string_view::npos) {
      EmitData(text_.substr(at_));
      at_ = text_.size();
      return {};
    }
    EmitData(StripBefore(text_.substr(at_, opening.at - at_), opening));
    at_ = opening.at;
    const Position start = Here();
    at_ += opening.sign != 0 ? 3 : 2;
    if (opening.kind == '#') {
      return SkipComment(start);
    }
    if (opening.kind == '%') {
      if (const size_t end = MatchRawBegin(); end != 0) {
        at_ = end;
        return LexRaw(start);
      }
    }
    const bool is_block = opening.kind == '%';
    tokens_.push_back(
        {is_block ? Token::Kind::kBlockBegin : Token::Kind::kVariableBegin, start, ""});
    return LexTag(is_block);
  }

  /// `data` stands before a tag that may take white space from its end.
  [[nodiscard]] std::string_view StripBefore(std::string_view data, const Opening& opening) const {
    if (opening.sign == '-') {
      return StripRight(data);
    }
    if (opening.sign == '+' || opening.kind == '{') {
      return data;
    }
    const size_t newline = data.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && at_ > 0 && text_[at_ - 1] != '\n') {
      return data;  // something stands before it on its line
    }
    return StripRight(data.substr(line)).empty() ? data.substr(0, line) : data;
  }

  static std::string_view StripRight(std::string_view data) {
    while (!data.empty()) {
      size_t begin = data.size() - 1;
      while (begin > 0 && (static_cast<uint8_t>(data[begin]) & 0xC0u) == 0x80u) {
        --begin;
      }
      if (!IsSpace(DecodeUtf8(data.substr(begin)).character)) {
        break;
      }
      data = data.substr(0, begin);
    }
    return data;
  }

  [[nodiscard]] size_t SkipSpace(size_t at) const {
    while (at < text_.size()) {
      const Utf8Step step = DecodeUtf8(text_.substr(at, 4));
      if (!IsSpace(step.character)) {
        break;
      }
      at += static_cast<size_t>(step.size);
    }
    return at;
  }

  [[nodiscard]] bool StartsWith(size_t at, std::string_view prefix) const {
    return text_.substr(at, prefix.size()) == prefix;
  }

  /// After "{%" and its sign: the end of "raw %}", or 0.
  [[nodiscard]] size_t MatchRawBegin() const {
    size_t at = SkipSpace(at_);
    if (!StartsWith(at, "raw")) {
      return 0;
    }
    at = SkipSpace(at + 3);
    if (StartsWith(at, "-%}")) {
      return SkipSpace(at + 3);
    }
    return StartsWith(at, "%}") ? at + 2 : 0;
  }

  /// At "X}" or "-X}" or "+X}" where X is % or #: the end of it with the white space it takes, or
  /// 0.
  [[nodiscard]] size_t MatchClosing(size_t at, char kind) const {
    const std::array<char, 2> closing = {kind, '}'};
    const std::string_view close(closing.data(), closing.size());
    if (StartsWith(at, "-") && StartsWith(at + 1, close)) {
      return SkipSpace(at + 3);
    }
    if (StartsWith(at, "+") && StartsWith(at + 1, close)) {
      return at + 3;
    }
    if (!StartsWith(at, close)) {
      return 0;
    }
    return StartsWith(at + 2, "\n") ? at + 3 : at + 2;
  }

  Status SkipComment(Position start) {
    const size_t close = text_.find("#}", at_);
    if (close == std::string_view::npos) {
      return Fail(start, "missing end of comment tag", "\"#}\"");
    }
    const bool has_sign = close > at_ && (text_[close - 1] == '-' || text_[close - 1] == '+');
    at_ = MatchClosing(has_sign ? close - 1 : close, '#');
    return {};
  }

  Status LexRaw(Position start) {
    for (size_t open = text_.find("{%", at_); open != std::string_view::npos;
         open = text_.find("{%", open + 2)) {
      const char sign =
          open + 2 < text_.size() && (text_[open + 2] == '-' || text_[open + 2] == '+')
              ? text_[open + 2]
              : '\0';
      size_t at = SkipSpace(open + (sign != 0 ? 3 : 2));
      if (!StartsWith(at, "endraw")) {
        continue;
      }
      at = MatchClosing(SkipSpace(at + 6), '%');
      if (at != 0) {
        EmitData(StripBefore(text_.substr(at_, open - at_), {open, '%', sign}));
        at_ = at;
        return {};
      }
    }
    return Fail(start, "missing end of raw directive", "\"{% endraw %}\"");
  }

  /// The tokens inside "{{ }}" or "{% %}".
  Status LexTag(bool is_block) {
    std::string open_brackets;
    while (true) {
      if (open_brackets.empty()) {
        const size_t end = is_block ? MatchClosing(at_, '%') : MatchVariableEnd();
        if (end != 0) {
          Emit(is_block ? Token::Kind::kBlockEnd : Token::Kind::kVariableEnd, "");
          at_ = end;
          return {};
        }
      }
      if (const size_t next = SkipSpace(at_); next != at_) {
        at_ = next;
        continue;
      }
      if (at_ == text_.size()) {
        return {};  // the parser says what is missing
      }
      FACET_RETURN_IF_ERROR(LexToken(open_brackets));
    }
  }

  [[nodiscard]] size_t MatchVariableEnd() const {
    if (StartsWith(at_, "-}}")) {
      return SkipSpace(at_ + 3);
    }
    return StartsWith(at_, "}}") ? at_ + 2 : 0;
  }

  Status LexToken(std::string& open_brackets) {
    const char c = text_[at_];
    if (c >= '0' && c <= '9') {
      LexNumber();
      return {};
    }
    if (c == '\'' || c == '"') {
      return LexString(c);
    }
    if (IsIdentifierStart(DecodeUtf8(text_.substr(at_, 4)).character)) {
      LexName();
      return {};
    }
    return LexOperator(open_brackets);
  }

  void LexName() {
    size_t end = at_;
    while (end < text_.size()) {
      const Utf8Step step = DecodeUtf8(text_.substr(end, 4));
      if (!IsIdentifierPart(step.character)) {
        break;
      }
      end += static_cast<size_t>(step.size);
    }
    Emit(Token::Kind::kName, std::string(text_.substr(at_, end - at_)));
    at_ = end;
  }

  /// Digits of `base` with single underscores between them, from `at`: where they end.
  [[nodiscard]] size_t SkipDigits(size_t at, int base) const {
    while (at < text_.size()) {
      if (IsDigitOf(text_[at], base)) {
        ++at;
      } else if (text_[at] == '_' && at + 1 < text_.size() && IsDigitOf(text_[at + 1], base)) {
        at += 2;
      } else {
        break;
      }
    }
    return at;
  }

  void LexNumber() {
    size_t end = at_ + 1;
    bool is_float = false;
    const char second = end < text_.size() ? static_cast<char>(text_[end] | 0x20) : '\0';
    const int base = text_[at_] != '0'
                         ? 10
                         : (second == 'x' ? 16 : (second == 'o' ? 8 : (second == 'b' ? 2 : 10)));
    if (base != 10 && SkipDigits(end + 1, base) > end + 1) {
      end = SkipDigits(end + 1, base);
    } else {
      end = SkipDigits(at_, 10);
      // After a dot digits are an index ("d.1.5" is d[1][5]), so a fraction there is none.
      const bool is_index = at_ > 0 && text_[at_ - 1] == '.';
      if (const size_t fraction = end + 1; !is_index && StartsWith(end, ".") &&
                                           fraction < text_.size() &&
                                           IsDigitOf(text_[fraction], 10)) {
        end = SkipDigits(fraction, 10);
        is_float = true;
      }
      if (!is_index && end < text_.size() && (text_[end] | 0x20) == 'e') {
        const size_t exponent =
            end + (StartsWith(end + 1, "+") || StartsWith(end + 1, "-") ? 2 : 1);
        if (exponent < text_.size() && IsDigitOf(text_[exponent], 10)) {
          end = SkipDigits(exponent, 10);
          is_float = true;
        }
      }
      if (!is_float && text_[at_] == '0') {  // "012" is 0 and then 12
        end = at_ + 1;
        while (end < text_.size() &&
               (text_[end] == '0' || (text_[end] == '_' && StartsWith(end + 1, "0")))) {
          ++end;
        }
      }
    }
    std::string digits(text_.substr(at_, end - at_));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    Emit(is_float ? Token::Kind::kFloat : Token::Kind::kInteger, std::move(digits));
    at_ = end;
  }

  Status LexOperator(std::string& open_brackets) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [this](std::string_view op) { return StartsWith(at_, op); });
    if (found == std::end(kOperators)) {
      const auto size = static_cast<size_t>(DecodeUtf8(text_.substr(at_, 4)).size);
      return Fail(Here(), fmt::format("unexpected character \"{}\"", text_.substr(at_, size)),
                  "an expression");
    }
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
      open_brackets.push_back(c == '(' ? ')' : (c == '[' ? ']' : '}'));
    } else if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty() || open_brackets.back() != c) {
        return Fail(Here(), fmt::format("unexpected \"{}\"", c),
                    open_brackets.empty() ? "" : fmt::format("\"{}\"", open_brackets.back()));
      }
      open_brackets.pop_back();
    }
    Emit(Token::Kind::kOperator, std::string(*found));
    at_ += found->size();
    return {};
  }

  Status LexString(char quote) {
    const Position start = Here();
    std::string value;
    size_t at = at_ + 1;
    while (at < text_.size() && text_[at] != quote) {
      if (text_[at] != '\\') {
        value.push_back(text_[at++]);
        continue;
      }
      if (at + 1 == text_.size()) {
        break;
      }
      FACET_RETURN_IF_ERROR(Unescape(at, value));
    }
    if (at >= text_.size()) {
      return Fail(start, "a string without end", fmt::format("a closing {}", quote));
    }
    tokens_.push_back({Token::Kind::kString, start, std::move(value)});
    at_ = at + 1;
    return {};
  }

  /// text_[at] is a backslash that is not the last character. Python's "unicode-escape".
  Status Unescape(size_t& at, std::string& value) {
    static constexpr std::string_view kSimple = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    const char c = text_[at + 1];
    for (size_t i = 0; i < kSimple.size(); i += 2) {
      if (kSimple[i] == c) {
        value.push_back(kSimple[i + 1]);
        at += 2;
        return {};
      }
    }
    if (c == '\n') {
      at += 2;
      return {};
    }
    if (IsDigitOf(c, 8)) {
      return AppendNumbered(at, at + 1, 1, 3, 8, value);
    }
    if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : (c == 'u' ? 4 : 8);
      return AppendNumbered(at, at + 2, digits, digits, 16, value);
    }
    if (c == 'N') {
      return Fail(Here(), "a character by its name (\\N)", "\\u and its number");
    }
    value.push_back('\\');
    ++at;
    const Utf8Step step = DecodeUtf8(text_.substr(at, 4));
    if (step.character >= 0x80) {
      // Jinja escapes such a character before it unescapes, so the backslash loses its own.
      value += step.character < 0x100
                   ? fmt::format("x{:02x}", static_cast<uint32_t>(step.character))
                   : (step.character < 0x10000
                          ? fmt::format("u{:04x}", static_cast<uint32_t>(step.character))
                          : fmt::format("U{:08x}", static_cast<uint32_t>(step.character)));
      at += static_cast<size_t>(step.size);
    }
    return {};
  }

  Status AppendNumbered(size_t& at, size_t begin, size_t least, size_t most, int base,
                        std::string& value) {
    size_t end = begin;
    while (end < text_.size() && end - begin < most && IsDigitOf(text_[end], base)) {
      ++end;
    }
    const auto number = static_cast<char32_t>(
        end - begin >= least
            ? std::stoul(std::string(text_.substr(begin, end - begin)), nullptr, base)
            : 0x110000);
    if (number >= 0x110000) {
      return Fail(Here(), "a broken escape in a string",
                  fmt::format("{} digits of a code point", most));
    }
    // Half of a surrogate pair has no place in UTF-8.
    AppendUtf8(value, number >= 0xD800 && number < 0xE000 ? kReplacementCharacter : number);
    at = end;
    return {};
  }

  void EmitData(std::string_view data) {
    if (!data.empty()) {
      Emit(Token::Kind::kData, std::string(data));
    }
  }

  void Emit(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, Here(), std::move(text)});
  }

  /// The position of at_. Calls go forward through the text, so counting continues from the last
  /// one.
  Position Here() {
    for (; counted_ < at_; ++counted_) {
      if (text_[counted_] == '\n') {
        ++here_.line;
        here_.column = 1;
      } else if ((static_cast<uint8_t>(text_[counted_]) & 0xC0u) != 0x80u) {
        ++here_.column;
      }
    }
    return here_;
  }

  [[nodiscard]] Error Fail(Position position, std::string found, std::string wanted) const {
    return Refuse(PlaceOf(name_, position), std::move(found), std::move(wanted));
  }

  const std::string& name_;
  std::string source_;
  std::string_view text_;
  size_t at_ = 0;
  size_t counted_ = 0;
  Position here_;
  std::vector<Token> tokens_;
};

}  // namespace

std::string Token::Describe() const {
  switch (kind) {
    case Kind::kData:
      return "template text";
    case Kind::kBlockBegin:
      return "begin of statement block";
    case Kind::kBlockEnd:
      return "end of statement block";
    case Kind::kVariableBegin:
      return "begin of print statement";
    case Kind::kVariableEnd:
      return "end of print statement";
    case Kind::kString:
      return "a string";
    case Kind::kEnd:
      return "end of template";
    default:
      return fmt::format("\"{}\"", text);
  }
}

std::string PlaceOf(const std::string& name, Position position) {
  return fmt::format("{}, line {}, column {}", name, position.line, position.column);
}

Result<std::vector<Token>> Tokenize(std::string_view source, const std::string& name) {
  return Lexer(source, name).Run();
}

}  // namespace facet::jinja
