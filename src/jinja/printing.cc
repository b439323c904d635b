// SPDX-License-Identifier: Apache-2.0
#include "jinja/printing.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "jinja/compare.h"
#include "jinja/objects.h"
#include "jinja/unicode.h"

namespace facet::jinja {
namespace {

/// Namespaces can hold each other, so depth is counted here and not only by the values.
constexpr int kMaxPrintDepth = kMaxNesting + 100;

/// The characters of one string that need no change go out in one piece.
class PieceWriter {
 public:
  PieceWriter(MarkedString& out, const MarkedString& source) : out_(out), source_(source) {}
  void Keep(size_t end) { end_ = end; }
  /// Writes `text` in place of the bytes [begin, end).
  void Replace(size_t begin, size_t end, std::string_view text) {
    out_.Append(source_, begin_, begin);
    out_.Append(text, source_.OriginAt(begin));
    begin_ = end_ = end;
  }
  void Finish() { out_.Append(source_, begin_, end_); }

 private:
  MarkedString& out_;
  const MarkedString& source_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

std::string EscapeForRepr(char32_t c, char quote) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  if (c == static_cast<unsigned char>(quote)) {
    return {'\\', quote};
  }
  const auto number = static_cast<uint32_t>(c);
  return c < 0x100
             ? fmt::format("\\x{:02x}", number)
             : (c < 0x10000 ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number));
}

void AppendStringRepr(MarkedString& out, const MarkedString& source) {
  const std::string_view text = source.text();
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.Append({&quote, 1}, Origin::kTemplate);
  PieceWriter pieces(out, source);
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(at, 4));
    const size_t end = at + static_cast<size_t>(step.size);
    const char32_t c = step.character;
    if (c == static_cast<unsigned char>(quote) || c == '\\' || !IsPrintable(c)) {
      pieces.Replace(at, end, EscapeForRepr(c, quote));
    } else {
      pieces.Keep(end);
    }
    at = end;
  }
  pieces.Finish();
  out.Append({&quote, 1}, Origin::kTemplate);
}

void AppendBytesRepr(MarkedString& out, const MarkedString& source) {
  const bool has_single = source.text().find('\'') != std::string::npos;
  const char quote = has_single && source.text().find('"') == std::string::npos ? '"' : '\'';
  out.Append(fmt::format("b{}", quote), Origin::kTemplate);
  for (size_t i = 0; i < source.size(); ++i) {
    const auto c = static_cast<unsigned char>(source.text()[i]);
    const bool is_plain =
        c >= 0x20 && c < 0x7F && c != '\\' && c != static_cast<unsigned char>(quote);
    out.Append(is_plain ? std::string(1, static_cast<char>(c)) : EscapeForRepr(c, quote),
               source.OriginAt(i));
  }
  out.Append({&quote, 1}, Origin::kTemplate);
}

class Printer {
 public:
  Printer(MarkedString& out, Budget& budget) : out_(out), budget_(budget) {}

  Status Repr(const Value& value, int depth) {
    if (depth > kMaxPrintDepth) {
      return Refuse("", "a value nested too deeply to print",
                    fmt::format("at most {} levels", kMaxPrintDepth));
    }
    FACET_RETURN_IF_ERROR(budget_.Step());
    switch (value.kind()) {
      case Value::Kind::kUndefined:
        return Write("Undefined");
      case Value::Kind::kNone:
        return Write("None");
      case Value::Kind::kBool:
        return Write(value.as_bool() ? "True" : "False");
      case Value::Kind::kInteger:
        return Write(fmt::format("{}", value.as_integer()));
      case Value::Kind::kBigInteger:
        return Write(value.as_digits());
      case Value::Kind::kFloat:
        return Write(FloatRepr(value.as_double()));
      case Value::Kind::kString:
        FACET_RETURN_IF_ERROR(budget_.Make(value.as_string().size() * 2));
        AppendStringRepr(out_, value.as_text()->marked);
        return {};
      case Value::Kind::kSequence:
        return ReprSequence(value.as_sequence(), depth);
      case Value::Kind::kDict:
        return ReprDict(value.as_dict(), depth);
      case Value::Kind::kObject:
        return ReprObject(value.as_object(), depth);
    }
    return {};
  }

 private:
  Status Write(std::string_view text) {
    FACET_RETURN_IF_ERROR(budget_.Make(text.size()));
    out_.Append(text, Origin::kTemplate);
    return {};
  }

  Status ReprItems(const std::vector<Value>& items, std::string_view open, std::string_view close,
                   int depth) {
    FACET_RETURN_IF_ERROR(Write(open));
    std::string_view separator;
    for (const Value& item : items) {
      FACET_RETURN_IF_ERROR(Write(separator));
      FACET_RETURN_IF_ERROR(Repr(item, depth + 1));
      separator = ", ";
    }
    return Write(close);
  }

  Status ReprSequence(const Sequence& sequence, int depth) {
    switch (sequence.kind()) {
      case Sequence::Kind::kList:
        return ReprItems(sequence.items(), "[", "]", depth);
      case Sequence::Kind::kTuple:
        return ReprItems(sequence.items(), "(", sequence.size() == 1 ? ",)" : ")", depth);
      case Sequence::Kind::kGenerator:
        return Write("<generator object>");
      case Sequence::Kind::kRange: {
        const Sequence::Range& range = sequence.range;
        return Write(range.step == 1
                         ? fmt::format("range({}, {})", range.start, range.stop)
                         : fmt::format("range({}, {}, {})", range.start, range.stop, range.step));
      }
      case Sequence::Kind::kKeys:
        return ReprItems(sequence.items(), "dict_keys([", "])", depth);
      case Sequence::Kind::kValues:
        return ReprItems(sequence.items(), "dict_values([", "])", depth);
      case Sequence::Kind::kItems:
        return ReprItems(sequence.items(), "dict_items([", "])", depth);
    }
    return {};
  }

  Status ReprDict(const Dict& dict, int depth) {
    FACET_RETURN_IF_ERROR(Write("{"));
    std::string_view separator;
    for (const auto& [key, value] : dict.entries()) {
      FACET_RETURN_IF_ERROR(Write(separator));
      FACET_RETURN_IF_ERROR(Repr(key, depth + 1));
      FACET_RETURN_IF_ERROR(Write(": "));
      FACET_RETURN_IF_ERROR(Repr(value, depth + 1));
      separator = ", ";
    }
    return Write("}");
  }

  Status ReprObject(const Object& object, int depth) {
    switch (object.kind) {
      case Object::Kind::kNamespace: {
        FACET_RETURN_IF_ERROR(Write("<Namespace {"));
        std::string_view separator;
        for (const auto& [name, value] : static_cast<const Namespace&>(object).attributes) {
          FACET_RETURN_IF_ERROR(Write(separator));
          FACET_RETURN_IF_ERROR(Repr(Value::String(name, Origin::kTemplate), depth + 1));
          FACET_RETURN_IF_ERROR(Write(": "));
          FACET_RETURN_IF_ERROR(Repr(value, depth + 1));
          separator = ", ";
        }
        return Write("}>");
      }
      case Object::Kind::kLoop: {
        const auto& loop = static_cast<const Loop&>(object);
        return Write(fmt::format("<LoopContext {}/{}>", loop.index0 + 1, loop.items->size()));
      }
      case Object::Kind::kMacro:
        return Write(
            fmt::format("<Macro '{}'>", static_cast<const Macro&>(object).definition->name));
      case Object::Kind::kBytes: {
        const TextPtr& text = static_cast<const Bytes&>(object).text;
        FACET_RETURN_IF_ERROR(budget_.Make(text->text().size() * 4));
        AppendBytesRepr(out_, text->marked);
        return {};
      }
      case Object::Kind::kFunction:
        return Write("<function>");
      case Object::Kind::kMethod:
        return Write(fmt::format("<method {}>", static_cast<const Method&>(object).name));
      case Object::Kind::kCycler:
        return Write("<Cycler>");
      case Object::Kind::kJoiner:
        return Write("<Joiner>");
    }
    return {};
  }

  MarkedString& out_;
  Budget& budget_;
};

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

  Status Put(const Value& value, int depth) {
    FACET_RETURN_IF_ERROR(budget_.Step());
    switch (value.kind()) {
      case Value::Kind::kString:
        return PutString(*value.as_text());
      case Value::Kind::kDict:
        return PutDict(value.as_dict(), depth);
      case Value::Kind::kSequence:
        if (value.as_sequence().is_list() || value.as_sequence().is_tuple()) {
          return PutList(value.as_sequence(), depth);
        }
        break;
      case Value::Kind::kUndefined:
      case Value::Kind::kObject:
        break;
      default:
        return Write(Scalar(value));
    }
    return Refuse("", fmt::format("Object of type {} is not JSON serializable", value.TypeName()),
                  "data");
  }

  MarkedString Take() { return std::move(out_); }

 private:
  static std::string Scalar(const Value& value) {
    if (value.is_none()) {
      return "null";
    }
    if (value.is_bool()) {
      return value.as_bool() ? "true" : "false";
    }
    if (!value.is_float()) {
      return value.is_big_integer() ? value.as_digits() : fmt::format("{}", value.as_integer());
    }
    const double number = value.as_double();
    return std::isnan(number)
               ? "NaN"
               : (std::isinf(number) ? (number > 0 ? "Infinity" : "-Infinity") : FloatRepr(number));
  }

  Status Write(std::string_view text) {
    FACET_RETURN_IF_ERROR(budget_.Make(text.size()));
    out_.Append(text, Origin::kTemplate);
    return {};
  }

  Status Write(const MarkedString& text) {
    FACET_RETURN_IF_ERROR(budget_.Make(text.size()));
    out_.Append(text);
    return {};
  }

  Status BreakLine(int depth) {
    if (style_.indent.has_value()) {
      FACET_RETURN_IF_ERROR(Write("\n"));
      for (int i = 0; i < depth; ++i) {
        FACET_RETURN_IF_ERROR(Write(*style_.indent));
      }
    }
    return {};
  }

  [[nodiscard]] std::string Escape(char32_t c) const {
    static constexpr std::string_view kShort = "\"\"\\\\\nn\rr\tt\bb\ff";
    for (size_t i = 0; i < kShort.size(); i += 2) {
      if (c == static_cast<unsigned char>(kShort[i])) {
        return {'\\', kShort[i + 1]};
      }
    }
    const auto number = static_cast<uint32_t>(c);
    return number < 0x10000 ? fmt::format("\\u{:04x}", number)
                            : fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (number >> 10),
                                          0xDC00 + (number & 0x3FF));
  }

  Status PutString(const Text& text) {
    FACET_RETURN_IF_ERROR(budget_.Make(text.text().size() * 2));
    FACET_RETURN_IF_ERROR(Write("\""));
    const std::string_view bytes = text.text();
    PieceWriter pieces(out_, text.marked);
    for (size_t at = 0; at < bytes.size();) {
      const Utf8Step step = DecodeUtf8(bytes.substr(at, 4));
      const size_t end = at + static_cast<size_t>(step.size);
      const char32_t c = step.character;
      if (c < 0x20 || c == '"' || c == '\\' || (style_.is_ascii && c >= 0x7F)) {
        pieces.Replace(at, end, Escape(c));
      } else {
        pieces.Keep(end);
      }
      at = end;
    }
    pieces.Finish();
    return Write("\"");
  }

  Status PutList(const Sequence& list, int depth) {
    if (list.size() == 0) {
      return Write("[]");
    }
    FACET_RETURN_IF_ERROR(Write("["));
    bool is_first = true;
    for (const Value& item : list.items()) {
      if (!is_first) {
        FACET_RETURN_IF_ERROR(Write(style_.item_separator));
      }
      is_first = false;
      FACET_RETURN_IF_ERROR(BreakLine(depth + 1));
      FACET_RETURN_IF_ERROR(Put(item, depth + 1));
    }
    FACET_RETURN_IF_ERROR(BreakLine(depth));
    return Write("]");
  }

  Status PutKey(const Value& key) {
    if (key.is_string()) {
      return PutString(*key.as_text());
    }
    if (!key.is_number() && !key.is_none()) {
      return Refuse("", fmt::format("a key of type {}", key.TypeName()),
                    "keys that JSON can write");
    }
    return Write(fmt::format("\"{}\"", Scalar(key)));
  }

  Status PutDict(const Dict& dict, int depth);

  const JsonStyle& style_;
  Budget& budget_;
  MarkedString out_;
};

Status JsonWriter::PutDict(const Dict& dict, int depth) {
  if (dict.size() == 0) {
    return Write("{}");
  }
  std::vector<Dict::Entry> entries = dict.entries();
  if (style_.has_sorted_keys) {
    std::vector<Value> keys;
    keys.reserve(entries.size());
    for (const auto& [key, value] : entries) {
      keys.push_back(key);
    }
    FACET_ASSIGN(const std::vector<size_t> order, SortedOrder(keys, false, budget_));
    for (size_t i = 0; i < order.size(); ++i) {
      entries[i] = dict.entries()[order[i]];
    }
  }
  FACET_RETURN_IF_ERROR(Write("{"));
  bool is_first = true;
  for (const auto& [key, value] : entries) {
    if (!is_first) {
      FACET_RETURN_IF_ERROR(Write(style_.item_separator));
    }
    is_first = false;
    FACET_RETURN_IF_ERROR(BreakLine(depth + 1));
    FACET_RETURN_IF_ERROR(PutKey(key));
    FACET_RETURN_IF_ERROR(Write(style_.key_separator));
    FACET_RETURN_IF_ERROR(Put(value, depth + 1));
  }
  FACET_RETURN_IF_ERROR(BreakLine(depth));
  return Write("}");
}

}  // namespace

std::string FloatRepr(double value) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? "nan" : (value > 0 ? "inf" : "-inf");
  }
  char buffer[64];
  const auto written =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view scientific(buffer, static_cast<size_t>(written.ptr - buffer));
  const size_t e = scientific.find('e');
  int exponent = 0;
  std::from_chars(scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1),
                  scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    return std::string(scientific);  // both write at least two digits of exponent
  }
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string text(buffer, static_cast<size_t>(fixed.ptr - buffer));
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

Result<TextPtr> ToText(const Value& value, Budget& budget) {
  if (value.is_string()) {
    return value.as_text();
  }
  MarkedString text;
  if (!value.is_undefined()) {
    FACET_RETURN_IF_ERROR(AppendRepr(text, value, budget));
  }
  return std::make_shared<const Text>(std::move(text));
}

Status AppendRepr(MarkedString& out, const Value& value, Budget& budget) {
  return Printer(out, budget).Repr(value, 0);
}

Result<MarkedString> ToJson(const Value& value, const JsonStyle& style, Budget& budget) {
  JsonWriter writer(style, budget);
  FACET_RETURN_IF_ERROR(writer.Put(value, 0));
  return writer.Take();
}

}  // namespace facet::jinja
