// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "jinja/arithmetic.h"
#include "jinja/builtins.h"
#include "jinja/compare.h"
#include "jinja/interpreter.h"
#include "jinja/parser_internal.h"
#include "jinja/printing.h"

namespace facet::jinja {
namespace {

/// How errors call a value that lacks something: "dict object".
std::string ObjectName(const Value& value) {
  if (value.is_none()) {
    return "None";
  }
  return value.is_object() && value.as_object().kind == Object::Kind::kNamespace
             ? "namespace object"
             : fmt::format("{} object", value.TypeName());
}

/// The attributes of `loop` that are not methods; nothing for other names.
Value LoopAttribute(const Loop& loop, std::string_view name) {
  const auto index = static_cast<int64_t>(loop.index0);
  const auto length = static_cast<int64_t>(loop.items->size());
  struct Row {
    std::string_view name;
    int64_t value;
  };
  const Row numbers[] = {{"index", index + 1},         {"index0", index},
                         {"revindex", length - index}, {"revindex0", length - index - 1},
                         {"length", length},           {"depth", loop.level0 + 1},
                         {"depth0", loop.level0}};
  for (const Row& row : numbers) {
    if (row.name == name) {
      return Value::Integer(row.value);
    }
  }
  if (name == "first") {
    return Value::Bool(index == 0);
  }
  if (name == "last") {
    return Value::Bool(index + 1 == length);
  }
  if (name == "previtem") {
    return index > 0 ? loop.items->items()[loop.index0 - 1]
                     : Value::Undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length ? loop.items->items()[loop.index0 + 1]
                              : Value::Undefined("there is no next item");
  }
  return Value::Undefined(fmt::format("'LoopContext object' has no attribute '{}'", name));
}

Result<Value> MacroAttribute(const Macro& macro, std::string_view name, Budget& budget) {
  const MacroDefinition& definition = *macro.definition;
  if (name == "name") {
    return Value::String(definition.name, Origin::kTemplate);
  }
  if (name == "arguments") {
    std::vector<Value> names;
    for (const auto& [symbol, parameter] : definition.parameters) {
      names.push_back(Value::String(parameter, Origin::kTemplate));
    }
    return MakeTuple(std::move(names), budget);
  }
  if (name == "caller" || name == "catch_kwargs" || name == "catch_varargs") {
    return Value::Bool(name == "caller" ? definition.uses_caller
                                        : (name == "catch_kwargs" ? definition.uses_kwargs
                                                                  : definition.uses_varargs));
  }
  return Value::Undefined(fmt::format("'Macro object' has no attribute '{}'", name));
}

/// The attributes of numbers that are values; null for other names.
bool NumberAttribute(const Value& value, std::string_view name, Value& found) {
  const bool is_integer = value.is_integer() || value.is_big_integer();
  if (name == "real" || (is_integer && name == "numerator")) {
    found = value.is_bool() ? Value::Integer(value.as_integer()) : value;
  } else if (name == "imag") {
    found = is_integer ? Value::Integer(0) : Value::Float(0);
  } else if (is_integer && name == "denominator") {
    found = Value::Integer(1);
  } else {
    return false;
  }
  return true;
}

/// What Python's getattr finds, or false. Also finds what the sandbox keeps away: as undefined with
/// the reason.
bool PythonAttribute(const Value& value, std::string_view name, Value& found) {
  if (HasMethod(value, name)) {
    found = Value::Of(ObjectPtr(std::make_shared<Method>(value, std::string(name))));
    return true;
  }
  if (HasUnsafeMethod(value, name) || name.substr(0, 2) == "__") {
    found = Value::Undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe", name, value.TypeName()));
    return true;
  }
  if (value.is_sequence() && value.as_sequence().is_group &&
      (name == "grouper" || name == "list")) {
    found = value.as_sequence().items()[name == "grouper" ? 0 : 1];
    return true;
  }
  if (value.is_object() && value.as_object().kind == Object::Kind::kCycler && name == "current") {
    const auto& cycler = static_cast<const Cycler&>(value.as_object());
    found = cycler.items->items()[cycler.position];
    return true;
  }
  return value.is_number() && NumberAttribute(value, name, found);
}

/// value[key] without the detour over attributes; false when there is nothing.
Result<bool> PlainItem(const Value& value, const Value& key, Value& found, Budget& budget) {
  if (value.is_dict()) {
    if (!CheckHashable(key).ok()) {
      return false;
    }
    FACET_RETURN_IF_ERROR(budget.Step(key.weight()));
    const Value* item = value.as_dict().Find(key);
    if (item != nullptr) {
      found = *item;
    }
    return item != nullptr;
  }
  const bool is_indexed =
      value.is_string() || (value.is_sequence() && value.as_sequence().has_index());
  if (!is_indexed || !key.is_integer()) {
    return false;
  }
  const auto size = static_cast<int64_t>(value.is_string() ? value.as_text()->n_characters
                                                           : value.as_sequence().size());
  const int64_t index = key.as_integer() < 0 ? key.as_integer() + size : key.as_integer();
  if (index < 0 || index >= size) {
    return false;
  }
  const auto place = static_cast<size_t>(index);
  if (value.is_string()) {
    FACET_ASSIGN(found, Characters(value.as_text(), place, place + 1, budget));
  } else {
    found = value.as_sequence().items()[place];
  }
  return true;
}

}  // namespace

Result<Value> Interpreter::TextValue(const Value& value) {
  if (value.is_string()) {
    return value;
  }
  FACET_ASSIGN(TextPtr text, ToText(value, budget_));
  return Value::Of(std::move(text));
}

Result<Value> Interpreter::Attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) {
    return Refuse("", value.UndefinedReason(), "a value");
  }
  Value found;
  if (value.is_object()) {
    Object& object = value.as_object();
    if (object.kind == Object::Kind::kNamespace) {
      const Value* attribute = static_cast<const Namespace&>(object).Find(name);
      return attribute != nullptr
                 ? *attribute
                 : Value::Undefined(fmt::format("'namespace object' has no attribute '{}'", name));
    }
    if (object.kind == Object::Kind::kLoop && !HasMethod(value, name)) {
      return LoopAttribute(static_cast<const Loop&>(object), name);
    }
    if (object.kind == Object::Kind::kMacro) {
      return MacroAttribute(static_cast<const Macro&>(object), name, budget_);
    }
  }
  if (PythonAttribute(value, name, found)) {
    return found;
  }
  if (value.is_dict()) {
    if (const Value* item = value.as_dict().Find(name)) {
      return *item;
    }
  }
  return Value::Undefined(fmt::format("'{}' has no attribute '{}'", ObjectName(value), name));
}

Result<Value> Interpreter::Item(const Value& value, const Value& key) {
  if (value.is_undefined()) {
    return Refuse("", value.UndefinedReason(), "a value");
  }
  Value found;
  FACET_ASSIGN(const bool is_item, PlainItem(value, key, found, budget_));
  if (is_item) {
    return found;
  }
  if (key.is_string()) {
    if (value.is_object() || PythonAttribute(value, key.as_string(), found)) {
      return value.is_object() ? Attribute(value, key.as_string()) : Result<Value>(found);
    }
    return Value::Undefined(fmt::format("'{}' has no attribute '{}'", ObjectName(value),
                                        key.as_string().substr(0, 100)));
  }
  MarkedString shown;
  FACET_RETURN_IF_ERROR(AppendRepr(shown, key, budget_));
  return Value::Undefined(fmt::format("{} has no element {}", ObjectName(value),
                                      std::string_view(shown.text()).substr(0, 100)));
}

Result<Value> Interpreter::Call(const Value& callee, const Arguments& arguments) {
  if (callee.is_undefined()) {
    return Refuse("", callee.UndefinedReason(), "a function");
  }
  if (callee.is_object()) {
    Object& object = callee.as_object();
    switch (object.kind) {
      case Object::Kind::kMacro:
        return CallMacro(static_cast<const Macro&>(object), arguments);
      case Object::Kind::kFunction:
        return static_cast<const Function&>(object).function(*this, arguments);
      case Object::Kind::kMethod: {
        const auto& method = static_cast<const Method&>(object);
        return CallMethod(*this, method.self, method.name, arguments);
      }
      case Object::Kind::kLoop:
        return CallLoop(static_cast<const Loop&>(object), arguments);
      case Object::Kind::kJoiner: {
        auto& joiner = static_cast<Joiner&>(object);
        return std::exchange(joiner.is_used, true) ? joiner.separator
                                                   : Value::String("", Origin::kTemplate);
      }
      default:
        break;
    }
  }
  return Refuse("", fmt::format("'{}' object is not callable", callee.TypeName()), "a function");
}

Result<Value> Interpreter::Evaluate(const Expr& expr, Scope* scope) {
  const DepthGuard guard(levels_, MaxLevels());
  if (!guard.ok()) {
    return At(expr.position, TooDeep());
  }
  if (const Status status = budget_.Step(); !status.ok()) {
    return At(expr.position, status.error());
  }
  Result<Value> value = EvaluateNode(expr, scope);
  if (!value.ok()) {
    return At(expr.position, value.error());
  }
  return value;
}

Result<Value> Interpreter::EvaluateNode(const Expr& expr, Scope* scope) {
  switch (expr.kind) {
    case Expr::Kind::kConstant:
      return expr.constant;
    case Expr::Kind::kName:
      return EvaluateName(expr, scope);
    case Expr::Kind::kTuple:
    case Expr::Kind::kList:
    case Expr::Kind::kDict:
      return EvaluateCollection(expr, scope);
    case Expr::Kind::kConditional:
      return EvaluateConditional(expr, scope);
    case Expr::Kind::kAnd:
    case Expr::Kind::kOr:
      return EvaluateLogic(expr, scope);
    case Expr::Kind::kNot: {
      FACET_ASSIGN(const Value value, Evaluate(*expr.operands[0], scope));
      return Value::Bool(!value.IsTrue());
    }
    case Expr::Kind::kNegative:
    case Expr::Kind::kPositive: {
      FACET_ASSIGN(const Value value, Evaluate(*expr.operands[0], scope));
      FACET_ASSIGN(const Value negative, Negate(value));
      return expr.kind == Expr::Kind::kNegative ? Result<Value>(negative) : Negate(negative);
    }
    case Expr::Kind::kCompare:
      return EvaluateCompare(expr, scope);
    case Expr::Kind::kArithmetic:
      return EvaluateArithmetic(expr, scope);
    case Expr::Kind::kConcat:
      return EvaluateConcat(expr, scope);
    case Expr::Kind::kAttribute: {
      FACET_ASSIGN(const Value value, Evaluate(*expr.operands[0], scope));
      return Attribute(value, expr.text);
    }
    case Expr::Kind::kItem: {
      FACET_ASSIGN(const Value value, Evaluate(*expr.operands[0], scope));
      FACET_ASSIGN(const Value key, Evaluate(*expr.operands[1], scope));
      return Item(value, key);
    }
    case Expr::Kind::kSlice:
      return EvaluateSlice(expr, scope);
    case Expr::Kind::kCall:
      return EvaluateCall(expr, scope, nullptr);
    case Expr::Kind::kFilter:
      return EvaluateFilter(expr, scope, nullptr);
    case Expr::Kind::kTest:
      return EvaluateTest(expr, scope);
  }
  return Value();
}

Result<Value> Interpreter::EvaluateName(const Expr& expr, Scope* scope) {
  const Value* value = scope->Find(expr.symbol);
  return value != nullptr ? *value : globals_[static_cast<size_t>(expr.symbol)];
}

Result<Value> Interpreter::EvaluateCollection(const Expr& expr, Scope* scope) {
  std::vector<Value> items;
  items.reserve(expr.operands.size());
  for (const ExprPtr& operand : expr.operands) {
    FACET_ASSIGN(Value item, Evaluate(*operand, scope));
    items.push_back(std::move(item));
  }
  if (expr.kind != Expr::Kind::kDict) {
    return expr.kind == Expr::Kind::kList ? MakeList(std::move(items), budget_)
                                          : MakeTuple(std::move(items), budget_);
  }
  std::vector<Dict::Entry> entries;
  for (size_t i = 0; i < items.size(); i += 2) {
    entries.emplace_back(std::move(items[i]), std::move(items[i + 1]));
  }
  return MakeDict(std::move(entries), budget_);
}

Result<Value> Interpreter::EvaluateConditional(const Expr& expr, Scope* scope) {
  FACET_ASSIGN(const Value condition, Evaluate(*expr.operands[1], scope));
  if (condition.IsTrue()) {
    return Evaluate(*expr.operands[0], scope);
  }
  if (expr.operands[2] != nullptr) {
    return Evaluate(*expr.operands[2], scope);
  }
  return Value::Undefined("the condition of the inline if was false and it has no else");
}

Result<Value> Interpreter::EvaluateLogic(const Expr& expr, Scope* scope) {
  Value value;
  for (const ExprPtr& operand : expr.operands) {
    FACET_ASSIGN(value, Evaluate(*operand, scope));
    if (value.IsTrue() == (expr.kind == Expr::Kind::kOr)) {
      break;
    }
  }
  return value;
}

namespace {

Result<bool> CompareValues(Operator op, const Value& a, const Value& b, Budget& budget) {
  switch (op) {
    case Operator::kEqual:
      return Equal(a, b, budget);
    case Operator::kLess:
      return Less(a, b, budget);
    case Operator::kGreater:
      return Less(b, a, budget);
    case Operator::kIn:
      return Contains(b, a, budget);
    case Operator::kNotEqual: {
      FACET_ASSIGN(const bool is_equal, Equal(a, b, budget));
      return !is_equal;
    }
    case Operator::kNotIn: {
      FACET_ASSIGN(const bool is_inside, Contains(b, a, budget));
      return !is_inside;
    }
    default: {  // <= and >=: less or equal, so that NaN is neither
      FACET_ASSIGN(const bool is_less,
                   op == Operator::kLessEqual ? Less(a, b, budget) : Less(b, a, budget));
      return is_less ? Result<bool>(true) : Equal(a, b, budget);
    }
  }
}

}  // namespace

Result<Value> Interpreter::EvaluateCompare(const Expr& expr, Scope* scope) {
  FACET_ASSIGN(Value left, Evaluate(*expr.operands[0], scope));
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    FACET_ASSIGN(Value right, Evaluate(*expr.operands[i + 1], scope));
    const auto& [op, position] = expr.operators[i];
    const Result<bool> holds = CompareValues(op, left, right, budget_);
    if (!holds.ok()) {
      return At(position, holds.error());
    }
    if (!*holds) {
      return Value::Bool(false);
    }
    left = std::move(right);
  }
  return Value::Bool(true);
}

Result<Value> Interpreter::EvaluateArithmetic(const Expr& expr, Scope* scope) {
  FACET_ASSIGN(Value left, Evaluate(*expr.operands[0], scope));
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    FACET_ASSIGN(const Value right, Evaluate(*expr.operands[i + 1], scope));
    const auto& [op, position] = expr.operators[i];
    Result<Value> result = Arithmetic(op, left, right, budget_);
    if (!result.ok()) {
      return At(position, result.error());
    }
    left = *std::move(result);
  }
  return left;
}

Result<Value> Interpreter::EvaluateConcat(const Expr& expr, Scope* scope) {
  std::vector<TextPtr> parts;
  size_t size = 0;
  for (const ExprPtr& operand : expr.operands) {
    FACET_ASSIGN(const Value value, Evaluate(*operand, scope));
    FACET_ASSIGN(TextPtr part, ToText(value, budget_));
    size += part->marked.memory();
    parts.push_back(std::move(part));
  }
  FACET_RETURN_IF_ERROR(budget_.Make(sizeof(Text) + size));
  MarkedString text;
  text.Reserve(size);
  for (const TextPtr& part : parts) {
    text.Append(part->marked);
  }
  return Value::String(std::move(text));
}

Result<Value> Interpreter::EvaluateSlice(const Expr& expr, Scope* scope) {
  FACET_ASSIGN(const Value value, Evaluate(*expr.operands[0], scope));
  SliceParts parts;
  Value* const places[] = {&parts.start, &parts.stop, &parts.step};
  for (size_t i = 0; i < 3; ++i) {
    if (expr.operands[i + 1] != nullptr) {
      FACET_ASSIGN(*places[i], Evaluate(*expr.operands[i + 1], scope));
    }
  }
  return Slice(value, parts, budget_);
}

namespace {

/// f(**rest)
Status AddNamed(Arguments& arguments, const Value& rest, Budget& budget) {
  if (!rest.is_dict()) {
    return Refuse("", fmt::format("** before a {}", rest.TypeName()), "a dict");
  }
  for (const auto& [key, value] : rest.as_dict().entries()) {
    if (!key.is_string()) {
      return Refuse("", fmt::format("an argument name of type {}", key.TypeName()), "a string");
    }
    FACET_RETURN_IF_ERROR(budget.Make(sizeof(Value) + key.as_string().size()));
    arguments.keyword.emplace_back(key.as_string(), value);
  }
  return {};
}

Status CheckNames(const Arguments& arguments) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : arguments.keyword) {
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) {
    return Refuse("", fmt::format("two values for the argument '{}'", *repeated), "one");
  }
  return {};
}

}  // namespace

Result<Arguments> Interpreter::EvaluateArguments(const CallArguments* arguments, Scope* scope) {
  Arguments evaluated;
  if (arguments == nullptr) {
    return evaluated;
  }
  for (const ExprPtr& expr : arguments->positional) {
    FACET_ASSIGN(Value value, Evaluate(*expr, scope));
    evaluated.positional.push_back(std::move(value));
  }
  for (const auto& [name, expr] : arguments->keyword) {
    FACET_ASSIGN(Value value, Evaluate(*expr, scope));
    evaluated.keyword.emplace_back(name, std::move(value));
  }
  if (arguments->rest_positional != nullptr) {
    FACET_ASSIGN(const Value rest, Evaluate(*arguments->rest_positional, scope));
    FACET_ASSIGN(const SequencePtr items, Iterate(rest, budget_));
    FACET_RETURN_IF_ERROR(budget_.Make(items->size() * sizeof(Value)));
    evaluated.positional.insert(evaluated.positional.end(), items->items().begin(),
                                items->items().end());
  }
  if (arguments->rest_keyword != nullptr) {
    FACET_ASSIGN(const Value rest, Evaluate(*arguments->rest_keyword, scope));
    FACET_RETURN_IF_ERROR(AddNamed(evaluated, rest, budget_));
  }
  FACET_RETURN_IF_ERROR(CheckNames(evaluated));
  return evaluated;
}

Result<Value> Interpreter::EvaluateCall(const Expr& expr, Scope* scope, const Value* caller) {
  const Expr& callee = *expr.operands[0];
  if (callee.kind == Expr::Kind::kAttribute && caller == nullptr) {
    // A method is called without making a value of it first.
    FACET_ASSIGN(const Value self, Evaluate(*callee.operands[0], scope));
    if (HasMethod(self, callee.text)) {
      FACET_ASSIGN(const Arguments arguments, EvaluateArguments(expr.arguments.get(), scope));
      return CallMethod(*this, self, callee.text, arguments);
    }
    Result<Value> function = Attribute(self, callee.text);
    if (!function.ok()) {
      return At(callee.position, function.error());
    }
    FACET_ASSIGN(const Arguments arguments, EvaluateArguments(expr.arguments.get(), scope));
    return Call(*function, arguments);
  }
  FACET_ASSIGN(const Value function, Evaluate(callee, scope));
  FACET_ASSIGN(Arguments arguments, EvaluateArguments(expr.arguments.get(), scope));
  if (caller != nullptr) {
    arguments.keyword.emplace_back("caller", *caller);
  }
  return Call(function, arguments);
}

Result<Value> Interpreter::EvaluateFilter(const Expr& expr, Scope* scope, const Value* block_text) {
  Value input;
  if (expr.operands[0] == nullptr) {
    input = *block_text;
  } else if (block_text != nullptr && expr.operands[0]->kind == Expr::Kind::kFilter) {
    FACET_ASSIGN(input, EvaluateFilter(*expr.operands[0], scope, block_text));
  } else {
    FACET_ASSIGN(input, Evaluate(*expr.operands[0], scope));
  }
  FACET_ASSIGN(const Arguments arguments, EvaluateArguments(expr.arguments.get(), scope));
  Result<Value> result = Filter(expr.text, input, arguments);
  if (!result.ok()) {
    return At(expr.position, result.error());
  }
  return result;
}

Result<Value> Interpreter::Filter(std::string_view name, const Value& input,
                                  const Arguments& arguments) {
  const DepthGuard guard(levels_, MaxLevels());
  if (!guard.ok()) {
    return TooDeep();
  }
  FACET_RETURN_IF_ERROR(budget_.Step());
  const FilterFunction filter = FindFilter(name);
  if (filter == nullptr) {
    return Refuse("", fmt::format("unknown filter \"{}\"", name), "one that Jinja has");
  }
  return filter(*this, input, arguments);
}

Result<Value> Interpreter::EvaluateTest(const Expr& expr, Scope* scope) {
  FACET_ASSIGN(const Value input, Evaluate(*expr.operands[0], scope));
  const TestFunction test = FindTest(expr.text);
  if (test == nullptr) {
    return Refuse("", fmt::format("unknown test \"{}\"", expr.text), "one that Jinja has");
  }
  FACET_ASSIGN(const Arguments arguments, EvaluateArguments(expr.arguments.get(), scope));
  FACET_ASSIGN(const bool holds, test(*this, input, arguments));
  return Value::Bool(holds);
}

}  // namespace facet::jinja
