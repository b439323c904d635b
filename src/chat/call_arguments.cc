// SPDX-License-Identifier: Apache-2.0
#include "chat/call_arguments.h"

#include <algorithm>
#include <utility>

#include "chat/call_literal.h"
#include "chat/call_text.h"

namespace facet {
namespace {

constexpr size_t kMaxKeyBytes = 128;  // of a key that is looked for ahead
constexpr size_t kNone = std::string_view::npos;

bool IsSpace(char c) { return kWhiteSpace.find(c) != kNone; }
bool IsQuote(char c) { return c == '"' || c == '\''; }
bool IsOpener(char c) { return c == '{' || c == '[' || c == '('; }
bool IsCloser(char c) { return c == '}' || c == ']' || c == ')'; }
char CloserOf(char opener) { return opener == '{' ? '}' : opener == '[' ? ']' : ')'; }

/// Of a key that is neither quoted nor has spaces.
bool IsKeyCharacter(char c) {
  return static_cast<unsigned char>(c) > ' ' && c != kStringMark &&
         std::string_view("\"'`,:=<>[]{}()").find(c) == kNone;
}

std::string JsonString(std::string_view text) { return Json(text).Dump(); }

/// Reads from left to right and writes JSON as it goes; each step moves on. Looks ahead no farther
/// than a key, except for the end of a string: where that search failed it is not repeated.
class ArgumentsReader {
 public:
  ArgumentsReader(std::string_view text, size_t begin, FailedSearches* failed)
      : text_(text), pos_(begin), failed_(*failed) {}

  std::optional<CallArguments> Read(const ValueSchema& schema) {
    if (!ReadContainer(schema)) {
      return std::nullopt;
    }
    return CallArguments{std::move(json_), pos_, is_complete_, n_repairs_};
  }

 private:
  /// The container being read.
  struct Container {
    const ValueSchema* schema = nullptr;
    bool is_object = true;
  };

  bool ReadContainer(const ValueSchema& schema);
  bool ReadEntries(const ValueSchema& schema);
  bool ReadMember(const ValueSchema& schema);
  std::optional<std::string> ReadKey();
  bool ReadValue(const ValueSchema& schema);
  void ReadMarked(const ValueSchema& schema);
  void ReadQuoted(const ValueSchema& schema);
  void ReadBare(const ValueSchema& schema);
  void ReadUnclosed(const ValueSchema& schema);
  void WriteString(std::string_view text, const ValueSchema& schema);
  void WriteBare(std::string_view text, const ValueSchema& schema);

  [[nodiscard]] char At(size_t pos) const { return pos < text_.size() ? text_[pos] : '\0'; }
  [[nodiscard]] size_t SkipSpace(size_t pos) const;
  [[nodiscard]] bool IsOpen(char closer) const { return open_.find(closer) != kNone; }
  [[nodiscard]] std::string_view KeyAt(size_t pos) const;
  [[nodiscard]] bool EndsContainer(size_t pos) const;
  [[nodiscard]] bool EndsValue(size_t pos) const;
  [[nodiscard]] bool EndsMarked(size_t pos, bool is_empty) const;
  [[nodiscard]] bool EndsQuoted(size_t pos) const;
  [[nodiscard]] bool EndsBare(size_t pos, bool has_opener) const;
  [[nodiscard]] bool FollowsLiteral(size_t pos) const;
  [[nodiscard]] bool OpensAnother(size_t begin, size_t mark) const;
  [[nodiscard]] size_t BareEnd(bool has_opener);
  [[nodiscard]] std::optional<size_t> ScanBare(bool has_opener, bool nests) const;

  std::string_view text_;
  size_t pos_;
  FailedSearches& failed_;
  std::string open_;  // the closing brackets that are due
  Container container_;
  std::string json_;
  bool is_complete_ = false;
  int n_repairs_ = 0;
};

size_t ArgumentsReader::SkipSpace(size_t pos) const {
  while (pos < text_.size() && IsSpace(text_[pos])) {
    ++pos;
  }
  return pos;
}

/// The key that begins at `pos`, if one with its separator does; else empty.
std::string_view ArgumentsReader::KeyAt(size_t pos) const {
  const std::string_view ahead = text_.substr(std::min(pos, text_.size()), kMaxKeyBytes);
  std::string_view key;
  size_t end = 0;
  if (!ahead.empty() && (IsQuote(ahead[0]) || ahead[0] == kStringMark)) {
    end = ahead.find(ahead[0], 1);
    if (end == kNone) {
      return {};
    }
    key = ahead.substr(1, end - 1);
    ++end;
  } else {
    while (end < ahead.size() && IsKeyCharacter(ahead[end])) {
      ++end;
    }
    key = ahead.substr(0, end);
  }
  while (end < ahead.size() && ahead[end] == ' ') {
    ++end;
  }
  const std::string_view rest = ahead.substr(end);
  const bool is_key = rest.starts_with('=') || (rest.starts_with(':') && !rest.starts_with("://"));
  return is_key ? key : std::string_view();
}

bool ArgumentsReader::EndsContainer(size_t pos) const {
  const char c = At(pos);
  return pos >= text_.size() || c == '}' || c == ']' || (c == ')' && IsOpen(c));
}

/// Whether what follows the end of a string may follow it.
bool ArgumentsReader::EndsValue(size_t pos) const {
  pos = SkipSpace(pos);
  return At(pos) == ',' || EndsContainer(pos);
}

/// Whether the mark before `pos` ends a string; also where only a comma was lost.
bool ArgumentsReader::EndsMarked(size_t pos, bool is_empty) const {
  if (EndsValue(pos)) {
    return true;
  }
  pos = SkipSpace(pos);
  if (container_.is_object) {
    return !KeyAt(pos).empty();
  }
  const char next = At(pos);
  return !is_empty && (next == kStringMark || next == '"' || next == '{' || next == '[');
}

/// Whether the quote before `pos` ends a string. One inside the text is likely to be followed by
/// something else, also by a comma, but not by a key or a bracket.
bool ArgumentsReader::EndsQuoted(size_t pos) const {
  const size_t next = SkipSpace(pos);
  if (At(next) == ',' && container_.is_object) {
    const size_t after = SkipSpace(next + 1);
    return EndsContainer(after) || !KeyAt(after).empty();
  }
  return EndsValue(next) || (container_.is_object && next == pos && !KeyAt(pos).empty());
}

/// Whether the mark does not end the string from `begin`, but opens a value after it: then the end
/// of the string was lost.
bool ArgumentsReader::OpensAnother(size_t begin, size_t mark) const {
  while (mark > begin && IsSpace(text_[mark - 1])) {
    --mark;
  }
  return mark > begin && std::string_view(":=,[").find(text_[mark - 1]) != kNone;
}

/// Whether bare text ends at `pos`. `has_opener`: it is a string whose end was lost, which is
/// spaced as prose is.
bool ArgumentsReader::EndsBare(size_t pos, bool has_opener) const {
  const char c = text_[pos];
  if (c == kStringMark) {
    return EndsMarked(pos + 1, false);
  }
  if (IsCloser(c)) {
    return IsOpen(c) || FollowsLiteral(pos);
  }
  if (c == ',') {
    const size_t next = SkipSpace(pos + 1);
    if (!container_.is_object || EndsContainer(next)) {
      return true;
    }
    const std::string_view key = KeyAt(next);
    if (key.empty()) {
      return false;
    }
    // The model writes no space after a comma, a writer of prose does.
    return next == pos + 1 || container_.schema->HasProperty(key) ||
           (!has_opener && !container_.schema->HasProperties());
  }
  if (!IsSpace(c) || has_opener || !container_.is_object) {
    return false;
  }
  return FollowsLiteral(pos) && !KeyAt(SkipSpace(pos)).empty();
}

/// Whether the value so far is a number, or another that is complete.
bool ArgumentsReader::FollowsLiteral(size_t pos) const {
  return pos - pos_ < kMaxKeyBytes && ReadLiteral(text_.substr(pos_, pos - pos_)).has_value();
}

std::optional<size_t> ArgumentsReader::ScanBare(bool has_opener, bool nests) const {
  std::string nested;
  for (size_t pos = pos_; pos < text_.size(); ++pos) {
    const char c = text_[pos];
    if (nests && IsOpener(c)) {
      nested += CloserOf(c);
    } else if (!nested.empty()) {
      if (c == nested.back()) {
        nested.pop_back();
      }
    } else if (EndsBare(pos, has_opener)) {
      return pos;
    }
  }
  return nested.empty() ? std::optional(text_.size()) : std::nullopt;
}

size_t ArgumentsReader::BareEnd(bool has_opener) {
  if (failed_.nests) {
    if (const std::optional<size_t> end = ScanBare(has_opener, true)) {
      return *end;
    }
    failed_.nests = false;
  }
  return *ScanBare(has_opener, false);
}

bool ArgumentsReader::ReadContainer(const ValueSchema& schema) {
  if (open_.size() >= kMaxCallDepth) {
    return false;
  }
  const char opener = text_[pos_];
  const bool is_object = opener != '[';
  n_repairs_ += opener == '(' ? 1 : 0;
  ++pos_;
  open_ += CloserOf(opener);
  const Container outer = std::exchange(container_, {&schema, is_object});
  json_ += is_object ? '{' : '[';
  if (!ReadEntries(schema)) {
    return false;
  }
  json_ += is_object ? '}' : ']';
  container_ = outer;
  open_.pop_back();
  return true;
}

bool ArgumentsReader::ReadEntries(const ValueSchema& schema) {
  const bool is_object = container_.is_object;
  const ValueSchema item = is_object ? ValueSchema() : schema.Item();
  bool is_first = true;
  bool needs_comma = false;
  bool is_open_twice = false;
  while (true) {
    pos_ = SkipSpace(pos_);
    const char c = At(pos_);
    if (pos_ >= text_.size()) {
      ++n_repairs_;
      return true;
    }
    if (c == open_.back()) {
      ++pos_;
      is_complete_ = open_.size() == 1;
      return true;
    }
    if (IsCloser(c)) {
      ++n_repairs_;
      if (IsOpen(c)) {
        return true;  // an outer container ends here, so this one does
      }
      ++pos_;
    } else if (c == ',') {
      n_repairs_ += needs_comma ? 0 : 1;
      needs_comma = false;
      ++pos_;
    } else if (is_object && c == '{' && is_first && !is_open_twice) {
      is_open_twice = true;
      ++n_repairs_;
      ++pos_;
    } else {
      n_repairs_ += needs_comma ? 1 : 0;
      needs_comma = true;
      json_ += std::exchange(is_first, false) ? "" : ",";
      if (!(is_object ? ReadMember(schema) : ReadValue(item))) {
        return false;
      }
    }
  }
}

bool ArgumentsReader::ReadMember(const ValueSchema& schema) {
  const std::optional<std::string> key = ReadKey();
  if (!key) {
    return false;
  }
  json_ += JsonString(*key) + ':';
  return ReadValue(schema.Property(*key));
}

/// Reads a key and its separator.
std::optional<std::string> ArgumentsReader::ReadKey() {
  const char c = text_[pos_];
  const std::string_view quoted = IsQuote(c) || c == kStringMark ? KeyAt(pos_) : std::string_view();
  const size_t separator = quoted.empty() ? text_.find_first_of(":=,[]{}()", pos_)
                                          : text_.find_first_of(":=", pos_ + quoted.size() + 2);
  if (separator == kNone || (text_[separator] != ':' && text_[separator] != '=')) {
    return std::nullopt;
  }
  const std::string_view written = Trim(text_.substr(pos_, separator - pos_));
  std::string key = WithoutMarks(quoted.empty() ? written : quoted);
  n_repairs_ += (key.size() != written.size() ? 1 : 0) + (text_[separator] == '=' ? 1 : 0);
  pos_ = separator + 1;
  if ((At(pos_) == ':' || At(pos_) == '=') && At(pos_ + 1) == kStringMark) {
    ++pos_;  // written twice
    ++n_repairs_;
  }
  return key.empty() ? std::nullopt : std::optional(std::move(key));
}

bool ArgumentsReader::ReadValue(const ValueSchema& schema) {
  pos_ = SkipSpace(pos_);
  const char c = At(pos_);
  if (c == kStringMark) {
    ReadMarked(schema);
  } else if (IsQuote(c)) {
    ReadQuoted(schema);
  } else if ((c == '{' || c == '[') && !schema.IsOnly(ValueSchema::kString | ValueSchema::kNull)) {
    return ReadContainer(schema);
  } else {
    ReadBare(schema);
  }
  return true;
}

void ArgumentsReader::ReadMarked(const ValueSchema& schema) {
  const size_t begin = ++pos_;
  size_t mark = begin < failed_.marks_before ? kNone : text_.find(kStringMark, begin);
  bool is_lost = mark == kNone;
  while (!is_lost && !EndsMarked(mark + 1, mark == begin)) {
    is_lost = OpensAnother(begin, mark);
    mark = is_lost ? mark : text_.find(kStringMark, mark + 1);
    is_lost = is_lost || mark == kNone;
  }
  if (is_lost) {
    failed_.marks_before = std::max(failed_.marks_before, mark);
    ReadUnclosed(schema);
    return;
  }
  const std::string text = WithoutMarks(text_.substr(begin, mark - begin));
  n_repairs_ += text.size() < mark - begin ? 1 : 0;
  pos_ = mark + 1;
  WriteString(text, schema);
}

void ArgumentsReader::ReadQuoted(const ValueSchema& schema) {
  const char quote = text_[pos_];
  const size_t begin = ++pos_;
  size_t& fails_before = failed_.quotes_before[quote == '"' ? 1 : 0];
  size_t end = begin < fails_before ? kNone : begin;
  for (; end < text_.size(); ++end) {
    const char c = text_[end];
    if (c == '\\' && At(end + 1) != kStringMark) {
      ++end;
    } else if ((c == quote && EndsQuoted(end + 1)) || c == kStringMark) {
      break;
    }
  }
  const bool is_mark = At(end) == kStringMark;
  if (end >= text_.size() || (is_mark && (!EndsValue(end + 1) || OpensAnother(begin, end)))) {
    fails_before = std::max(fails_before, end >= text_.size() ? kNone : end);
    ReadUnclosed(schema);
    return;
  }
  ++n_repairs_;
  pos_ = end + 1;
  WriteString(UnescapeJson(text_.substr(begin, end - begin)), schema);
}

/// A string from here on whose closing delimiter was lost, or is a foreign one.
void ArgumentsReader::ReadUnclosed(const ValueSchema& schema) {
  ++n_repairs_;
  const size_t end = BareEnd(true);
  std::string text = WithoutMarks(text_.substr(pos_, end - pos_));
  if (!text.empty() && IsQuote(text.back()) && text.find(text.back()) + 1 == text.size()) {
    text.pop_back();
  }
  pos_ = end + (At(end) == kStringMark ? 1 : 0);
  WriteString(text, schema);
}

void ArgumentsReader::ReadBare(const ValueSchema& schema) {
  const size_t end = BareEnd(false);
  std::string text(Trim(text_.substr(pos_, end - pos_)));
  const bool is_json = text.starts_with('{') || text.starts_with('[');
  if (is_json) {
    std::replace(text.begin(), text.end(), kStringMark, '"');
  }
  pos_ = end + (At(end) == kStringMark ? 1 : 0);
  WriteBare(is_json ? text : WithoutMarks(text), schema);
}

/// A string, or what the schema wants in its place.
void ArgumentsReader::WriteString(std::string_view text, const ValueSchema& schema) {
  if (!schema.Allows(ValueSchema::kString)) {
    const int depth = kMaxCallDepth - static_cast<int>(open_.size());
    const std::optional<Literal> literal = ReadJson(Trim(text), depth);
    if (literal && schema.Allows(literal->type)) {
      ++n_repairs_;
      json_ += literal->json;
      return;
    }
  }
  json_ += JsonString(text);
}

void ArgumentsReader::WriteBare(std::string_view text, const ValueSchema& schema) {
  const std::optional<Literal> literal = ReadLiteral(text);
  const bool is_fit = literal && (schema.Allows(literal->type) ||
                                  (literal->is_json && !schema.Allows(ValueSchema::kString)));
  n_repairs_ += is_fit && literal->is_json ? 0 : 1;
  json_ += is_fit ? std::string(literal->json) : JsonString(text);
}

}  // namespace

std::optional<CallArguments> ReadCallArguments(std::string_view text, size_t begin,
                                               const ValueSchema& schema, FailedSearches* failed) {
  return ArgumentsReader(text, begin, failed).Read(schema);
}

}  // namespace facet
