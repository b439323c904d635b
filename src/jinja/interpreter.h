// SPDX-License-Identifier: Apache-2.0
// Walks the tree of a template and writes its text. One object per rendering: it owns every scope
// and every object that changes until the end, so they may refer to each other freely.
// Errors made below (filters, comparisons) carry no place; the node being evaluated adds it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "jinja/ast.h"
#include "jinja/limits.h"
#include "jinja/objects.h"
#include "jinja/value.h"

namespace facet::jinja {

/// The variables of one block, macro call or round of a loop; looked up outwards. A scope that a
/// macro remembers lives until the end of the rendering, others are used again.
class Scope {
 public:
  [[nodiscard]] const Value* Find(int symbol) const;
  void Set(int symbol, Value value);

  Scope* parent = nullptr;
  bool is_captured = false;
  std::vector<std::pair<int, Value>> variables;
};

class Interpreter {
 public:
  /// `program` must outlive the interpreter. `context` holds the variables by name.
  Interpreter(const Program& program, const Limits& limits, const Dict& context,
              int64_t now_seconds);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Result<MarkedString> Run();

  // For the built-in filters, tests, functions and methods:
  Budget& budget() { return budget_; }
  [[nodiscard]] int64_t now_seconds() const { return now_seconds_; }
  /// value.name: a method first, then an item.
  Result<Value> Attribute(const Value& value, std::string_view name);
  /// value[key]: an item first, then a method.
  Result<Value> Item(const Value& value, const Value& key);
  Result<Value> Call(const Value& callee, const Arguments& arguments);
  /// `name` of Jinja's filters on `input`. Filters may call each other through this.
  Result<Value> Filter(std::string_view name, const Value& input, const Arguments& arguments);
  Result<std::shared_ptr<Namespace>> NewNamespace();
  /// For objects that change, which can therefore hold each other in circles and long chains:
  /// they live until the end of the rendering, and lose what they hold then.
  Status KeepUntilEnd(ObjectPtr object);
  /// str(value) as a value; a string stays itself.
  Result<Value> TextValue(const Value& value);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  /// A scope inside another one, for the lifetime of this object.
  class ScopeHolder {
   public:
    ScopeHolder(Interpreter& interpreter, Scope* parent);
    ~ScopeHolder();
    ScopeHolder(const ScopeHolder&) = delete;
    ScopeHolder& operator=(const ScopeHolder&) = delete;
    Scope* get() { return scope_; }

   private:
    Interpreter& interpreter_;
    Scope* scope_;
  };

  // interpreter.cc: statements
  Result<Flow> RunBody(const Body& body, Scope* scope);
  Result<Flow> RunStatement(const Stmt& statement, Scope* scope);
  Status RunPrint(const Stmt& statement, Scope* scope);
  Result<Flow> RunIf(const Stmt& statement, Scope* scope);
  Result<Flow> RunFor(const Stmt& statement, Scope* scope);
  Result<Flow> RunLoop(const Stmt& statement, Scope* scope, const Value& iterable, int level);
  Result<SequencePtr> SelectItems(const Stmt& statement, Scope* scope, SequencePtr items);
  Result<Flow> RunWith(const Stmt& statement, Scope* scope);
  Result<Flow> RunFiltered(const Stmt& statement, Scope* scope);
  Status RunCallBlock(const Stmt& statement, Scope* scope);
  Status Assign(const Target& target, Value value, Scope* scope);
  Status AssignAttribute(const Target& target, Value value, Scope* scope);
  /// What a body writes, as a string.
  Result<Flow> Capture(const Body& body, Scope* scope, MarkedString& text);
  Status Write(const MarkedString& text);
  ObjectPtr NewMacro(const MacroDefinition& definition, Scope* scope);
  Result<Value> CallMacro(const Macro& macro, const Arguments& arguments);
  Status BindParameters(const Macro& macro, const Arguments& arguments, Scope* scope);
  Result<Value> CallLoop(const Loop& loop, const Arguments& arguments);

  // evaluate.cc: expressions
  Result<Value> Evaluate(const Expr& expr, Scope* scope);
  Result<Value> EvaluateNode(const Expr& expr, Scope* scope);
  Result<Value> EvaluateName(const Expr& expr, Scope* scope);
  Result<Value> EvaluateCollection(const Expr& expr, Scope* scope);
  Result<Value> EvaluateConditional(const Expr& expr, Scope* scope);
  Result<Value> EvaluateLogic(const Expr& expr, Scope* scope);
  Result<Value> EvaluateCompare(const Expr& expr, Scope* scope);
  Result<Value> EvaluateArithmetic(const Expr& expr, Scope* scope);
  Result<Value> EvaluateConcat(const Expr& expr, Scope* scope);
  Result<Value> EvaluateSlice(const Expr& expr, Scope* scope);
  Result<Value> EvaluateCall(const Expr& expr, Scope* scope, const Value* caller);
  Result<Value> EvaluateFilter(const Expr& expr, Scope* scope, const Value* block_text);
  Result<Value> EvaluateTest(const Expr& expr, Scope* scope);
  Result<Arguments> EvaluateArguments(const CallArguments* arguments, Scope* scope);
  [[nodiscard]] Error At(Position position, Error error) const;
  /// Levels of recursion that the limits allow; a macro call takes at least two.
  [[nodiscard]] int MaxLevels() const { return budget_.limits().max_depth * 2; }
  [[nodiscard]] Error TooDeep() const;

  const Program& program_;
  Budget budget_;
  int64_t now_seconds_;
  std::vector<Value>
      globals_;  ///< by symbol: the context's variable, else the built-in function, else undefined
  int loop_symbol_;
  int caller_symbol_;
  int varargs_symbol_;
  int kwargs_symbol_;
  int levels_ = 0;  ///< of recursion in this class
  int calls_ = 0;   ///< macros and recursive loops being run
  MarkedString* out_ = nullptr;
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::vector<Scope*> free_scopes_;
  std::vector<ObjectPtr> changing_;  ///< namespaces, and loops that remember values
};

}  // namespace facet::jinja
