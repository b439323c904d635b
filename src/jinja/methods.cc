// SPDX-License-Identifier: Apache-2.0
// Methods of lists, dicts, numbers and Jinja's own objects. Those of strings are in
// methods_text.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jinja/builtins.h"
#include "jinja/compare.h"
#include "jinja/interpreter.h"
#include "jinja/printing.h"

namespace facet::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

bool IsOneOf(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Value> DictView(const Dict& dict, Sequence::Kind kind, Budget& budget) {
  std::vector<Value> items;
  items.reserve(dict.size());
  for (const auto& [key, value] : dict.entries()) {
    if (kind == Sequence::Kind::kItems) {
      FACET_ASSIGN(Value pair, MakeTuple({key, value}, budget));
      items.push_back(std::move(pair));
    } else {
      items.push_back(kind == Sequence::Kind::kKeys ? key : value);
    }
  }
  return MakeSequence(kind, std::move(items), budget);
}

Result<Value> CallDictMethod(Interpreter& interpreter, const Value& self, std::string_view name,
                             const Arguments& arguments) {
  const Dict& dict = self.as_dict();
  Budget& budget = interpreter.budget();
  if (name == "get") {
    FACET_ASSIGN(const Bound bound, Bound::Bind("get", arguments, {"key", "default"}, 1));
    FACET_RETURN_IF_ERROR(CheckHashable(bound[0]));
    FACET_RETURN_IF_ERROR(budget.Step(bound[0].weight()));
    const Value* found = dict.Find(bound[0]);
    return found != nullptr ? *found : (bound.has(1) ? bound[1] : Value::None());
  }
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind(name, arguments, {}, 0));
  if (name == "copy") {
    return self;
  }
  return DictView(dict,
                  name == "items"
                      ? Sequence::Kind::kItems
                      : (name == "keys" ? Sequence::Kind::kKeys : Sequence::Kind::kValues),
                  budget);
}

Result<Value> CallSequenceMethod(Interpreter& interpreter, const Value& self, std::string_view name,
                                 const Arguments& arguments) {
  if (name == "copy") {
    FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind(name, arguments, {}, 0));
    return self;
  }
  FACET_ASSIGN(const Bound bound, Bound::Bind(name, arguments, {"value"}, 1));
  const std::vector<Value>& items = self.as_sequence().items();
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    FACET_ASSIGN(const bool is_equal, Equal(items[i], bound[0], interpreter.budget()));
    if (is_equal && name == "index") {
      return Value::Integer(static_cast<int64_t>(i));
    }
    count += is_equal ? 1 : 0;
  }
  if (name == "index") {
    return Refuse("", "index() of a value that is not in the list", "one that is");
  }
  return Value::Integer(count);
}

Result<Value> CallLoopMethod(Interpreter& interpreter, const ObjectPtr& object,
                             std::string_view name, const Arguments& arguments) {
  auto& loop = static_cast<Loop&>(*object);
  if (name == "cycle") {
    if (arguments.positional.empty()) {
      return Refuse("", "no items for cycling given");
    }
    return arguments.positional[loop.index0 % arguments.positional.size()];
  }
  FACET_ASSIGN(const Value now, MakeTuple(arguments.positional, interpreter.budget()));
  bool is_same = loop.has_changed && loop.last_changed.size() == arguments.positional.size();
  for (size_t i = 0; is_same && i < arguments.positional.size(); ++i) {
    FACET_ASSIGN(is_same,
                 Equal(loop.last_changed[i], arguments.positional[i], interpreter.budget()));
  }
  if (!loop.has_changed) {
    // From now on the loop may hold others, or itself.
    FACET_RETURN_IF_ERROR(interpreter.KeepUntilEnd(object));
  }
  loop.has_changed = true;
  loop.last_changed = arguments.positional;
  return Value::Bool(!is_same);
}

Result<Value> CallObjectMethod(Interpreter& interpreter, const ObjectPtr& object,
                               std::string_view name, const Arguments& arguments) {
  if (object->kind == Object::Kind::kLoop) {
    return CallLoopMethod(interpreter, object, name, arguments);
  }
  auto& cycler = static_cast<Cycler&>(*object);
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind(name, arguments, {}, 0));
  const Value current = cycler.items->items()[cycler.position];
  cycler.position = name == "reset" ? 0 : (cycler.position + 1) % cycler.items->size();
  return name == "reset" ? Value::None() : current;
}

bool HasObjectMethod(const Object& object, std::string_view name) {
  return (object.kind == Object::Kind::kLoop && IsOneOf(name, {"cycle", "changed"})) ||
         (object.kind == Object::Kind::kCycler && IsOneOf(name, {"next", "reset"}));
}

}  // namespace

bool HasMethod(const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Value::Kind::kString:
      return HasStringMethod(name);
    case Value::Kind::kDict:
      return IsOneOf(name, {"get", "items", "keys", "values", "copy"});
    case Value::Kind::kSequence:
      return (value.as_sequence().has_index() && IsOneOf(name, {"index", "count"})) ||
             (value.as_sequence().is_list() && name == "copy");
    case Value::Kind::kFloat:
      return name == "is_integer";
    case Value::Kind::kObject:
      return HasObjectMethod(value.as_object(), name);
    default:
      return false;
  }
}

bool HasUnsafeMethod(const Value& value, std::string_view name) {
  if (value.is_dict()) {
    return IsOneOf(name, {"clear", "pop", "popitem", "setdefault", "update"});
  }
  return value.is_sequence() && value.as_sequence().is_list() &&
         IsOneOf(name, {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"});
}

Result<Value> CallMethod(Interpreter& interpreter, const Value& self, std::string_view name,
                         const Arguments& arguments) {
  switch (self.kind()) {
    case Value::Kind::kString:
      return CallStringMethod(interpreter, self, name, arguments);
    case Value::Kind::kDict:
      return CallDictMethod(interpreter, self, name, arguments);
    case Value::Kind::kSequence:
      return CallSequenceMethod(interpreter, self, name, arguments);
    case Value::Kind::kObject:
      return CallObjectMethod(interpreter, self.object(), name, arguments);
    default:
      return Value::Bool(std::floor(self.as_double()) == self.as_double());
  }
}

}  // namespace facet::jinja
