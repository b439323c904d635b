// SPDX-License-Identifier: Apache-2.0
// The parser's two halves (expressions, statements) as one class; parser.h is its outside.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/ast.h"
#include "jinja/lexer.h"
#include "jinja/limits.h"

namespace facet::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string name, const Limits& limits)
      : tokens_(std::move(tokens)), limits_(limits) {
    program_.name = std::move(name);
  }

  Result<Program> Run();

 private:
  /// Ends a list of expressions besides the end of the tag.
  enum class TupleEnd : uint8_t { kTag, kIn, kRecursive };
  struct TupleRules {
    TupleEnd end = TupleEnd::kTag;
    bool has_conditions = true;
    bool is_parenthesised = false;
  };

  // parser_expressions.cc
  Result<ExprPtr> ParseExpression(bool has_conditions = true);
  Result<ExprPtr> ParseTuple(TupleRules rules);
  Result<ExprPtr> ParseConditional();
  Result<ExprPtr> ParseOr();
  Result<ExprPtr> ParseAnd();
  Result<ExprPtr> ParseNot();
  Result<ExprPtr> ParseCompare();
  Result<ExprPtr> ParseArithmetic(int level);
  Result<ExprPtr> ParseConcat();
  Result<ExprPtr> ParseUnary(bool has_filters);
  Result<ExprPtr> ParsePrimary();
  Result<ExprPtr> ParseNumber();
  Result<ExprPtr> ParseListOrDict();
  Result<ExprPtr> ParsePostfix(ExprPtr expr);
  Result<ExprPtr> ParseFilterExpression(ExprPtr expr);
  Result<ExprPtr> ParseSubscript(ExprPtr expr);
  Result<ExprPtr> ParseIndex(ExprPtr expr);
  Result<ExprPtr> ParseCall(ExprPtr callee);
  Status ParseArguments(Expr& call);
  Status ParseArgument(Expr& call);
  Result<ExprPtr> ParseFilters(ExprPtr expr, bool starts_inline);
  Result<ExprPtr> ParseTest(ExprPtr expr);
  Result<std::string> ParseDottedName();

  // parser.cc: statements
  Result<Body> ParseBody(std::initializer_list<std::string_view> ends);
  Status ParseStatement(Body& body);
  Result<StmtPtr> ParseTag(const Token& tag);
  Result<StmtPtr> ParseFor(Position position);
  Result<StmtPtr> ParseIf(Position position);
  Result<StmtPtr> ParseSet(Position position);
  Result<StmtPtr> ParseMacro(Position position);
  Result<StmtPtr> ParseCallBlock(Position position);
  Result<StmtPtr> ParseGeneration(Position position);
  Result<StmtPtr> ParseFilterBlock(Position position);
  Result<StmtPtr> ParseWith(Position position);
  Result<StmtPtr> ParseNamedBlock(Position position);
  Status ParsePrint(Body& body, Position position);
  Result<StmtPtr> ParseOther(const Token& tag);
  Status ParseSignature(MacroDefinition& macro);
  Result<Body> ParseMacroBody(MacroDefinition& macro, std::string_view end);
  Result<Target> ParseTarget(bool allows_attributes, TupleEnd end);
  Result<Target> ParseSingleTarget(bool allows_attributes);

  [[nodiscard]] const Token& Current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& Next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token Take();
  bool SkipOperator(std::string_view op);
  bool SkipName(std::string_view name);
  Status ExpectOperator(std::string_view op);
  Result<std::string> ExpectName();
  Status ExpectBlockEnd();
  [[nodiscard]] bool IsTupleEnd(TupleEnd end) const;

  static ExprPtr Make(Expr::Kind kind, Position position);
  /// Adds an operand and keeps the height.
  Status Adopt(Expr& parent, ExprPtr child);
  /// Makes `parent` at least one level higher than `child`.
  [[nodiscard]] Status Raise(Expr& parent, const Expr& child) const;
  int SymbolOf(const std::string& name);
  void NoteLoad(const std::string& name);
  /// A filter or test is used here; whether that is an error is decided at the end.
  void NoteUse(bool is_filter, const std::string& name, Position position);
  Status CollectFindings();
  [[nodiscard]] Error Fail(Position position, std::string found, std::string wanted) const;
  [[nodiscard]] Error FailAtCurrent(std::string wanted) const;

  std::vector<Token> tokens_;
  Limits limits_;
  size_t at_ = 0;
  int depth_ = 0;
  int loop_depth_ = 0;    ///< loops around, within the same macro
  bool is_soft_ = false;  ///< inside a branch: unknown filters wait until they are reached
  struct Unknown {
    Position position;
    std::string text;
    bool is_soft;
  };
  std::vector<Unknown> unknown_;          ///< filters and tests that do not exist
  std::vector<MacroDefinition*> macros_;  ///< being parsed, outermost first
  std::map<std::string, int, std::less<>> symbols_;
  std::set<std::string, std::less<>> words_;
  std::set<std::string, std::less<>> assigned_;
  std::set<std::string, std::less<>> blocks_;
  std::vector<std::pair<std::string, Position>> called_names_;
  Program program_;
};

/// Counts one level of nesting while it lives; `ok` tells whether the limit still holds.
class DepthGuard {
 public:
  DepthGuard(int& depth, int limit) : depth_(depth), ok_(++depth <= limit) {}
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  int& depth_;
  bool ok_;
};

/// Sets a variable and puts the old value back.
template <typename T>
class Scoped {
 public:
  Scoped(T& variable, T value) : variable_(variable), old_(std::exchange(variable, value)) {}
  ~Scoped() { variable_ = old_; }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& variable_;
  T old_;
};

}  // namespace facet::jinja
