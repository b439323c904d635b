// SPDX-License-Identifier: Apache-2.0
#include "jinja/text_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"
#include "jinja/interpreter.h"
#include "jinja/printing.h"

namespace facet::jinja {
namespace {

constexpr int64_t kMaxPrecision = 400;

/// Both mini-languages end here: [[fill]align][sign][#][0][width][,][.precision][type]
struct Spec {
  std::string fill = " ";
  char align = 0;  ///< '<', '>', '^', '=', or 0 for the type's own
  char sign = '-';
  bool is_alternate = false;
  char grouping = 0;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

/// Reads digits; false when the number is beyond any use.
bool ReadNumber(std::string_view text, size_t& at, int64_t& number) {
  number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = number * 10 + (text[at++] - '0');
    if (number > INT32_MAX) {
      return false;
    }
  }
  return true;
}

bool IsAlign(std::string_view text, size_t at) {
  return at < text.size() && std::string_view("<>^=").find(text[at]) != std::string_view::npos;
}

Error BadFormat(std::string_view format, std::string_view what) {
  return Refuse("", fmt::format("{} in the format \"{}\"", what, format), "a valid format");
}

Result<Spec> ParseSpec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  const size_t fill_size = text.empty() ? 0 : static_cast<size_t>(DecodeUtf8(text).size);
  if (fill_size > 0 && IsAlign(text, fill_size)) {
    spec.fill = std::string(text.substr(0, fill_size));
    spec.align = text[fill_size];
    at = fill_size + 1;
  } else if (IsAlign(text, 0)) {
    spec.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) {
    spec.sign = text[at++];
  }
  if (at < text.size() && text[at] == '#') {
    spec.is_alternate = true;
    ++at;
  }
  if (at < text.size() && text[at] == '0') {
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
    ++at;
  }
  bool is_ok = ReadNumber(text, at, spec.width);
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) {
    spec.grouping = text[at++];
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    is_ok = is_ok && at < text.size() && text[at] >= '0' && text[at] <= '9' &&
            ReadNumber(text, at, spec.precision);
  }
  if (at < text.size()) {
    spec.type = text[at++];
  }
  if (!is_ok || at != text.size()) {
    return BadFormat(text, "something unknown");
  }
  return spec;
}

std::string Digits(uint64_t number, unsigned base, bool is_upper) {
  const std::string_view characters = is_upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits.insert(digits.begin(), characters[number % base]);
    number /= base;
  } while (number != 0);
  return digits;
}

void Group(std::string& digits, char separator, size_t size) {
  const size_t end = std::min(digits.find_first_of(".eE"), digits.size());
  for (size_t i = end; i > size; i -= size) {
    digits.insert(i - size, 1, separator);
  }
}

/// Digits without sign of a float; `type` is one of e E f F g G %, or 0 for Python's "as short as
/// it goes".
std::string FloatDigits(double magnitude, const Spec& spec) {
  const char type = spec.type == 0 ? 'g' : spec.type;
  if (!std::isfinite(magnitude)) {
    const std::string text = std::isnan(magnitude) ? "nan" : "inf";
    return type == 'E' || type == 'F' || type == 'G' ? (text == "nan" ? "NAN" : "INF") : text;
  }
  if (spec.type == 0 && spec.precision < 0) {
    return FloatRepr(magnitude);
  }
  const int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
  const std::string pattern =
      fmt::format("%{}.*{}", spec.is_alternate ? "#" : "", type == '%' ? 'f' : type);
  char buffer[1024];
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): the pattern is made here
  const int size = std::snprintf(buffer, sizeof(buffer), pattern.c_str(), precision,
                                 type == '%' ? magnitude * 100 : magnitude);
  std::string text(buffer, static_cast<size_t>(size));
  if (spec.type == 0 && text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return type == '%' ? text + "%" : text;
}

/// The number with sign and digits, without padding. `prefix` receives sign and 0x, after which
/// zeros are filled in.
Result<std::string> NumberDigits(const Value& value, const Spec& spec, std::string& prefix) {
  const bool is_float_type =
      spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  const bool is_integer_type =
      spec.type != 0 && std::string_view("bdoxXnc").find(spec.type) != std::string_view::npos;
  if (spec.precision > kMaxPrecision) {
    return Refuse("", fmt::format("a precision of {}", spec.precision),
                  fmt::format("at most {}", kMaxPrecision));
  }
  if ((!is_float_type && !is_integer_type && spec.type != 0) ||
      (value.is_float() && is_integer_type)) {
    return Refuse("",
                  fmt::format("the format code \"{}\" for an object of type '{}'", spec.type,
                              value.TypeName()),
                  "one for that type");
  }
  std::string digits;
  bool is_negative = false;
  if (value.is_float() || is_float_type) {
    const double number = value.as_double();
    is_negative = std::signbit(number) && !std::isnan(number);
    digits = FloatDigits(std::fabs(number), spec);
  } else if (value.is_big_integer()) {
    if (spec.type != 0 && spec.type != 'd') {
      return Refuse("", "an integer beyond 64 bits in another base", "a smaller one");
    }
    is_negative = value.as_digits().front() == '-';
    digits = value.as_digits().substr(is_negative ? 1 : 0);
  } else {
    const int64_t number = value.as_integer();
    is_negative = number < 0;
    const uint64_t magnitude =
        is_negative ? uint64_t{0} - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    const unsigned base =
        spec.type == 'b'
            ? 2
            : (spec.type == 'o' ? 8 : (spec.type == 'x' || spec.type == 'X' ? 16 : 10));
    digits = Digits(magnitude, base, spec.type == 'X');
    if (spec.is_alternate && base != 10) {
      prefix = fmt::format("0{}", spec.type);
    }
  }
  if (spec.grouping != 0) {
    Group(digits, spec.grouping,
          spec.type == 'x' || spec.type == 'X' || spec.type == 'b' || spec.type == 'o' ? 4 : 3);
  }
  prefix = (is_negative ? "-" : (spec.sign == '-' ? "" : std::string(1, spec.sign))) + prefix;
  return digits;
}

/// Appends `text` padded to the width.
Status AppendPadded(MarkedString& out, const MarkedString& prefix, const MarkedString& text,
                    const Spec& spec, char default_align, Budget& budget) {
  const auto size =
      static_cast<int64_t>(CountCodePoints(prefix.text()) + CountCodePoints(text.text()));
  const int64_t padding = std::max<int64_t>(0, spec.width - size);
  FACET_RETURN_IF_ERROR(
      budget.Make(prefix.size() + text.memory() + static_cast<size_t>(padding) * spec.fill.size()));
  const auto pad = [&out, &spec](int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      out.Append(spec.fill, Origin::kTemplate);
    }
  };
  const char align = spec.align == 0 ? default_align : spec.align;
  const int64_t before = align == '>' || align == '=' ? padding : (align == '^' ? padding / 2 : 0);
  if (align == '=') {
    out.Append(prefix);
    pad(before);
  } else {
    pad(before);
    out.Append(prefix);
  }
  out.Append(text);
  pad(padding - before);
  return {};
}

Status AppendFormatted(MarkedString& out, const Value& value, const Spec& spec, Budget& budget) {
  const bool is_text_type = spec.type == 's' || (spec.type == 0 && !value.is_number());
  if (value.is_number() && !is_text_type && !(value.is_bool() && spec.type == 0)) {
    std::string prefix;
    FACET_ASSIGN(std::string digits, NumberDigits(value, spec, prefix));
    return AppendPadded(out, MarkedString(std::move(prefix), Origin::kTemplate),
                        MarkedString(std::move(digits), Origin::kTemplate), spec, '>', budget);
  }
  FACET_ASSIGN(const TextPtr text, ToText(value, budget));
  if (spec.type != 0 && spec.type != 's') {
    return Refuse("",
                  fmt::format("the format code \"{}\" for an object of type '{}'", spec.type,
                              value.TypeName()),
                  "\"s\"");
  }
  MarkedString part = text->marked;
  if (spec.precision >= 0 && static_cast<size_t>(spec.precision) < text->n_characters) {
    size_t end = 0;
    for (int64_t i = 0; i < spec.precision; ++i) {
      end += static_cast<size_t>(DecodeUtf8(std::string_view(text->text()).substr(end, 4)).size);
    }
    part = part.Substring(0, end);
  }
  return AppendPadded(out, MarkedString(), part, spec, '<', budget);
}

/// One "%..." after another.
class PercentFormatter {
 public:
  PercentFormatter(const Text& format, const Value& arguments, Budget& budget)
      : format_(format), text_(format.text()), arguments_(arguments), budget_(budget) {}

  Result<Value> Run() {
    size_t at = 0;
    while (at < text_.size()) {
      const size_t percent = std::min(text_.find('%', at), text_.size());
      FACET_RETURN_IF_ERROR(budget_.Make(percent - at));
      out_.Append(format_.marked, at, percent);
      at = percent;
      if (at < text_.size()) {
        FACET_RETURN_IF_ERROR(Conversion(++at));
      }
    }
    const bool is_tuple = arguments_.is_sequence() && arguments_.as_sequence().is_tuple();
    // What has items by key or number may be left over, as in Python.
    const bool may_be_unused = arguments_.is_dict() || arguments_.is_undefined() ||
                               (arguments_.is_sequence() && arguments_.as_sequence().has_index());
    const size_t n_given = is_tuple ? arguments_.as_sequence().size() : 1;
    if (n_used_ < n_given && (is_tuple || !may_be_unused)) {
      return Refuse("", "not all arguments converted during string formatting");
    }
    return Value::String(std::move(out_));
  }

 private:
  Result<Value> NextArgument(std::string_view key, bool has_key) {
    if (has_key) {
      const Value* value = arguments_.is_dict() ? arguments_.as_dict().Find(key) : nullptr;
      if (value == nullptr) {
        return Refuse("", fmt::format("no value \"{}\" to format", key), "a dict that has it");
      }
      return *value;
    }
    const bool is_tuple = arguments_.is_sequence() && arguments_.as_sequence().is_tuple();
    const size_t n_arguments = is_tuple ? arguments_.as_sequence().size() : 1;
    if (n_used_ >= n_arguments) {
      return Refuse("", "not enough arguments for format string");
    }
    return is_tuple ? arguments_.as_sequence().items()[n_used_++] : (++n_used_, arguments_);
  }

  /// A width or precision: digits, or "*" for the next argument.
  Status ReadCount(size_t& at, int64_t& count) {
    if (at < text_.size() && text_[at] == '*') {
      ++at;
      FACET_ASSIGN(const Value value, NextArgument("", false));
      if (!value.is_integer() || value.as_integer() > INT32_MAX || value.as_integer() < 0) {
        return BadFormat(text_, "a bad *");
      }
      count = value.as_integer();
      return {};
    }
    return ReadNumber(text_, at, count) ? Status() : Status(BadFormat(text_, "a huge number"));
  }

  /// `at` stands after the percent sign.
  Status Conversion(size_t& at) {
    std::string_view key;
    const bool has_key = at < text_.size() && text_[at] == '(';
    if (has_key) {
      const size_t close = text_.find(')', at);
      if (close == std::string_view::npos) {
        return BadFormat(text_, "an open bracket");
      }
      key = text_.substr(at + 1, close - at - 1);
      at = close + 1;
    }
    Spec spec;
    for (; at < text_.size() && std::string_view("-+ #0").find(text_[at]) != std::string_view::npos;
         ++at) {
      const char flag = text_[at];
      spec.is_alternate = spec.is_alternate || flag == '#';
      spec.sign = flag == '+' || (flag == ' ' && spec.sign != '+') ? flag : spec.sign;
      if (flag == '-' || (flag == '0' && spec.align != '<')) {
        spec.align = flag == '-' ? '<' : '=';
        spec.fill = flag == '-' ? " " : "0";
      }
    }
    FACET_RETURN_IF_ERROR(ReadCount(at, spec.width));
    if (at < text_.size() && text_[at] == '.') {
      ++at;
      FACET_RETURN_IF_ERROR(ReadCount(at, spec.precision));
    }
    if (at == text_.size()) {
      return BadFormat(text_, "an incomplete conversion");
    }
    const char type = text_[at++];
    if (type == '%') {
      out_.Append("%", format_.marked.OriginAt(at - 1));
      return {};
    }
    FACET_ASSIGN(const Value value, NextArgument(key, has_key));
    return Convert(value, type, spec);
  }

  Status Convert(const Value& value, char type, Spec spec) {
    spec.type = type;
    if (type == 's' || type == 'r' || type == 'a') {
      spec.type = 's';
      spec.align = spec.align == '<' ? '<' : '>';
      spec.fill = " ";
      if (type == 's') {
        return AppendFormatted(out_, value, spec, budget_);
      }
      MarkedString shown;
      FACET_RETURN_IF_ERROR(AppendRepr(shown, value, budget_));
      return AppendFormatted(out_, Value::String(std::move(shown)), spec, budget_);
    }
    if (type == 'c' && value.is_string() && value.as_text()->n_characters == 1) {
      spec.type = 's';
      return AppendFormatted(out_, value, spec, budget_);
    }
    if (std::string_view("diuoxXeEfFgG").find(type) == std::string_view::npos) {
      return BadFormat(text_, fmt::format("an unknown conversion \"{}\"", type));
    }
    if (!value.is_number()) {
      return Refuse(
          "", fmt::format("%{} format: a real number is required, not {}", type, value.TypeName()),
          "a number");
    }
    const bool is_decimal = type == 'd' || type == 'i' || type == 'u';
    if (!is_decimal) {
      return AppendFormatted(out_, value, spec, budget_);
    }
    spec.type = 'd';
    if (value.is_float()) {
      const double whole = std::trunc(value.as_double());
      if (!(std::fabs(whole) < 0x1p63)) {
        return Refuse("", "a float too large for %d", "a smaller one");
      }
      return AppendFormatted(out_, Value::Integer(static_cast<int64_t>(whole)), spec, budget_);
    }
    return AppendFormatted(out_, value, spec, budget_);
  }

  const Text& format_;
  std::string_view text_;
  const Value& arguments_;
  Budget& budget_;
  MarkedString out_;
  size_t n_used_ = 0;
};

/// str.format; fields are looked up as the template would: value.name, value[key].
class BraceFormatter {
 public:
  BraceFormatter(Interpreter& interpreter, const Arguments& arguments)
      : interpreter_(interpreter), arguments_(arguments) {}

  Result<MarkedString> Run(const MarkedString& format, int depth) {
    MarkedString out;
    const std::string_view text = format.text();
    for (size_t at = 0; at < text.size();) {
      const size_t brace = std::min(text.find_first_of("{}", at), text.size());
      FACET_RETURN_IF_ERROR(interpreter_.budget().Make(brace - at));
      out.Append(format, at, brace);
      at = brace;
      if (at == text.size()) {
        break;
      }
      if (at + 1 < text.size() && text[at + 1] == text[at]) {
        out.Append(format, at, at + 1);
        at += 2;
      } else if (text[at] == '}') {
        return BadFormat(text, "a single \"}\"");
      } else {
        FACET_ASSIGN(const size_t end, FindClose(text, at));
        FACET_RETURN_IF_ERROR(Field(out, format.Substring(at + 1, end), depth));
        at = end + 1;
      }
    }
    return out;
  }

 private:
  static Result<size_t> FindClose(std::string_view text, size_t open) {
    int depth = 0;
    for (size_t at = open; at < text.size(); ++at) {
      depth += text[at] == '{' ? 1 : (text[at] == '}' ? -1 : 0);
      if (depth == 0) {
        return at;
      }
    }
    return BadFormat(text, "a single \"{\"");
  }

  Status Field(MarkedString& out, const MarkedString& field, int depth) {
    if (depth > 1) {
      return BadFormat(field.text(), "too many braces");
    }
    const std::string_view text = field.text();
    const size_t name_end = std::min(text.find_first_of("!:"), text.size());
    FACET_ASSIGN(Value value, Lookup(text.substr(0, name_end)));
    size_t at = name_end;
    if (at < text.size() && text[at] == '!') {
      const char conversion = at + 1 < text.size() ? text[at + 1] : '\0';
      at += 2;
      if ((conversion != 's' && conversion != 'r') || (at < text.size() && text[at] != ':')) {
        return BadFormat(text, "an unknown conversion");
      }
      MarkedString shown;
      if (conversion == 'r') {
        FACET_RETURN_IF_ERROR(AppendRepr(shown, value, interpreter_.budget()));
        value = Value::String(std::move(shown));
      } else {
        FACET_ASSIGN(value, interpreter_.TextValue(value));
      }
    }
    const MarkedString spec_text =
        at < text.size() ? field.Substring(at + 1, text.size()) : MarkedString();
    FACET_ASSIGN(const MarkedString expanded, Run(spec_text, depth + 1));
    FACET_ASSIGN(const Spec spec, ParseSpec(expanded.text()));
    return AppendFormatted(out, value, spec, interpreter_.budget());
  }

  Result<Value> Lookup(std::string_view path) {
    const size_t first_end = std::min(path.find_first_of(".["), path.size());
    FACET_ASSIGN(Value value, First(path.substr(0, first_end)));
    for (size_t at = first_end; at < path.size();) {
      const bool is_attribute = path[at] == '.';
      const size_t end = is_attribute ? std::min(path.find_first_of(".[", at + 1), path.size())
                                      : path.find(']', at);
      if (end == std::string_view::npos) {
        return BadFormat(path, "an open bracket");
      }
      const std::string_view part = path.substr(at + 1, end - at - 1);
      if (is_attribute) {
        FACET_ASSIGN(value, interpreter_.Attribute(value, part));
      } else {
        const bool is_index =
            !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
        FACET_ASSIGN(value, interpreter_.Item(value, is_index ? Value::IntegerFromDigits(part)
                                                              : Value::String(std::string(part),
                                                                              Origin::kTemplate)));
      }
      at = is_attribute ? end : end + 1;
    }
    return value;
  }

  Result<Value> First(std::string_view name) {
    if (name.find_first_not_of("0123456789") == std::string_view::npos) {
      size_t index = n_automatic_;
      if (name.empty()) {
        ++n_automatic_;
      } else {
        size_t at = 0;
        int64_t number = 0;
        index = ReadNumber(name, at, number) ? static_cast<size_t>(number) : SIZE_MAX;
      }
      if (index >= arguments_.positional.size()) {
        return Refuse("", fmt::format("replacement index {} out of range", index),
                      fmt::format("{} arguments", arguments_.positional.size()));
      }
      return arguments_.positional[index];
    }
    for (const auto& [key, value] : arguments_.keyword) {
      if (key == name) {
        return value;
      }
    }
    return Refuse("", fmt::format("no value \"{}\" to format", name), "an argument of that name");
  }

  Interpreter& interpreter_;
  const Arguments& arguments_;
  size_t n_automatic_ = 0;
};

}  // namespace

Result<Value> FormatPercent(const Text& format, const Value& arguments, Budget& budget) {
  return PercentFormatter(format, arguments, budget).Run();
}

Result<Value> FormatBraces(Interpreter& interpreter, const Text& format,
                           const Arguments& arguments) {
  FACET_ASSIGN(MarkedString out, BraceFormatter(interpreter, arguments).Run(format.marked, 0));
  return Value::String(std::move(out));
}

std::string FixedDigits(double value, int digits) {
  Spec spec;
  spec.type = 'f';
  spec.precision = digits;
  return (std::signbit(value) ? "-" : "") + FloatDigits(std::fabs(value), spec);
}

}  // namespace facet::jinja
