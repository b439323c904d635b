// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "jinja/parser_internal.h"

namespace facet::jinja {
namespace {

std::optional<Operator> CompareOperator(const Token& token) {
  static constexpr std::pair<std::string_view, Operator> kTable[] = {
      {"==", Operator::kEqual},     {"!=", Operator::kNotEqual}, {"<", Operator::kLess},
      {"<=", Operator::kLessEqual}, {">", Operator::kGreater},   {">=", Operator::kGreaterEqual}};
  for (const auto& [text, op] : kTable) {
    if (token.IsOperator(text)) {
      return op;
    }
  }
  return std::nullopt;
}

/// Levels of ParseArithmetic, from loose to tight: sums, products, powers. "~" stands between the
/// first two.
std::optional<Operator> ArithmeticOperator(const Token& token, int level) {
  struct Row {
    std::string_view text;
    int level;
    Operator op;
  };
  static constexpr Row kTable[] = {{"+", 0, Operator::kAdd},      {"-", 0, Operator::kSubtract},
                                   {"*", 1, Operator::kMultiply}, {"/", 1, Operator::kDivide},
                                   {"%", 1, Operator::kModulo},   {"//", 1, Operator::kFloorDivide},
                                   {"**", 2, Operator::kPower}};
  for (const Row& row : kTable) {
    if (row.level == level && token.IsOperator(row.text)) {
      return row.op;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<ExprPtr> Parser::ParseExpression(bool has_conditions) {
  const DepthGuard guard(depth_, limits_.max_depth);
  if (!guard.ok()) {
    return Fail(Current().position, "an expression nested too deeply",
                fmt::format("at most {} levels", limits_.max_depth));
  }
  return has_conditions ? ParseConditional() : ParseOr();
}

Result<ExprPtr> Parser::ParseTuple(TupleRules rules) {
  const Position position = Current().position;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) {
      FACET_RETURN_IF_ERROR(ExpectOperator(","));
    }
    if (IsTupleEnd(rules.end)) {
      break;
    }
    FACET_ASSIGN(ExprPtr item, ParseExpression(rules.has_conditions));
    items.push_back(std::move(item));
    if (!Current().IsOperator(",")) {
      break;
    }
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) {
    return std::move(items.front());
  }
  if (!is_tuple && !rules.is_parenthesised) {
    return FailAtCurrent("an expression");
  }
  ExprPtr tuple = Make(Expr::Kind::kTuple, position);
  for (ExprPtr& item : items) {
    FACET_RETURN_IF_ERROR(Adopt(*tuple, std::move(item)));
  }
  return tuple;
}

Result<ExprPtr> Parser::ParseConditional() {
  const Position position = Current().position;
  const size_t n_unknown = unknown_.size();
  FACET_ASSIGN(ExprPtr expr, ParseOr());
  while (Current().IsName("if")) {
    Take();
    // Only now is it known that what was just read stands in a branch.
    std::for_each(unknown_.begin() + static_cast<std::ptrdiff_t>(n_unknown), unknown_.end(),
                  [](Unknown& unknown) { unknown.is_soft = true; });
    ExprPtr conditional = Make(Expr::Kind::kConditional, position);
    const Scoped<bool> soft(is_soft_, true);
    FACET_RETURN_IF_ERROR(Adopt(*conditional, std::move(expr)));
    FACET_ASSIGN(ExprPtr condition, ParseOr());
    FACET_RETURN_IF_ERROR(Adopt(*conditional, std::move(condition)));
    ExprPtr otherwise;
    if (SkipName("else")) {
      FACET_ASSIGN(otherwise, ParseExpression());
    }
    FACET_RETURN_IF_ERROR(Adopt(*conditional, std::move(otherwise)));
    expr = std::move(conditional);
  }
  return expr;
}

Result<ExprPtr> Parser::ParseOr() {
  const Position position = Current().position;
  FACET_ASSIGN(ExprPtr left, ParseAnd());
  if (!Current().IsName("or")) {
    return left;
  }
  ExprPtr all = Make(Expr::Kind::kOr, position);
  FACET_RETURN_IF_ERROR(Adopt(*all, std::move(left)));
  while (SkipName("or")) {
    FACET_ASSIGN(ExprPtr right, ParseAnd());
    FACET_RETURN_IF_ERROR(Adopt(*all, std::move(right)));
  }
  return all;
}

Result<ExprPtr> Parser::ParseAnd() {
  const Position position = Current().position;
  FACET_ASSIGN(ExprPtr left, ParseNot());
  if (!Current().IsName("and")) {
    return left;
  }
  ExprPtr all = Make(Expr::Kind::kAnd, position);
  FACET_RETURN_IF_ERROR(Adopt(*all, std::move(left)));
  while (SkipName("and")) {
    FACET_ASSIGN(ExprPtr right, ParseNot());
    FACET_RETURN_IF_ERROR(Adopt(*all, std::move(right)));
  }
  return all;
}

Result<ExprPtr> Parser::ParseNot() {
  if (!Current().IsName("not")) {
    return ParseCompare();
  }
  const DepthGuard guard(depth_, limits_.max_depth);
  if (!guard.ok()) {
    return Fail(Current().position, "an expression nested too deeply",
                fmt::format("at most {} levels", limits_.max_depth));
  }
  ExprPtr expr = Make(Expr::Kind::kNot, Take().position);
  FACET_ASSIGN(ExprPtr operand, ParseNot());
  FACET_RETURN_IF_ERROR(Adopt(*expr, std::move(operand)));
  return expr;
}

Result<ExprPtr> Parser::ParseCompare() {
  FACET_ASSIGN(ExprPtr left, ParseArithmetic(0));
  ExprPtr chain;
  while (true) {
    const Position position = Current().position;
    std::optional<Operator> op = CompareOperator(Current());
    if (op.has_value()) {
      Take();
    } else if (SkipName("in")) {
      op = Operator::kIn;
    } else if (Current().IsName("not") && Next().IsName("in")) {
      Take();
      Take();
      op = Operator::kNotIn;
    } else {
      break;
    }
    if (chain == nullptr) {  // the first time only, so `left` is still there
      // NOLINTNEXTLINE(bugprone-use-after-move)
      chain = Make(Expr::Kind::kCompare, left->position);
      FACET_RETURN_IF_ERROR(Adopt(*chain, std::move(left)));
    }
    chain->operators.emplace_back(*op, position);
    FACET_ASSIGN(ExprPtr right, ParseArithmetic(0));
    FACET_RETURN_IF_ERROR(Adopt(*chain, std::move(right)));
  }
  return chain != nullptr ? std::move(chain) : std::move(left);
}

Result<ExprPtr> Parser::ParseArithmetic(int level) {
  const auto parse_operand = [this, level] {
    return level == 0 ? ParseConcat() : (level == 1 ? ParseArithmetic(2) : ParseUnary(true));
  };
  FACET_ASSIGN(ExprPtr left, parse_operand());
  if (!ArithmeticOperator(Current(), level).has_value()) {
    return left;
  }
  ExprPtr chain = Make(Expr::Kind::kArithmetic, left->position);
  FACET_RETURN_IF_ERROR(Adopt(*chain, std::move(left)));
  while (const std::optional<Operator> op = ArithmeticOperator(Current(), level)) {
    chain->operators.emplace_back(*op, Take().position);
    FACET_ASSIGN(ExprPtr right, parse_operand());
    FACET_RETURN_IF_ERROR(Adopt(*chain, std::move(right)));
  }
  return chain;
}

Result<ExprPtr> Parser::ParseConcat() {
  FACET_ASSIGN(ExprPtr left, ParseArithmetic(1));
  if (!Current().IsOperator("~")) {
    return left;
  }
  ExprPtr all = Make(Expr::Kind::kConcat, left->position);
  FACET_RETURN_IF_ERROR(Adopt(*all, std::move(left)));
  while (SkipOperator("~")) {
    FACET_ASSIGN(ExprPtr right, ParseArithmetic(1));
    FACET_RETURN_IF_ERROR(Adopt(*all, std::move(right)));
  }
  return all;
}

Result<ExprPtr> Parser::ParseUnary(bool has_filters) {
  const DepthGuard guard(depth_, limits_.max_depth);
  if (!guard.ok()) {
    return Fail(Current().position, "an expression nested too deeply",
                fmt::format("at most {} levels", limits_.max_depth));
  }
  ExprPtr expr;
  if (Current().IsOperator("-") || Current().IsOperator("+")) {
    const Token sign = Take();
    expr = Make(sign.text == "-" ? Expr::Kind::kNegative : Expr::Kind::kPositive, sign.position);
    FACET_ASSIGN(ExprPtr operand, ParseUnary(false));
    FACET_RETURN_IF_ERROR(Adopt(*expr, std::move(operand)));
  } else {
    FACET_ASSIGN(expr, ParsePrimary());
  }
  FACET_ASSIGN(expr, ParsePostfix(std::move(expr)));
  return has_filters ? ParseFilterExpression(std::move(expr)) : Result<ExprPtr>(std::move(expr));
}

Result<ExprPtr> Parser::ParsePrimary() {
  const Token& token = Current();
  ExprPtr expr = Make(Expr::Kind::kConstant, token.position);
  if (token.kind == Token::Kind::kName) {
    const Token named = Take();
    const std::string_view name = named.text;
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      expr->constant = Value::Bool(name[0] == 't' || name[0] == 'T');
    } else if (name == "none" || name == "None") {
      expr->constant = Value::None();
    } else {
      expr->kind = Expr::Kind::kName;
      expr->symbol = SymbolOf(named.text);
      NoteLoad(named.text);
    }
    return expr;
  }
  if (token.kind == Token::Kind::kString) {
    std::string text;
    while (Current().kind == Token::Kind::kString) {
      text += Take().text;
    }
    words_.insert(text);
    expr->constant = Value::String(std::move(text), Origin::kTemplate);
    return expr;
  }
  if (token.kind == Token::Kind::kInteger || token.kind == Token::Kind::kFloat) {
    return ParseNumber();
  }
  if (token.IsOperator("(")) {
    Take();
    FACET_ASSIGN(expr, ParseTuple({TupleEnd::kTag, true, true}));
    FACET_RETURN_IF_ERROR(ExpectOperator(")"));
    return expr;
  }
  if (token.IsOperator("[") || token.IsOperator("{")) {
    return ParseListOrDict();
  }
  return FailAtCurrent("an expression");
}

Result<ExprPtr> Parser::ParseNumber() {
  const Token token = Take();
  ExprPtr expr = Make(Expr::Kind::kConstant, token.position);
  if (token.kind == Token::Kind::kFloat) {
    expr->constant = Value::Float(std::strtod(token.text.c_str(), nullptr));
    return expr;
  }
  const char prefix = token.text.size() > 1 && token.text[0] == '0'
                          ? static_cast<char>(token.text[1] | 0x20)
                          : '\0';
  const int base = prefix == 'x' ? 16 : (prefix == 'o' ? 8 : (prefix == 'b' ? 2 : 10));
  if (base == 10) {
    expr->constant = Value::IntegerFromDigits(token.text);
    return expr;
  }
  errno = 0;
  const long long value = std::strtoll(token.text.c_str() + 2, nullptr, base);
  if (errno != 0) {
    return Fail(token.position, fmt::format("the integer {}", token.text), "one that fits 64 bits");
  }
  expr->constant = Value::Integer(value);
  return expr;
}

Result<ExprPtr> Parser::ParseListOrDict() {
  const Token open = Take();
  const bool is_dict = open.text == "{";
  const std::string_view close = is_dict ? "}" : "]";
  ExprPtr expr = Make(is_dict ? Expr::Kind::kDict : Expr::Kind::kList, open.position);
  while (!Current().IsOperator(close)) {
    if (!expr->operands.empty()) {
      FACET_RETURN_IF_ERROR(ExpectOperator(","));
      if (Current().IsOperator(close)) {
        break;
      }
    }
    FACET_ASSIGN(ExprPtr item, ParseExpression());
    FACET_RETURN_IF_ERROR(Adopt(*expr, std::move(item)));
    if (is_dict) {
      FACET_RETURN_IF_ERROR(ExpectOperator(":"));
      FACET_ASSIGN(ExprPtr value, ParseExpression());
      FACET_RETURN_IF_ERROR(Adopt(*expr, std::move(value)));
    }
  }
  Take();
  return expr;
}

Result<ExprPtr> Parser::ParsePostfix(ExprPtr expr) {
  while (true) {
    if (Current().IsOperator(".") || Current().IsOperator("[")) {
      FACET_ASSIGN(expr, ParseSubscript(std::move(expr)));
    } else if (Current().IsOperator("(")) {
      FACET_ASSIGN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> Parser::ParseFilterExpression(ExprPtr expr) {
  while (true) {
    if (Current().IsOperator("|")) {
      FACET_ASSIGN(expr, ParseFilters(std::move(expr), false));
    } else if (Current().IsName("is")) {
      FACET_ASSIGN(expr, ParseTest(std::move(expr)));
    } else if (Current().IsOperator("(")) {
      FACET_ASSIGN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> Parser::ParseSubscript(ExprPtr expr) {
  const Token open = Take();
  if (open.text == "[") {
    return ParseIndex(std::move(expr));
  }
  const Token name = Take();
  if (name.kind == Token::Kind::kName) {
    ExprPtr attribute = Make(Expr::Kind::kAttribute, open.position);
    attribute->text = name.text;
    words_.insert(name.text);
    FACET_RETURN_IF_ERROR(Adopt(*attribute, std::move(expr)));
    return attribute;
  }
  if (name.kind != Token::Kind::kInteger) {
    return Fail(name.position, name.Describe(), "a name or a number");
  }
  ExprPtr item = Make(Expr::Kind::kItem, open.position);
  FACET_RETURN_IF_ERROR(Adopt(*item, std::move(expr)));
  ExprPtr index = Make(Expr::Kind::kConstant, name.position);
  index->constant = Value::IntegerFromDigits(name.text);
  FACET_RETURN_IF_ERROR(Adopt(*item, std::move(index)));
  return item;
}

Result<ExprPtr> Parser::ParseIndex(ExprPtr expr) {
  const Position position = Current().position;
  ExprPtr parts[3];
  int n_parts = 0;  // colons seen so far + 1
  ExprPtr item = Make(Expr::Kind::kItem, position);
  FACET_RETURN_IF_ERROR(Adopt(*item, std::move(expr)));
  for (; n_parts < 3; ++n_parts) {
    if (!Current().IsOperator(":") && !Current().IsOperator("]")) {
      FACET_ASSIGN(parts[n_parts], ParseExpression());
    }
    if (n_parts == 2 || !SkipOperator(":")) {
      break;
    }
  }
  if (n_parts == 0 && parts[0] == nullptr) {
    return FailAtCurrent("an index");
  }
  FACET_RETURN_IF_ERROR(ExpectOperator("]"));
  if (n_parts == 0) {
    FACET_RETURN_IF_ERROR(Adopt(*item, std::move(parts[0])));
    return item;
  }
  item->kind = Expr::Kind::kSlice;
  for (ExprPtr& part : parts) {
    FACET_RETURN_IF_ERROR(Adopt(*item, std::move(part)));
  }
  return item;
}

Result<ExprPtr> Parser::ParseCall(ExprPtr callee) {
  ExprPtr call = Make(Expr::Kind::kCall, Current().position);
  if (callee->kind == Expr::Kind::kName) {
    called_names_.emplace_back(program_.symbols[static_cast<size_t>(callee->symbol)],
                               callee->position);
  }
  FACET_RETURN_IF_ERROR(Adopt(*call, std::move(callee)));
  FACET_RETURN_IF_ERROR(ParseArguments(*call));
  return call;
}

Status Parser::ParseArguments(Expr& call) {
  FACET_RETURN_IF_ERROR(ExpectOperator("("));
  call.arguments = std::make_unique<CallArguments>();
  bool is_first = true;
  while (!Current().IsOperator(")")) {
    if (!is_first) {
      FACET_RETURN_IF_ERROR(ExpectOperator(","));
      if (Current().IsOperator(")")) {
        break;
      }
    }
    is_first = false;
    FACET_RETURN_IF_ERROR(ParseArgument(call));
  }
  return ExpectOperator(")");
}

Status Parser::ParseArgument(Expr& call) {
  CallArguments& arguments = *call.arguments;
  const Position position = Current().position;
  bool is_allowed = arguments.rest_keyword == nullptr;
  if (SkipOperator("*")) {
    is_allowed = is_allowed && arguments.rest_positional == nullptr;
    FACET_ASSIGN(arguments.rest_positional, ParseExpression());
    FACET_RETURN_IF_ERROR(Raise(call, *arguments.rest_positional));
  } else if (SkipOperator("**")) {
    FACET_ASSIGN(arguments.rest_keyword, ParseExpression());
    FACET_RETURN_IF_ERROR(Raise(call, *arguments.rest_keyword));
  } else if (Current().kind == Token::Kind::kName && Next().IsOperator("=")) {
    const std::string name = Take().text;
    Take();
    words_.insert(name);
    FACET_ASSIGN(ExprPtr value, ParseExpression());
    FACET_RETURN_IF_ERROR(Raise(call, *value));
    arguments.keyword.emplace_back(name, std::move(value));
  } else {
    is_allowed = is_allowed && arguments.rest_positional == nullptr && arguments.keyword.empty();
    FACET_ASSIGN(ExprPtr value, ParseExpression());
    FACET_RETURN_IF_ERROR(Raise(call, *value));
    arguments.positional.push_back(std::move(value));
  }
  if (!is_allowed) {
    return Fail(position, "an argument after one that must come later",
                "positional, named, *, ** in this order");
  }
  return {};
}

Result<std::string> Parser::ParseDottedName() {
  FACET_ASSIGN(std::string name, ExpectName());
  while (SkipOperator(".")) {
    FACET_ASSIGN(const std::string part, ExpectName());
    name += "." + part;
  }
  return name;
}

Result<ExprPtr> Parser::ParseFilters(ExprPtr expr, bool starts_inline) {
  while (starts_inline || Current().IsOperator("|")) {
    if (!starts_inline) {
      Take();
    }
    starts_inline = false;
    const Position position = Current().position;
    ExprPtr filter = Make(Expr::Kind::kFilter, position);
    FACET_ASSIGN(filter->text, ParseDottedName());
    NoteUse(true, filter->text, position);
    FACET_RETURN_IF_ERROR(Adopt(*filter, std::move(expr)));
    if (Current().IsOperator("(")) {
      FACET_RETURN_IF_ERROR(ParseArguments(*filter));
    }
    expr = std::move(filter);
  }
  return expr;
}

Result<ExprPtr> Parser::ParseTest(ExprPtr expr) {
  Take();
  const bool is_negated = SkipName("not");
  const Position position = Current().position;
  ExprPtr test = Make(Expr::Kind::kTest, position);
  FACET_ASSIGN(test->text, ParseDottedName());
  NoteUse(false, test->text, position);
  FACET_RETURN_IF_ERROR(Adopt(*test, std::move(expr)));
  const Token& next = Current();
  const bool is_operand = next.kind == Token::Kind::kName || next.kind == Token::Kind::kString ||
                          next.kind == Token::Kind::kInteger || next.kind == Token::Kind::kFloat ||
                          next.IsOperator("[") || next.IsOperator("{");
  if (next.IsOperator("(")) {
    FACET_RETURN_IF_ERROR(ParseArguments(*test));
  } else if (is_operand && !next.IsName("else") && !next.IsName("or") && !next.IsName("and")) {
    if (next.IsName("is")) {
      return Fail(next.position, "a second \"is\"", "tests joined with \"and\"");
    }
    const DepthGuard guard(depth_, limits_.max_depth);
    if (!guard.ok()) {
      return Fail(position, "an expression nested too deeply",
                  fmt::format("at most {} levels", limits_.max_depth));
    }
    FACET_ASSIGN(ExprPtr argument, ParsePrimary());
    FACET_ASSIGN(argument, ParsePostfix(std::move(argument)));
    FACET_RETURN_IF_ERROR(Raise(*test, *argument));
    test->arguments = std::make_unique<CallArguments>();
    test->arguments->positional.push_back(std::move(argument));
  }
  if (!is_negated) {
    return test;
  }
  ExprPtr negation = Make(Expr::Kind::kNot, position);
  FACET_RETURN_IF_ERROR(Adopt(*negation, std::move(test)));
  return negation;
}

}  // namespace facet::jinja
