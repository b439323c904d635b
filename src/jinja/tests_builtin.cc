// SPDX-License-Identifier: Apache-2.0
// The words after "is".
#include <fmt/format.h>

#include <algorithm>

#include "jinja/arithmetic.h"
#include "jinja/builtins.h"
#include "jinja/compare.h"
#include "jinja/interpreter.h"
#include "jinja/printing.h"
#include "jinja/text_ops.h"

namespace facet::jinja {
namespace {

using Operand = const Arguments&;

Status NoArguments(std::string_view name, Operand arguments) {
  const auto bound = Bound::Bind(name, arguments, {}, 0);
  return bound.ok() ? Status() : Status(bound.error());
}

/// A test that only looks at the kind of value.
template <bool (*kPredicate)(const Value&)>
Result<bool> KindTest(Interpreter&, const Value& value, Operand arguments) {
  FACET_RETURN_IF_ERROR(NoArguments("test", arguments));
  return kPredicate(value);
}

bool IsDefined(const Value& value) { return !value.is_undefined(); }
bool IsUndefined(const Value& value) { return value.is_undefined(); }
bool IsNone(const Value& value) { return value.is_none(); }
bool IsBoolean(const Value& value) { return value.is_bool(); }
bool IsTrueValue(const Value& value) { return value.is_bool() && value.as_bool(); }
bool IsFalseValue(const Value& value) { return value.is_bool() && !value.as_bool(); }
bool IsInteger(const Value& value) { return value.is_plain_integer() || value.is_big_integer(); }
bool IsFloat(const Value& value) { return value.is_float(); }
bool IsNumber(const Value& value) { return value.is_number(); }
bool IsString(const Value& value) { return value.is_string(); }
bool IsMapping(const Value& value) { return value.is_dict(); }
bool IsNever(const Value&) { return false; }

/// Has a length and items by number or key, as far as Python can tell without trying.
bool IsSequence(const Value& value) {
  return value.is_string() || value.is_dict() || value.is_undefined() ||
         (value.is_sequence() && value.as_sequence().has_index());
}

bool IsIterable(const Value& value) {
  return value.is_string() || value.is_dict() || value.is_undefined() || value.is_sequence();
}

bool IsCallable(const Value& value) {
  if (value.is_undefined()) {
    return true;
  }
  if (!value.is_object()) {
    return false;
  }
  const Object::Kind kind = value.as_object().kind;
  return kind == Object::Kind::kMacro || kind == Object::Kind::kFunction ||
         kind == Object::Kind::kMethod || kind == Object::Kind::kLoop ||
         kind == Object::Kind::kJoiner;
}

template <Operator kOperator>
Result<bool> CompareTest(Interpreter& interpreter, const Value& value, Operand arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("test", arguments, {"other"}, 1));
  Budget& budget = interpreter.budget();
  switch (kOperator) {
    case Operator::kEqual:
      return Equal(value, bound[0], budget);
    case Operator::kNotEqual: {
      FACET_ASSIGN(const bool is_equal, Equal(value, bound[0], budget));
      return !is_equal;
    }
    case Operator::kLess:
      return Less(value, bound[0], budget);
    case Operator::kGreater:
      return Less(bound[0], value, budget);
    case Operator::kLessEqual: {
      FACET_ASSIGN(const bool is_less, Less(value, bound[0], budget));
      return is_less ? Result<bool>(true) : Equal(value, bound[0], budget);
    }
    case Operator::kGreaterEqual: {
      FACET_ASSIGN(const bool is_greater, Less(bound[0], value, budget));
      return is_greater ? Result<bool>(true) : Equal(value, bound[0], budget);
    }
    default:
      return Contains(bound[0], value, budget);
  }
}

/// value % divisor == wanted
Result<bool> RestIs(Interpreter& interpreter, const Value& value, const Value& divisor,
                    int64_t wanted) {
  Budget& budget = interpreter.budget();
  FACET_ASSIGN(const Value rest, Arithmetic(Operator::kModulo, value, divisor, budget));
  return Equal(rest, Value::Integer(wanted), budget);
}

Result<bool> IsOdd(Interpreter& interpreter, const Value& value, Operand arguments) {
  FACET_RETURN_IF_ERROR(NoArguments("odd", arguments));
  return RestIs(interpreter, value, Value::Integer(2), 1);
}

Result<bool> IsEven(Interpreter& interpreter, const Value& value, Operand arguments) {
  FACET_RETURN_IF_ERROR(NoArguments("even", arguments));
  return RestIs(interpreter, value, Value::Integer(2), 0);
}

Result<bool> IsDivisibleBy(Interpreter& interpreter, const Value& value, Operand arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("divisibleby", arguments, {"num"}, 1));
  return RestIs(interpreter, value, bound[0], 0);
}

template <bool kUpper>
Result<bool> IsCase(Interpreter& interpreter, const Value& value, Operand arguments) {
  FACET_RETURN_IF_ERROR(NoArguments(kUpper ? "upper" : "lower", arguments));
  FACET_ASSIGN(const Value text, interpreter.TextValue(value));
  return HasCase(text.as_string(), kUpper ? CaseKind::kUpper : CaseKind::kLower);
}

Result<bool> IsSameAs(Interpreter& interpreter, const Value& value, Operand arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("sameas", arguments, {"other"}, 1));
  if (value.kind() != bound[0].kind()) {
    return false;
  }
  switch (value.kind()) {
    case Value::Kind::kUndefined:  // each is an object of its own
      return false;
    case Value::Kind::kSequence:
      return value.sequence() == bound[0].sequence();
    case Value::Kind::kDict:
      return value.dict() == bound[0].dict();
    default:
      return Equal(value, bound[0], interpreter.budget());
  }
}

Result<bool> IsFilterName(Interpreter&, const Value& value, Operand arguments) {
  FACET_RETURN_IF_ERROR(NoArguments("filter", arguments));
  FACET_RETURN_IF_ERROR(CheckHashable(value));
  return value.is_string() && FindFilter(value.as_string()) != nullptr;
}

Result<bool> IsTestName(Interpreter&, const Value& value, Operand arguments) {
  FACET_RETURN_IF_ERROR(NoArguments("test", arguments));
  FACET_RETURN_IF_ERROR(CheckHashable(value));
  return value.is_string() && FindTest(value.as_string()) != nullptr;
}

}  // namespace

TestFunction FindTest(std::string_view name) {
  struct Row {
    std::string_view name;
    TestFunction test;
  };
  static constexpr Row kTests[] = {
      {"!=", CompareTest<Operator::kNotEqual>},
      {"<", CompareTest<Operator::kLess>},
      {"<=", CompareTest<Operator::kLessEqual>},
      {"==", CompareTest<Operator::kEqual>},
      {">", CompareTest<Operator::kGreater>},
      {">=", CompareTest<Operator::kGreaterEqual>},
      {"boolean", KindTest<IsBoolean>},
      {"callable", KindTest<IsCallable>},
      {"defined", KindTest<IsDefined>},
      {"divisibleby", IsDivisibleBy},
      {"eq", CompareTest<Operator::kEqual>},
      {"equalto", CompareTest<Operator::kEqual>},
      {"escaped", KindTest<IsNever>},
      {"even", IsEven},
      {"false", KindTest<IsFalseValue>},
      {"filter", IsFilterName},
      {"float", KindTest<IsFloat>},
      {"ge", CompareTest<Operator::kGreaterEqual>},
      {"greaterthan", CompareTest<Operator::kGreater>},
      {"gt", CompareTest<Operator::kGreater>},
      {"in", CompareTest<Operator::kIn>},
      {"integer", KindTest<IsInteger>},
      {"iterable", KindTest<IsIterable>},
      {"le", CompareTest<Operator::kLessEqual>},
      {"lessthan", CompareTest<Operator::kLess>},
      {"lower", IsCase<false>},
      {"lt", CompareTest<Operator::kLess>},
      {"mapping", KindTest<IsMapping>},
      {"ne", CompareTest<Operator::kNotEqual>},
      {"none", KindTest<IsNone>},
      {"number", KindTest<IsNumber>},
      {"odd", IsOdd},
      {"sameas", IsSameAs},
      {"sequence", KindTest<IsSequence>},
      {"string", KindTest<IsString>},
      {"test", IsTestName},
      {"true", KindTest<IsTrueValue>},
      {"undefined", KindTest<IsUndefined>},
      {"upper", IsCase<true>},
  };
  const auto* found =
      std::lower_bound(std::begin(kTests), std::end(kTests), name,
                       [](const Row& row, std::string_view wanted) { return row.name < wanted; });
  return found != std::end(kTests) && found->name == name ? found->test : nullptr;
}

}  // namespace facet::jinja
