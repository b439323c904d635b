// SPDX-License-Identifier: Apache-2.0
#include "jinja/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "jinja/text_format.h"

namespace facet::jinja {
namespace {

Error TooLarge() {
  return Refuse("", "an integer beyond 64 bits in a calculation", "a smaller one");
}

Error Unsupported(Operator op, const Value& a, const Value& b) {
  static constexpr std::string_view kNames[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return Refuse("", fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                                kNames[static_cast<size_t>(op)], a.TypeName(), b.TypeName()));
}

Error DivisionByZero() { return Refuse("", "division by zero", "another divisor"); }

/// a modulo b with the sign of b, for b != 0.
double FloatModulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : (rest == 0 ? std::copysign(0.0, b) : rest);
}

double FloatFloorDivide(double a, double b) {
  const double quotient = (a - FloatModulo(a, b)) / b;
  if (quotient == 0) {
    return std::copysign(0.0, a / b);
  }
  return std::floor(quotient) + (quotient - std::floor(quotient) > 0.5 ? 1.0 : 0.0);
}

Result<Value> FloatPower(double a, double b) {
  if (a == 0 && b < 0) {
    return DivisionByZero();
  }
  if (a < 0 && std::isfinite(b) && b != std::floor(b)) {
    return Refuse("", "a fractional power of a negative number", "a real result");
  }
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) {
    return Refuse("", "a power beyond the range of numbers", "a smaller one");
  }
  return Value::Float(power);
}

Result<Value> FloatArithmetic(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Value::Float(a + b);
    case Operator::kSubtract:
      return Value::Float(a - b);
    case Operator::kMultiply:
      return Value::Float(a * b);
    case Operator::kPower:
      return FloatPower(a, b);
    default:
      break;
  }
  if (b == 0) {
    return DivisionByZero();
  }
  if (op == Operator::kDivide) {
    return Value::Float(a / b);
  }
  return Value::Float(op == Operator::kModulo ? FloatModulo(a, b) : FloatFloorDivide(a, b));
}

Result<Value> IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    return FloatPower(static_cast<double>(base), static_cast<double>(exponent));
  }
  int64_t power = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(power, base, &power)) {
      return TooLarge();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      return TooLarge();
    }
  }
  return Value::Integer(power);
}

Result<Value> IntegerArithmetic(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Operator::kAdd:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kDivide:
      return FloatArithmetic(op, static_cast<double>(a), static_cast<double>(b));
    case Operator::kPower:
      return IntegerPower(a, b);
    default: {
      if (b == 0) {
        return DivisionByZero();
      }
      if (b == -1) {  // the one quotient that can overflow
        return op == Operator::kModulo ? Value::Integer(0)
                                       : IntegerArithmetic(Operator::kSubtract, 0, a);
      }
      const int64_t rest = a % b;
      const bool is_rounded_up = rest != 0 && (rest < 0) != (b < 0);
      return Value::Integer(op == Operator::kModulo ? (is_rounded_up ? rest + b : rest)
                                                    : a / b - (is_rounded_up ? 1 : 0));
    }
  }
  if (overflows) {
    return TooLarge();
  }
  return Value::Integer(result);
}

Result<Value> NumberArithmetic(Operator op, const Value& a, const Value& b) {
  if (a.is_float() || b.is_float() ||
      (op == Operator::kDivide && (a.is_big_integer() || b.is_big_integer()))) {
    return FloatArithmetic(op, a.as_double(), b.as_double());
  }
  if (a.is_big_integer() || b.is_big_integer()) {
    return TooLarge();
  }
  return IntegerArithmetic(op, a.as_integer(), b.as_integer());
}

Result<Value> RepeatSequence(const Value& value, int64_t n, Budget& budget) {
  const Sequence& sequence = value.as_sequence();
  const auto times = static_cast<size_t>(std::max<int64_t>(n, 0));
  if (sequence.size() != 0 && times > budget.limits().max_value_bytes / sequence.size()) {
    return budget.Make(SIZE_MAX).error();
  }
  FACET_RETURN_IF_ERROR(budget.Make(sequence.size() * times * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(sequence.size() * times);
  for (size_t i = 0; i < times && sequence.size() != 0; ++i) {
    items.insert(items.end(), sequence.items().begin(), sequence.items().end());
  }
  return MakeSequence(sequence.kind(), std::move(items), budget);
}

bool IsListOrTuple(const Value& value) {
  return value.is_sequence() && (value.as_sequence().is_list() || value.as_sequence().is_tuple());
}

Result<Value> Multiply(const Value& a, const Value& b, Budget& budget) {
  const Value& number = a.is_integer() ? a : b;
  const Value& other = a.is_integer() ? b : a;
  if (!number.is_integer() || (!other.is_string() && !IsListOrTuple(other))) {
    return Unsupported(Operator::kMultiply, a, b);
  }
  if (!other.is_string()) {
    return RepeatSequence(other, number.as_integer(), budget);
  }
  FACET_ASSIGN(MarkedString text, Repeat(other.as_text()->marked, number.as_integer(), budget));
  return Value::String(std::move(text));
}

Result<Value> Add(const Value& a, const Value& b, Budget& budget) {
  if (a.is_string() && b.is_string()) {
    FACET_RETURN_IF_ERROR(
        budget.Make(sizeof(Text) + a.as_text()->marked.memory() + b.as_text()->marked.memory()));
    MarkedString text;
    text.Reserve(a.as_string().size() + b.as_string().size());
    text.Append(a.as_text()->marked);
    text.Append(b.as_text()->marked);
    return Value::String(std::move(text));
  }
  if (IsListOrTuple(a) && IsListOrTuple(b) && a.as_sequence().kind() == b.as_sequence().kind()) {
    std::vector<Value> items = a.as_sequence().items();
    items.insert(items.end(), b.as_sequence().items().begin(), b.as_sequence().items().end());
    return MakeSequence(a.as_sequence().kind(), std::move(items), budget);
  }
  if (a.is_string()) {
    return Refuse("", fmt::format("can only concatenate str (not \"{}\") to str", b.TypeName()),
                  "two strings; ~ joins anything");
  }
  return Unsupported(Operator::kAdd, a, b);
}

/// One bound of a slice as Python clips it.
Result<int64_t> SliceBound(const Value& part, int64_t size, bool is_backward, int64_t otherwise) {
  if (part.is_none()) {
    return otherwise;
  }
  if (part.is_big_integer()) {
    return part.as_digits().front() == '-' ? (is_backward ? -1 : 0)
                                           : (is_backward ? size - 1 : size);
  }
  if (!part.is_integer()) {
    return Refuse("",
                  part.is_undefined()
                      ? part.UndefinedReason()
                      : fmt::format("a slice with a bound of type {}", part.TypeName()),
                  "integers");
  }
  int64_t bound = part.as_integer();
  if (bound < 0) {
    bound = std::max<int64_t>(bound + size, is_backward ? -1 : 0);
  }
  return std::min(bound, is_backward ? size - 1 : size);
}

Result<Value> SliceString(const TextPtr& text, const std::vector<size_t>& indices, Budget& budget) {
  FACET_RETURN_IF_ERROR(budget.Make(sizeof(Text) + indices.size() * 4));
  FACET_RETURN_IF_ERROR(budget.Make(text->is_ascii() ? 0 : text->n_characters * sizeof(size_t)));
  std::vector<size_t> offsets;
  if (!text->is_ascii()) {
    for (size_t at = 0; at < text->text().size();
         at += static_cast<size_t>(DecodeUtf8(std::string_view(text->text()).substr(at, 4)).size)) {
      offsets.push_back(at);
    }
    offsets.push_back(text->text().size());
  }
  MarkedString out;
  for (const size_t i : indices) {
    out.Append(text->marked, offsets.empty() ? i : offsets[i],
               offsets.empty() ? i + 1 : offsets[i + 1]);
  }
  return Value::String(std::move(out));
}

}  // namespace

Result<Value> Arithmetic(Operator op, const Value& a, const Value& b, Budget& budget) {
  if (a.is_number() && b.is_number()) {
    return NumberArithmetic(op, a, b);
  }
  if (op == Operator::kModulo && a.is_string()) {
    return FormatPercent(*a.as_text(), b, budget);
  }
  if (a.is_undefined() || b.is_undefined()) {
    return Refuse("", (a.is_undefined() ? a : b).UndefinedReason());
  }
  if (op == Operator::kAdd) {
    return Add(a, b, budget);
  }
  return op == Operator::kMultiply ? Multiply(a, b, budget) : Unsupported(op, a, b);
}

Result<Value> Negate(const Value& value) {
  if (value.is_float()) {
    return Value::Float(-value.as_double());
  }
  if (value.is_big_integer()) {
    const std::string& digits = value.as_digits();
    return Value::IntegerFromDigits(digits.front() == '-' ? digits.substr(1) : "-" + digits);
  }
  if (!value.is_integer()) {
    return Refuse("", value.is_undefined()
                          ? value.UndefinedReason()
                          : fmt::format("bad operand type for unary -: '{}'", value.TypeName()));
  }
  if (value.as_integer() == INT64_MIN) {
    return Value::IntegerFromDigits("9223372036854775808");
  }
  return Value::Integer(-value.as_integer());
}

Result<Value> Slice(const Value& value, const SliceParts& parts, Budget& budget) {
  const bool is_sliceable =
      value.is_string() || (value.is_sequence() && value.as_sequence().has_index());
  if (!is_sliceable) {
    return Refuse("",
                  value.is_undefined()
                      ? value.UndefinedReason()
                      : fmt::format("'{}' object cannot be sliced", value.TypeName()),
                  "a string or a list");
  }
  const auto size = static_cast<int64_t>(value.is_string() ? value.as_text()->n_characters
                                                           : value.as_sequence().size());
  if (!parts.step.is_none() && !parts.step.is_integer()) {
    return Refuse("", fmt::format("a slice with a step of type {}", parts.step.TypeName()),
                  "an integer");
  }
  const int64_t step = parts.step.is_none() ? 1 : parts.step.as_integer();
  if (step == 0) {
    return Refuse("", "slice step cannot be zero", "another step");
  }
  FACET_ASSIGN(const int64_t start,
               SliceBound(parts.start, size, step < 0, step < 0 ? size - 1 : 0));
  FACET_ASSIGN(const int64_t stop, SliceBound(parts.stop, size, step < 0, step < 0 ? -1 : size));
  if (step == 1 && value.is_string()) {
    return Characters(value.as_text(), static_cast<size_t>(start),
                      static_cast<size_t>(std::max(start, stop)), budget);
  }
  if (value.is_sequence() && value.as_sequence().is_range()) {
    const Sequence::Range& range = value.as_sequence().range;
    int64_t new_step = 0;
    if (__builtin_mul_overflow(range.step, step, &new_step)) {
      return TooLarge();
    }
    Sequence::Range part;
    if (__builtin_mul_overflow(start, range.step, &part.start) ||
        __builtin_add_overflow(part.start, range.start, &part.start) ||
        __builtin_mul_overflow(stop, range.step, &part.stop) ||
        __builtin_add_overflow(part.stop, range.start, &part.stop)) {
      return TooLarge();
    }
    part.step = new_step;
    return MakeRange(part, budget);
  }
  std::vector<size_t> indices;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    indices.push_back(static_cast<size_t>(i));
    if (__builtin_add_overflow(i, step, &i)) {
      break;
    }
  }
  if (value.is_string()) {
    return SliceString(value.as_text(), indices, budget);
  }
  FACET_RETURN_IF_ERROR(budget.Make(indices.size() * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(indices.size());
  for (const size_t i : indices) {
    items.push_back(value.as_sequence().items()[i]);
  }
  return MakeSequence(value.as_sequence().kind(), std::move(items), budget);
}

size_t ByteOffset(const Text& text, size_t index) {
  if (index >= text.n_characters) {
    return text.text().size();
  }
  if (text.is_ascii()) {
    return index;
  }
  size_t at = 0;
  for (size_t seen = 0; at < text.text().size(); ++at) {
    if ((static_cast<uint8_t>(text.text()[at]) & 0xC0u) != 0x80u && seen++ == index) {
      break;
    }
  }
  return at;
}

Result<Value> Characters(const TextPtr& text, size_t begin, size_t end, Budget& budget) {
  if (begin == 0 && end >= text->n_characters) {
    return Value::Of(text);
  }
  FACET_RETURN_IF_ERROR(budget.Scan(text->is_ascii() ? 0 : text->text().size()));
  const size_t first = ByteOffset(*text, begin);
  const size_t last = ByteOffset(*text, end);
  FACET_RETURN_IF_ERROR(budget.Make(sizeof(Text) + last - first));
  return Value::String(text->marked.Substring(first, last));
}

Result<MarkedString> Repeat(const MarkedString& text, int64_t n, Budget& budget) {
  MarkedString out;
  const auto times = static_cast<size_t>(std::max<int64_t>(n, 0));
  if (text.empty() || times == 0) {
    return out;
  }
  if (times > budget.limits().max_value_bytes / text.memory()) {
    return budget.Make(SIZE_MAX).error();
  }
  FACET_RETURN_IF_ERROR(budget.Make(text.memory() * times));
  out.Reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) {
    out.Append(text);
  }
  return out;
}

}  // namespace facet::jinja
