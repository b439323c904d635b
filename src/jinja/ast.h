// SPDX-License-Identifier: Apache-2.0
// The tree of a compiled template. One node type for expressions and one for statements: what the
// operands of each kind are is written beside the kind. Built by the parser, read by the
// interpreter, immutable in between.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace facet::jinja {

/// Counted from 1; columns in code points.
struct Position {
  int line = 1;
  int column = 1;
};

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// f(a, k=b, *c, **d)
struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr rest_positional;
  ExprPtr rest_keyword;
};

struct Expr {
  enum class Kind : uint8_t {
    kConstant,     ///< constant
    kName,         ///< symbol
    kTuple,        ///< operands
    kList,         ///< operands
    kDict,         ///< operands: key, value, key, value, ...
    kConditional,  ///< operands: value, condition, otherwise (null when there is no else)
    kAnd,          ///< operands
    kOr,           ///< operands
    kNot,          ///< operands[0]
    kNegative,     ///< operands[0]
    kPositive,     ///< operands[0]
    kCompare,      ///< operands[0] operators[0] operands[1] operators[1] ..., chained as in Python
    kArithmetic,   ///< the same, from left to right
    kConcat,       ///< operands
    kAttribute,    ///< operands[0].text
    kItem,         ///< operands[0][operands[1]]
    kSlice,        ///< operands[0][operands[1]:operands[2]:operands[3]], absent ones null
    kCall,         ///< operands[0](arguments)
    kFilter,       ///< operands[0]|text(arguments); operands[0] is null for a filter on a block
    kTest,         ///< operands[0] is text(arguments)
  };

  Kind kind;
  Position position;
  int height = 1;  ///< levels of the tree below and with this node
  int symbol = -1;
  Value constant;
  std::string text;
  std::vector<ExprPtr> operands;
  std::vector<std::pair<Operator, Position>> operators;
  std::unique_ptr<CallArguments> arguments;
};

/// What `set` and `for` assign to.
struct Target {
  enum class Kind : uint8_t { kName, kAttribute, kTuple };
  Kind kind;
  Position position;
  int symbol = -1;            ///< the name, or the namespace
  std::string attribute;      ///< kAttribute
  std::vector<Target> parts;  ///< kTuple
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

/// {% macro name(parameters) %}body{% endmacro %}, or the body of a call block.
struct MacroDefinition {
  std::string name;
  std::vector<std::pair<int, std::string>> parameters;  ///< symbol, name
  std::vector<ExprPtr> defaults;                        ///< of the last parameters
  Body body;
  // Which of the special variables the body reads; a macro takes surplus arguments only when it
  // does.
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};

struct Branch {
  ExprPtr condition;
  Body body;
};

struct Stmt {
  enum class Kind : uint8_t {
    kText,         ///< text
    kPrint,        ///< expression
    kIf,           ///< branches, otherwise
    kFor,          ///< for target in expression if condition [recursive]: body, otherwise
    kSet,          ///< target = expression
    kSetBlock,     ///< target = body, through the filters of expression (may be null)
    kMacro,        ///< target = macro
    kCallBlock,    ///< expression is the call, macro its body
    kFilterBlock,  ///< body through the filters of expression
    kWith,         ///< bindings, body
    kBlock,        ///< body with its own scope
    kBreak,
    kContinue,
    kUnsupported,  ///< a tag that needs other templates: an error when it is reached
  };

  Kind kind;
  Position position;
  Value text;  ///< of kText; the tag's name for kUnsupported
  ExprPtr expression;
  ExprPtr condition;
  std::vector<Branch> branches;
  std::vector<std::pair<Target, ExprPtr>> bindings;
  Body body;
  Body otherwise;
  std::unique_ptr<Target> target;
  std::unique_ptr<MacroDefinition> macro;
  bool is_recursive = false;
};

/// A whole template. Names are numbers; symbols[n] spells number n.
struct Program {
  std::string name;
  Body body;
  std::vector<std::string> symbols;
  std::vector<std::string>
      words;  ///< identifiers, attribute names and string literals, ascending, without repetition
  std::vector<Finding> findings;
};

}  // namespace facet::jinja
