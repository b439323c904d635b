// SPDX-License-Identifier: Apache-2.0
// Filters over text. What is not a string is printed first, as in Jinja.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "jinja/arithmetic.h"
#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/printing.h"
#include "jinja/text_format.h"
#include "jinja/text_ops.h"
#include "jinja/unicode.h"

namespace facet::jinja {
namespace {

template <MarkedString (*kMap)(const MarkedString&)>
Result<Value> MapFilter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("the filter", arguments, {}, 0));
  FACET_ASSIGN(const TextPtr text, ToText(input, interpreter.budget()));
  FACET_RETURN_IF_ERROR(interpreter.budget().Step(text->text().size() / 64));
  return MakeString(kMap(text->marked), interpreter.budget());
}

/// Jinja's title starts words after blanks, hyphens and opening brackets only.
MarkedString TitleOfWords(const MarkedString& text) {
  bool is_inside = false;
  return MapCharacters(text, [&is_inside](std::string& out, char32_t c) {
    const bool is_separator =
        IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (is_separator) {
      AppendUtf8(out, c);
    } else if (is_inside) {
      AppendLower(out, c);
    } else {
      AppendUpper(out, c);
    }
    is_inside = !is_separator;
  });
}

MarkedString EscapeHtml(const MarkedString& text) {
  return MapCharacters(text, [](std::string& out, char32_t c) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        AppendUtf8(out, c);
    }
  });
}

MarkedString Same(const MarkedString& text) { return text; }

Result<Value> Trim(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("trim", arguments, {"chars"}, 0));
  FACET_ASSIGN(const Value text, interpreter.TextValue(input));
  return CallStringMethod(interpreter, text, "strip", arguments);
}

Result<Value> ReplaceFilter(Interpreter& interpreter, const Value& input,
                            const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("replace", arguments, {"old", "new", "count"}, 2));
  Budget& budget = interpreter.budget();
  FACET_ASSIGN(const TextPtr text, ToText(input, budget));
  FACET_ASSIGN(const TextPtr old_text, ToText(bound[0], budget));
  FACET_ASSIGN(const TextPtr new_text, ToText(bound[1], budget));
  FACET_ASSIGN(const int64_t limit,
               bound.is_set(2) ? bound.Integer(2, -1) : Result<int64_t>(int64_t{-1}));
  FACET_RETURN_IF_ERROR(budget.Scan(text->text().size()));
  FACET_ASSIGN(MarkedString replaced,
               Replace(text->marked, old_text->marked, new_text->marked, limit, budget));
  return Value::String(std::move(replaced));
}

Result<Value> Format(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  Budget& budget = interpreter.budget();
  if (!arguments.positional.empty() && !arguments.keyword.empty()) {
    return Refuse("", "can't handle positional and keyword arguments at the same time");
  }
  FACET_ASSIGN(const TextPtr text, ToText(input, budget));
  if (arguments.keyword.empty()) {
    FACET_ASSIGN(const Value values, MakeTuple(arguments.positional, budget));
    return FormatPercent(*text, values, budget);
  }
  std::vector<Dict::Entry> entries;
  for (const auto& [name, value] : arguments.keyword) {
    entries.emplace_back(Value::String(name, Origin::kTemplate), value);
  }
  FACET_ASSIGN(const Value named, MakeDict(std::move(entries), budget));
  return FormatPercent(*text, named, budget);
}

Result<Value> Indent(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("indent", arguments, {"width", "first", "blank"}, 0));
  if (!input.is_string()) {
    return Refuse("",
                  input.is_undefined() ? input.UndefinedReason()
                                       : fmt::format("indent of a {}", input.TypeName()),
                  "a string");
  }
  Budget& budget = interpreter.budget();
  MarkedString indent;
  if (bound[0].is_string()) {
    indent = bound[0].as_text()->marked;
  } else {
    FACET_ASSIGN(const int64_t width, bound.Integer(0, 4));
    FACET_ASSIGN(indent, Repeat(MarkedString(" ", Origin::kTemplate), width, budget));
  }
  MarkedString source = input.as_text()->marked;
  source.Append("\n", Origin::kTemplate);
  const Pieces lines = SplitLines(source.text(), false);
  MarkedString out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto& [begin, end] = lines[i];
    FACET_RETURN_IF_ERROR(budget.Make(end - begin + indent.memory() + 1));
    if (i > 0) {
      out.Append("\n", source.OriginAt(begin - 1));
    }
    if (i == 0 ? bound.Bool(1) : bound.Bool(2) || begin != end) {
      out.Append(indent);
    }
    out.Append(source, begin, end);
  }
  return Value::String(std::move(out));
}

Result<Value> Truncate(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0));
  FACET_ASSIGN(const int64_t length, bound.Integer(0, 255));
  FACET_ASSIGN(const int64_t leeway,
               bound.is_set(3) ? bound.Integer(3, 5) : Result<int64_t>(int64_t{5}));
  FACET_ASSIGN(const TextPtr end, bound.has(2) ? bound.String(2)
                                               : Result<TextPtr>(std::make_shared<const Text>(
                                                     MarkedString("...", Origin::kTemplate))));
  const auto end_size = static_cast<int64_t>(end->n_characters);
  if (length < end_size || leeway < 0 || leeway > INT32_MAX || length > INT32_MAX) {
    return Refuse("", fmt::format("truncate to {} characters with a leeway of {}", length, leeway),
                  fmt::format("at least {} and 0", end_size));
  }
  // What is short enough stays as it is, whatever it is.
  if (!input.is_string() ||
      static_cast<int64_t>(input.as_text()->n_characters) <= length + leeway) {
    FACET_ASSIGN(const size_t size, LengthOf(input));
    return static_cast<int64_t>(size) <= length + leeway
               ? Result<Value>(input)
               : Refuse("", fmt::format("truncate of a {}", input.TypeName()), "a string");
  }
  const TextPtr& text = input.as_text();
  FACET_RETURN_IF_ERROR(interpreter.budget().Scan(text->text().size()));
  MarkedString kept =
      text->marked.Substring(0, ByteOffset(*text, static_cast<size_t>(length - end_size)));
  if (!bound.Bool(1)) {
    const size_t blank = kept.text().rfind(' ');
    kept = kept.Substring(0, std::min(blank, kept.size()));
  }
  kept.Append(end->marked);
  return MakeString(std::move(kept), interpreter.budget());
}

Result<Value> Center(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("center", arguments, {"width"}, 0));
  FACET_ASSIGN(const int64_t width, bound.Integer(0, 80));
  FACET_ASSIGN(const TextPtr text, ToText(input, interpreter.budget()));
  FACET_ASSIGN(MarkedString padded,
               Pad(*text, width, MarkedString(" ", Origin::kTemplate), '^', interpreter.budget()));
  return Value::String(std::move(padded));
}

Result<Value> WordCount(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("wordcount", arguments, {}, 0));
  FACET_ASSIGN(const TextPtr text, ToText(input, interpreter.budget()));
  FACET_RETURN_IF_ERROR(interpreter.budget().Step(text->text().size() / 64));
  int64_t count = 0;
  bool is_inside = false;
  for (size_t at = 0; at < text->text().size();) {
    const Utf8Step step = DecodeUtf8(std::string_view(text->text()).substr(at, 4));
    at += static_cast<size_t>(step.size);
    const char32_t c = step.character;
    const bool is_word = c == '_' || IsAlpha(c) || IsNumeric(c) || IsDigit(c);
    count += is_word && !is_inside ? 1 : 0;
    is_inside = is_word;
  }
  return Value::Integer(count);
}

Result<Value> String(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("string", arguments, {}, 0));
  return interpreter.TextValue(input);
}

Result<Value> PrettyPrint(Interpreter& interpreter, const Value& input,
                          const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("pprint", arguments, {}, 0));
  MarkedString shown;
  FACET_RETURN_IF_ERROR(AppendRepr(shown, input, interpreter.budget()));
  constexpr size_t kLine = 80;
  if (shown.size() > kLine) {
    return Refuse("", "pprint of a value longer than a line", "tojson(indent=2)");
  }
  return Value::String(std::move(shown));
}

Result<MarkedString> Quote(Interpreter& interpreter, const Value& value, bool is_query) {
  FACET_ASSIGN(const TextPtr text, ToText(value, interpreter.budget()));
  FACET_RETURN_IF_ERROR(interpreter.budget().Make(text->text().size() * 3));
  return MapCharacters(text->marked, [is_query](std::string& out, char32_t c) {
    const bool is_plain =
        c < 0x80 &&
        ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("_.-~").find(static_cast<char>(c)) != std::string_view::npos ||
         (c == '/' && !is_query));
    if (is_plain) {
      out.push_back(static_cast<char>(c));
    } else if (c == ' ' && is_query) {
      out.push_back('+');
    } else {
      std::string bytes;
      AppendUtf8(bytes, c);
      for (const char byte : bytes) {
        out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
      }
    }
  });
}

Result<Value> UrlEncode(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("urlencode", arguments, {}, 0));
  if (!input.is_dict() && !input.is_sequence()) {
    FACET_ASSIGN(MarkedString quoted, Quote(interpreter, input, false));
    return Value::String(std::move(quoted));
  }
  Value pairs = input;
  if (input.is_dict()) {
    FACET_ASSIGN(pairs, CallMethod(interpreter, input, "items", {}));
  }
  FACET_ASSIGN(const SequencePtr items, Iterate(pairs, interpreter.budget()));
  MarkedString out;
  for (const Value& pair : items->items()) {
    FACET_ASSIGN(const SequencePtr parts, Iterate(pair, interpreter.budget()));
    if (parts->size() != 2) {
      return Refuse("", fmt::format("{} values to unpack", parts->size()), "2");
    }
    FACET_ASSIGN(const MarkedString key, Quote(interpreter, parts->items()[0], true));
    FACET_ASSIGN(const MarkedString value, Quote(interpreter, parts->items()[1], true));
    out.Append(out.empty() ? "" : "&", Origin::kTemplate);
    out.Append(key);
    out.Append("=", Origin::kTemplate);
    out.Append(value);
  }
  return Value::String(std::move(out));
}

Result<Value> XmlAttributes(Interpreter& interpreter, const Value& input,
                            const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("xmlattr", arguments, {"autospace"}, 0));
  if (!input.is_dict()) {
    return Refuse("", fmt::format("xmlattr of a {}", input.TypeName()), "a dict");
  }
  Budget& budget = interpreter.budget();
  MarkedString out;
  for (const auto& [key, value] : input.as_dict().entries()) {
    if (value.is_none() || value.is_undefined()) {
      continue;
    }
    if (!key.is_string() || key.as_string().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      return Refuse("", "a character in an attribute name that cannot stand there", "a plain name");
    }
    FACET_ASSIGN(const TextPtr text, ToText(value, budget));
    FACET_RETURN_IF_ERROR(budget.Make(6 * (key.as_string().size() + text->marked.memory())));
    out.Append(out.empty() ? "" : " ", Origin::kTemplate);
    out.Append(EscapeHtml(key.as_text()->marked));
    out.Append("=\"", Origin::kTemplate);
    out.Append(EscapeHtml(text->marked));
    out.Append("\"", Origin::kTemplate);
  }
  if (!bound.Bool(0, true) || out.empty()) {
    return Value::String(std::move(out));
  }
  MarkedString spaced(" ", Origin::kTemplate);
  spaced.Append(out);
  return Value::String(std::move(spaced));
}

/// Removes comments and tags, folds white space, and decodes the entities that escape makes.
Result<Value> StripTags(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("striptags", arguments, {}, 0));
  Budget& budget = interpreter.budget();
  FACET_ASSIGN(const TextPtr text, ToText(input, budget));
  FACET_RETURN_IF_ERROR(budget.Make(2 * text->marked.memory()));
  MarkedString plain;
  size_t begin = 0;
  for (const auto& [open, close] :
       {std::pair<std::string_view, std::string_view>("<!--", "-->"), {"<", ">"}}) {
    const MarkedString source =
        open == "<!--" ? text->marked : std::exchange(plain, MarkedString());
    begin = 0;
    for (size_t at = source.text().find(open); at != std::string::npos;
         at = source.text().find(open, begin)) {
      const size_t end = source.text().find(close, at + open.size());
      if (end == std::string::npos) {
        break;
      }
      plain.Append(source, begin, at);
      begin = end + close.size();
    }
    plain.Append(source, begin, source.size());
  }
  MarkedString out;
  for (const auto& [first, last] : SplitSpace(plain.text(), -1, false)) {
    out.Append(out.empty() ? "" : " ", Origin::kTemplate);
    out.Append(plain, first, last);
  }
  static constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&lt;", "<"},    {"&gt;", ">"},  {"&#34;", "\""},
      {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  for (const auto& [entity, character] : kEntities) {
    // What an entity in the data stands for is data.
    FACET_ASSIGN(out, Replace(out, MarkedString(std::string(entity), Origin::kUser),
                              MarkedString(std::string(character), Origin::kUser), -1, budget));
  }
  return Value::String(std::move(out));
}

Result<Value> FileSize(Interpreter&, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("filesizeformat", arguments, {"binary"}, 0));
  const std::optional<double> parsed =
      input.is_string()
          ? ParseFloat(input.as_string())
          : (input.is_number() ? std::optional<double>(input.as_double()) : std::nullopt);
  if (!parsed.has_value()) {
    return Refuse("", fmt::format("filesizeformat of a {}", input.TypeName()), "a number");
  }
  const bool is_binary = bound.Bool(0);
  const double base = is_binary ? 1024 : 1000;
  const auto result = [](std::string text) {
    return Value::String(std::move(text), Origin::kTemplate);
  };
  if (*parsed == 1) {
    return result("1 Byte");
  }
  if (!(*parsed >= base)) {
    return result(fmt::format("{:.0f} Bytes", std::trunc(*parsed) + 0.0));
  }
  double unit = base * base;
  size_t prefix = 0;
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  while (*parsed >= unit && prefix + 1 < kPrefixes.size()) {
    unit *= base;
    ++prefix;
  }
  const char letter = prefix == 0 && is_binary ? 'K' : kPrefixes[prefix];
  return result(fmt::format("{} {}{}", FixedDigits(base * *parsed / unit, 1), letter,
                            is_binary ? "iB" : "B"));
}

Result<Value> ToJsonFilter(Interpreter& interpreter, const Value& input,
                           const Arguments& arguments) {
  FACET_ASSIGN(
      const Bound bound,
      Bound::Bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
  Budget& budget = interpreter.budget();
  JsonStyle style;
  style.is_ascii = bound.Bool(0);
  style.has_sorted_keys = bound.Bool(3);
  if (bound.is_set(1)) {
    if (bound[1].is_string()) {
      style.indent = bound[1].as_text()->marked;
    } else {
      FACET_ASSIGN(const int64_t width, bound.Integer(1, 0));
      FACET_ASSIGN(style.indent, Repeat(MarkedString(" ", Origin::kTemplate), width, budget));
    }
    style.item_separator = MarkedString(",", Origin::kTemplate);
  }
  if (bound.is_set(2)) {
    FACET_ASSIGN(const SequencePtr separators, Iterate(bound[2], budget));
    if (separators->size() != 2 || !separators->items()[0].is_string() ||
        !separators->items()[1].is_string()) {
      return Refuse("", "separators of another form", "two strings");
    }
    style.item_separator = separators->items()[0].as_text()->marked;
    style.key_separator = separators->items()[1].as_text()->marked;
  }
  FACET_ASSIGN(MarkedString json, ToJson(input, style, budget));
  return Value::String(std::move(json));
}

}  // namespace

FilterFunction FindTextFilter(std::string_view name) {
  struct Row {
    std::string_view name;
    FilterFunction filter;
  };
  static constexpr Row kFilters[] = {
      {"capitalize", MapFilter<Capitalize>},
      {"center", Center},
      {"e", MapFilter<EscapeHtml>},
      {"escape", MapFilter<EscapeHtml>},
      {"filesizeformat", FileSize},
      {"forceescape", MapFilter<EscapeHtml>},
      {"format", Format},
      {"indent", Indent},
      {"lower", MapFilter<Lower>},
      {"pprint", PrettyPrint},
      {"replace", ReplaceFilter},
      {"safe", MapFilter<Same>},
      {"string", String},
      {"striptags", StripTags},
      {"title", MapFilter<TitleOfWords>},
      {"tojson", ToJsonFilter},
      {"trim", Trim},
      {"truncate", Truncate},
      {"upper", MapFilter<Upper>},
      {"urlencode", UrlEncode},
      {"wordcount", WordCount},
      {"xmlattr", XmlAttributes},
  };
  const auto* found =
      std::lower_bound(std::begin(kFilters), std::end(kFilters), name,
                       [](const Row& row, std::string_view wanted) { return row.name < wanted; });
  return found != std::end(kFilters) && found->name == name ? found->filter : nullptr;
}

}  // namespace facet::jinja
