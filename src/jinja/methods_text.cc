// SPDX-License-Identifier: Apache-2.0
// The methods of str.
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

/// One call: the string, the method's name and the arguments.
struct MethodCall {
  Interpreter& interpreter;
  TextPtr self;
  std::string_view name;
  const Arguments& arguments;

  [[nodiscard]] Budget& budget() const { return interpreter.budget(); }
  [[nodiscard]] std::string_view text() const { return self->text(); }
};

using StringMethod = Result<Value> (*)(const MethodCall&);

template <MarkedString (*kMap)(const MarkedString&)>
Result<Value> MapMethod(const MethodCall& call) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind(call.name, call.arguments, {}, 0));
  FACET_RETURN_IF_ERROR(call.budget().Step(call.text().size() / 64));
  return MakeString(kMap(call.self->marked), call.budget());
}

Result<Value> StripMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"chars"}, 0));
  std::optional<std::string> set;
  if (bound.is_set(0)) {
    FACET_ASSIGN(const TextPtr chars, bound.String(0));
    FACET_RETURN_IF_ERROR(
        call.budget().Step(call.text().size() / 64 * (chars->text().size() / 64)));
    set = chars->text();
  }
  return MakeString(Strip(call.self->marked, set, {call.name != "rstrip", call.name != "lstrip"}),
                    call.budget());
}

Result<Value> PiecesAsList(const MethodCall& call, const Pieces& pieces) {
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const auto& [begin, end] : pieces) {
    FACET_ASSIGN(Value piece, MakeString(call.self->marked.Substring(begin, end), call.budget()));
    items.push_back(std::move(piece));
  }
  return MakeList(std::move(items), call.budget());
}

/// rfind has no linear worst case, so the product is paid.
Status PayForSearch(const MethodCall& call, std::string_view wanted, bool from_right) {
  FACET_RETURN_IF_ERROR(call.budget().Scan(call.text().size()));
  return from_right ? call.budget().Step(call.text().size() / 64 * (wanted.size() / 64)) : Status();
}

Result<Value> SplitMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"sep", "maxsplit"}, 0));
  FACET_ASSIGN(const int64_t limit, bound.Integer(1, -1));
  const bool from_right = call.name == "rsplit";
  if (!bound.is_set(0)) {
    FACET_RETURN_IF_ERROR(call.budget().Make(call.text().size() * sizeof(Value)));
    return PiecesAsList(call, SplitSpace(call.text(), limit, from_right));
  }
  FACET_ASSIGN(const TextPtr separator, bound.String(0));
  if (separator->text().empty()) {
    return Refuse("", "empty separator", "a separator");
  }
  FACET_RETURN_IF_ERROR(PayForSearch(call, separator->text(), from_right));
  return PiecesAsList(call, SplitAt(call.text(), separator->text(), limit, from_right));
}

Result<Value> SplitLinesMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"keepends"}, 0));
  FACET_RETURN_IF_ERROR(call.budget().Step(call.text().size() / 64));
  return PiecesAsList(call, SplitLines(call.text(), bound.Bool(0)));
}

Result<Value> PartitionMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"sep"}, 1));
  FACET_ASSIGN(const TextPtr separator, bound.String(0));
  if (separator->text().empty()) {
    return Refuse("", "empty separator", "a separator");
  }
  const bool from_right = call.name == "rpartition";
  FACET_RETURN_IF_ERROR(PayForSearch(call, separator->text(), from_right));
  const size_t found = from_right ? call.text().rfind(separator->text())
                                  : FindText(call.text(), separator->text(), 0);
  const Value empty = Value::String("", Origin::kTemplate);
  if (found == std::string_view::npos) {
    const Value all = Value::Of(call.self);
    return from_right ? MakeTuple({empty, empty, all}, call.budget())
                      : MakeTuple({all, empty, empty}, call.budget());
  }
  FACET_ASSIGN(Value before, MakeString(call.self->marked.Substring(0, found), call.budget()));
  FACET_ASSIGN(Value after, MakeString(call.self->marked.Substring(found + separator->text().size(),
                                                                   call.text().size()),
                                       call.budget()));
  return MakeTuple({std::move(before), Value::Of(separator), std::move(after)}, call.budget());
}

Result<Value> ReplaceMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind(call.name, call.arguments, {"old", "new", "count"}, 2));
  FACET_ASSIGN(const TextPtr old_text, bound.String(0));
  FACET_ASSIGN(const TextPtr new_text, bound.String(1));
  FACET_ASSIGN(const int64_t limit, bound.Integer(2, -1));
  FACET_RETURN_IF_ERROR(call.budget().Scan(call.text().size()));
  FACET_ASSIGN(MarkedString text, Replace(call.self->marked, old_text->marked, new_text->marked,
                                          limit, call.budget()));
  return Value::String(std::move(text));
}

/// The bytes [first, second) that the optional arguments start and end leave of the text; false
/// when start is behind the end.
Result<bool> Window(const MethodCall& call, const Bound& bound, size_t index,
                    std::pair<size_t, size_t>& window) {
  const auto size = static_cast<int64_t>(call.self->n_characters);
  FACET_ASSIGN(int64_t begin,
               bound.is_set(index) ? bound.Integer(index, 0) : Result<int64_t>(int64_t{0}));
  FACET_ASSIGN(int64_t end,
               bound.is_set(index + 1) ? bound.Integer(index + 1, size) : Result<int64_t>(size));
  begin = begin < 0 ? std::max<int64_t>(0, begin + size) : begin;
  end = std::min(end < 0 ? std::max<int64_t>(0, end + size) : end, size);
  window = {ByteOffset(*call.self, static_cast<size_t>(begin)),
            ByteOffset(*call.self, static_cast<size_t>(end))};
  return begin <= end;
}

Result<Value> FixMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind(call.name, call.arguments, {"prefix", "start", "end"}, 1));
  std::pair<size_t, size_t> window;
  FACET_ASSIGN(const bool is_window, Window(call, bound, 1, window));
  const std::string_view text =
      call.text().substr(window.first, is_window ? window.second - window.first : 0);
  std::vector<Value> wanted = {bound[0]};
  if (bound[0].is_sequence() && bound[0].as_sequence().is_tuple()) {
    wanted = bound[0].as_sequence().items();
  }
  bool has_one = false;
  for (const Value& fix : wanted) {
    if (!fix.is_string()) {
      return Refuse("", fmt::format("{}() with a {}", call.name, fix.TypeName()),
                    "a string or a tuple of strings");
    }
    const std::string& bytes = fix.as_string();
    const bool fits = is_window && bytes.size() <= text.size();
    has_one = has_one || (fits && (call.name == "startswith"
                                       ? text.substr(0, bytes.size())
                                       : text.substr(text.size() - bytes.size())) == bytes);
  }
  return Value::Bool(has_one);
}

Result<Value> FindMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind(call.name, call.arguments, {"sub", "start", "end"}, 1));
  FACET_ASSIGN(const TextPtr wanted, bound.String(0));
  const bool from_right = call.name == "rfind" || call.name == "rindex";
  FACET_RETURN_IF_ERROR(PayForSearch(call, wanted->text(), from_right));
  std::pair<size_t, size_t> window;
  FACET_ASSIGN(const bool is_window, Window(call, bound, 1, window));
  const std::string_view text = call.text().substr(0, window.second);
  size_t found = std::string_view::npos;
  if (is_window) {
    found = from_right ? text.rfind(wanted->text()) : FindText(text, wanted->text(), window.first);
  }
  if (found == std::string_view::npos || found < window.first) {
    if (call.name == "index" || call.name == "rindex") {
      return Refuse("", "substring not found", "one that is there");
    }
    return Value::Integer(-1);
  }
  return Value::Integer(static_cast<int64_t>(CountCodePoints(text.substr(0, found))));
}

Result<Value> CountMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind(call.name, call.arguments, {"sub", "start", "end"}, 1));
  FACET_ASSIGN(const TextPtr wanted, bound.String(0));
  FACET_RETURN_IF_ERROR(PayForSearch(call, wanted->text(), false));
  std::pair<size_t, size_t> window;
  FACET_ASSIGN(const bool is_window, Window(call, bound, 1, window));
  if (!is_window) {
    return Value::Integer(0);
  }
  const std::string_view text = call.text().substr(0, window.second);
  if (wanted->text().empty()) {
    return Value::Integer(static_cast<int64_t>(CountCodePoints(text.substr(window.first))) + 1);
  }
  int64_t count = 0;
  for (size_t at = FindText(text, wanted->text(), window.first); at != std::string_view::npos;
       at = FindText(text, wanted->text(), at + wanted->text().size())) {
    FACET_RETURN_IF_ERROR(call.budget().Step());
    ++count;
  }
  return Value::Integer(count);
}

Result<Value> JoinMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"iterable"}, 1));
  FACET_ASSIGN(const SequencePtr items, Iterate(bound[0], call.budget()));
  MarkedString out;
  for (size_t i = 0; i < items->size(); ++i) {
    const Value& item = items->items()[i];
    if (!item.is_string()) {
      return Refuse(
          "", fmt::format("sequence item {}: expected str instance, {} found", i, item.TypeName()),
          "strings");
    }
    FACET_RETURN_IF_ERROR(
        call.budget().Make(item.as_text()->marked.memory() + call.self->marked.memory()));
    if (i > 0) {
      out.Append(call.self->marked);
    }
    out.Append(item.as_text()->marked);
  }
  return Value::String(std::move(out));
}

bool HoldsForAll(std::string_view text, std::string_view name) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(at, 4));
    const char32_t c = step.character;
    const bool is_first = at == 0;
    at += static_cast<size_t>(step.size);
    const bool holds = name == "isalpha"       ? IsAlpha(c)
                       : name == "isdigit"     ? IsDigit(c)
                       : name == "isdecimal"   ? IsDecimal(c)
                       : name == "isnumeric"   ? IsNumeric(c)
                       : name == "isspace"     ? IsSpace(c)
                       : name == "isascii"     ? c < 0x80
                       : name == "isprintable" ? IsPrintable(c)
                       : name == "isidentifier"
                           ? (is_first ? IsIdentifierStart(c) : IsIdentifierPart(c))
                           : IsAlpha(c) || IsDecimal(c) || IsDigit(c) || IsNumeric(c);
    if (!holds) {
      return false;
    }
  }
  return !text.empty() || name == "isascii" || name == "isprintable";
}

Result<Value> IsMethod(const MethodCall& call) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind(call.name, call.arguments, {}, 0));
  FACET_RETURN_IF_ERROR(call.budget().Step(call.text().size() / 64));
  if (call.name == "isupper" || call.name == "islower" || call.name == "istitle") {
    return Value::Bool(
        HasCase(call.text(), call.name == "isupper"
                                 ? CaseKind::kUpper
                                 : (call.name == "islower" ? CaseKind::kLower : CaseKind::kTitle)));
  }
  return Value::Bool(HoldsForAll(call.text(), call.name));
}

Result<Value> PadMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"width", "fillchar"}, 1));
  FACET_ASSIGN(const int64_t width, bound.Integer(0, 0));
  MarkedString fill(" ", Origin::kTemplate);
  if (bound.has(1)) {
    FACET_ASSIGN(const TextPtr given, bound.String(1));
    if (given->n_characters != 1) {
      return Refuse("", fmt::format("a fill of {} characters", given->n_characters), "one");
    }
    fill = given->marked;
  }
  FACET_ASSIGN(
      MarkedString text,
      Pad(*call.self, width, fill, call.name == "center" ? '^' : (call.name == "ljust" ? '<' : '>'),
          call.budget()));
  return Value::String(std::move(text));
}

Result<Value> ZeroFillMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"width"}, 1));
  FACET_ASSIGN(const int64_t width, bound.Integer(0, 0));
  const size_t sign =
      !call.text().empty() && (call.text()[0] == '-' || call.text()[0] == '+') ? 1 : 0;
  const Text digits(call.self->marked.Substring(sign, call.text().size()));
  FACET_ASSIGN(MarkedString padded, Pad(digits, width - static_cast<int64_t>(sign),
                                        MarkedString("0", Origin::kTemplate), '>', call.budget()));
  MarkedString text = call.self->marked.Substring(0, sign);
  text.Append(padded);
  return MakeString(std::move(text), call.budget());
}

Result<Value> RemoveFixMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"fix"}, 1));
  FACET_ASSIGN(const TextPtr fix, bound.String(0));
  const size_t size = fix->text().size();
  if (size > call.text().size()) {
    return Value::Of(call.self);
  }
  const bool is_prefix = call.name == "removeprefix";
  const size_t rest = call.text().size() - size;
  if ((is_prefix ? call.text().substr(0, size) : call.text().substr(rest)) != fix->text()) {
    return Value::Of(call.self);
  }
  return MakeString(is_prefix ? call.self->marked.Substring(size, call.text().size())
                              : call.self->marked.Substring(0, rest),
                    call.budget());
}

Result<Value> ExpandTabsMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"tabsize"}, 0));
  FACET_ASSIGN(const int64_t size, bound.Integer(0, 8));
  MarkedString out;
  int64_t column = 0;
  size_t kept = 0;
  for (size_t at = 0; at < call.text().size(); ++at) {
    const char c = call.text()[at];
    if (c == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      FACET_RETURN_IF_ERROR(call.budget().Make(static_cast<size_t>(blanks)));
      out.Append(call.self->marked, kept, at);
      out.Append(std::string(static_cast<size_t>(blanks), ' '), call.self->marked.OriginAt(at));
      column += blanks;
      kept = at + 1;
    } else if (c == '\n' || c == '\r') {
      column = 0;
    } else {
      column += (static_cast<uint8_t>(c) & 0xC0u) != 0x80u ? 1 : 0;
    }
  }
  FACET_RETURN_IF_ERROR(call.budget().Make(call.text().size()));
  out.Append(call.self->marked, kept, call.text().size());
  return Value::String(std::move(out));
}

Result<Value> FormatMethod(const MethodCall& call) {
  if (call.name == "format") {
    return FormatBraces(call.interpreter, *call.self, call.arguments);
  }
  FACET_ASSIGN(const Bound bound, Bound::Bind(call.name, call.arguments, {"mapping"}, 1));
  if (!bound[0].is_dict()) {
    return Refuse("", fmt::format("format_map() with a {}", bound[0].TypeName()), "a dict");
  }
  Arguments named;
  for (const auto& [key, value] : bound[0].as_dict().entries()) {
    if (key.is_string()) {
      named.keyword.emplace_back(key.as_string(), value);
    }
  }
  return FormatBraces(call.interpreter, *call.self, named);
}

Result<Value> EncodeMethod(const MethodCall& call) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind(call.name, call.arguments, {"encoding", "errors"}, 0));
  if (bound.has(0) && !(bound[0].is_string() &&
                        (bound[0].as_string() == "utf-8" || bound[0].as_string() == "utf8"))) {
    return Refuse("", "encode() with another encoding", "\"utf-8\"");
  }
  return Value::Of(ObjectPtr(std::make_shared<Bytes>(call.self)));
}

struct Row {
  std::string_view name;
  StringMethod method;
};
constexpr Row kMethods[] = {
    {"capitalize", MapMethod<Capitalize>},
    {"casefold", MapMethod<Lower>},
    {"center", PadMethod},
    {"count", CountMethod},
    {"encode", EncodeMethod},
    {"endswith", FixMethod},
    {"expandtabs", ExpandTabsMethod},
    {"find", FindMethod},
    {"format", FormatMethod},
    {"format_map", FormatMethod},
    {"index", FindMethod},
    {"isalnum", IsMethod},
    {"isalpha", IsMethod},
    {"isascii", IsMethod},
    {"isdecimal", IsMethod},
    {"isdigit", IsMethod},
    {"isidentifier", IsMethod},
    {"islower", IsMethod},
    {"isnumeric", IsMethod},
    {"isprintable", IsMethod},
    {"isspace", IsMethod},
    {"istitle", IsMethod},
    {"isupper", IsMethod},
    {"join", JoinMethod},
    {"ljust", PadMethod},
    {"lower", MapMethod<Lower>},
    {"lstrip", StripMethod},
    {"partition", PartitionMethod},
    {"removeprefix", RemoveFixMethod},
    {"removesuffix", RemoveFixMethod},
    {"replace", ReplaceMethod},
    {"rfind", FindMethod},
    {"rindex", FindMethod},
    {"rjust", PadMethod},
    {"rpartition", PartitionMethod},
    {"rsplit", SplitMethod},
    {"rstrip", StripMethod},
    {"split", SplitMethod},
    {"splitlines", SplitLinesMethod},
    {"startswith", FixMethod},
    {"strip", StripMethod},
    {"swapcase", MapMethod<SwapCase>},
    {"title", MapMethod<Title>},
    {"upper", MapMethod<Upper>},
    {"zfill", ZeroFillMethod},
};

const Row* FindRow(std::string_view name) {
  const auto* found =
      std::lower_bound(std::begin(kMethods), std::end(kMethods), name,
                       [](const Row& row, std::string_view wanted) { return row.name < wanted; });
  return found != std::end(kMethods) && found->name == name ? found : nullptr;
}

}  // namespace

bool HasStringMethod(std::string_view name) { return FindRow(name) != nullptr; }

Result<Value> CallStringMethod(Interpreter& interpreter, const Value& self, std::string_view name,
                               const Arguments& arguments) {
  return FindRow(name)->method({interpreter, self.as_text(), name, arguments});
}

}  // namespace facet::jinja
