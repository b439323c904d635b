// SPDX-License-Identifier: Apache-2.0
// The values that are neither data nor text: namespaces, loops, macros, functions, bound methods.
// Scopes and namespaces belong to the rendering (Interpreter), so nothing here owns in circles.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jinja/ast.h"
#include "jinja/value.h"

namespace facet::jinja {

class Interpreter;
class Scope;

/// Arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

/// The only value that changes. Kept alive by the rendering and emptied at its end, which undoes
/// any circle.
struct Namespace : Object {
  Namespace() : Object(Kind::kNamespace, 0) {}
  std::vector<std::pair<std::string, Value>> attributes;

  [[nodiscard]] const Value* Find(std::string_view name) const;
  void Set(std::string_view name, Value value);
};

/// The variable `loop`. `statement` and `scope` are what loop(...) of a recursive loop runs again.
struct Loop : Object {
  explicit Loop(SequencePtr loop_items)
      : Object(Kind::kLoop, loop_items->depth() + 1), items(std::move(loop_items)) {}
  SequencePtr items;
  size_t index0 = 0;
  int level0 = 0;  ///< how many recursive calls deep
  const Stmt* statement = nullptr;
  Scope* scope = nullptr;
  std::vector<Value> last_changed;  ///< arguments of the last loop.changed(...)
  bool has_changed = false;
};

/// A macro, or the body of a call block. `scope` is where it was defined and outlives it.
struct Macro : Object {
  Macro(const MacroDefinition* macro_definition, Scope* macro_scope)
      : Object(Kind::kMacro, 0), definition(macro_definition), scope(macro_scope) {}
  const MacroDefinition* definition;
  Scope* scope;
};

using BuiltinFunction = Result<Value> (*)(Interpreter&, const Arguments&);

struct Function : Object {
  explicit Function(BuiltinFunction builtin) : Object(Kind::kFunction, 0), function(builtin) {}
  BuiltinFunction function;
};

/// `value.name` where name is a method: d.items
struct Method : Object {
  Method(Value method_self, std::string method_name)
      : Object(Kind::kMethod, method_self.depth() + 1),
        self(std::move(method_self)),
        name(std::move(method_name)) {}
  Value self;
  std::string name;
};

struct Cycler : Object {
  explicit Cycler(SequencePtr cycler_items)
      : Object(Kind::kCycler, cycler_items->depth() + 1), items(std::move(cycler_items)) {}
  SequencePtr items;
  size_t position = 0;
};

struct Joiner : Object {
  explicit Joiner(Value joiner_separator)
      : Object(Kind::kJoiner, joiner_separator.depth() + 1),
        separator(std::move(joiner_separator)) {}
  Value separator;
  bool is_used = false;
};

/// What str.encode gives; it can only be printed.
struct Bytes : Object {
  explicit Bytes(TextPtr encoded) : Object(Kind::kBytes, 0), text(std::move(encoded)) {}
  TextPtr text;
};

}  // namespace facet::jinja
