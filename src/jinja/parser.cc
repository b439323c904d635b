// SPDX-License-Identifier: Apache-2.0
#include "jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/parser_internal.h"

namespace facet::jinja {

Result<Program> Parse(std::string_view source, const std::string& name, const Limits& limits) {
  FACET_ASSIGN(std::vector<Token> tokens, Tokenize(source, name));
  return Parser(std::move(tokens), name, limits).Run();
}

Result<Program> Parser::Run() {
  FACET_ASSIGN(program_.body, ParseBody({}));
  FACET_RETURN_IF_ERROR(CollectFindings());
  program_.words.assign(words_.begin(), words_.end());
  return std::move(program_);
}

Result<Body> Parser::ParseBody(std::initializer_list<std::string_view> ends) {
  const DepthGuard guard(depth_, limits_.max_depth);
  if (!guard.ok()) {
    return Fail(Current().position, "blocks nested too deeply",
                fmt::format("at most {} levels", limits_.max_depth));
  }
  Body body;
  while (Current().kind != Token::Kind::kEnd) {
    const Token token = Take();
    if (token.kind == Token::Kind::kData) {
      auto text = std::make_unique<Stmt>();
      text->kind = Stmt::Kind::kText;
      text->position = token.position;
      text->text = Value::String(token.text, Origin::kTemplate);
      body.push_back(std::move(text));
      continue;
    }
    if (token.kind == Token::Kind::kVariableBegin) {
      auto print = std::make_unique<Stmt>();
      print->kind = Stmt::Kind::kPrint;
      print->position = token.position;
      FACET_ASSIGN(print->expression, ParseTuple({}));
      if (Current().kind != Token::Kind::kVariableEnd) {
        return FailAtCurrent("end of print statement");
      }
      Take();
      body.push_back(std::move(print));
      continue;
    }
    const bool is_end = Current().kind == Token::Kind::kName &&
                        std::find(ends.begin(), ends.end(), Current().text) != ends.end();
    if (is_end) {
      return body;
    }
    FACET_RETURN_IF_ERROR(ParseStatement(body));
    FACET_RETURN_IF_ERROR(ExpectBlockEnd());
  }
  if (ends.size() != 0) {
    return FailAtCurrent(fmt::format("{}", fmt::join(ends, " or ")));
  }
  return body;
}

Status Parser::ParseStatement(Body& body) {
  if (Current().kind != Token::Kind::kName) {
    return FailAtCurrent("the name of a tag");
  }
  const Token tag = Take();
  if (tag.text == "print") {
    return ParsePrint(body, tag.position);
  }
  FACET_ASSIGN(StmtPtr statement, ParseTag(tag));
  body.push_back(std::move(statement));
  return {};
}

Result<StmtPtr> Parser::ParseTag(const Token& tag) {
  using ParseMethod = Result<StmtPtr> (Parser::*)(Position);
  struct Row {
    std::string_view name;
    ParseMethod parse;
  };
  static constexpr Row kTags[] = {{"for", &Parser::ParseFor},
                                  {"if", &Parser::ParseIf},
                                  {"set", &Parser::ParseSet},
                                  {"macro", &Parser::ParseMacro},
                                  {"call", &Parser::ParseCallBlock},
                                  {"generation", &Parser::ParseGeneration},
                                  {"filter", &Parser::ParseFilterBlock},
                                  {"with", &Parser::ParseWith},
                                  {"block", &Parser::ParseNamedBlock}};
  for (const Row& row : kTags) {
    if (row.name == tag.text) {
      return (this->*row.parse)(tag.position);
    }
  }
  return ParseOther(tag);
}

namespace {

StmtPtr MakeStatement(Stmt::Kind kind, Position position) {
  auto statement = std::make_unique<Stmt>();
  statement->kind = kind;
  statement->position = position;
  return statement;
}

}  // namespace

Result<StmtPtr> Parser::ParseFor(Position position) {
  StmtPtr loop = MakeStatement(Stmt::Kind::kFor, position);
  FACET_ASSIGN(Target target, ParseTarget(false, TupleEnd::kIn));
  loop->target = std::make_unique<Target>(std::move(target));
  if (!SkipName("in")) {
    return FailAtCurrent("in");
  }
  FACET_ASSIGN(loop->expression, ParseTuple({TupleEnd::kRecursive, false, false}));
  {
    const Scoped<bool> hard(is_soft_, false);
    if (SkipName("if")) {
      FACET_ASSIGN(loop->condition, ParseExpression());
    }
    loop->is_recursive = SkipName("recursive");
    FACET_RETURN_IF_ERROR(ExpectBlockEnd());
    ++loop_depth_;
    auto body = ParseBody({"endfor", "else"});
    --loop_depth_;
    FACET_ASSIGN(loop->body, std::move(body));
    if (SkipName("else")) {
      FACET_RETURN_IF_ERROR(ExpectBlockEnd());
      FACET_ASSIGN(loop->otherwise, ParseBody({"endfor"}));
    }
  }
  Take();
  return loop;
}

Result<StmtPtr> Parser::ParseIf(Position position) {
  StmtPtr statement = MakeStatement(Stmt::Kind::kIf, position);
  const Scoped<bool> soft(is_soft_, true);
  while (true) {
    Branch branch;
    FACET_ASSIGN(branch.condition, ParseTuple({TupleEnd::kTag, false, false}));
    FACET_RETURN_IF_ERROR(ExpectBlockEnd());
    FACET_ASSIGN(branch.body, ParseBody({"elif", "else", "endif"}));
    statement->branches.push_back(std::move(branch));
    const Token end = Take();
    if (end.text == "endif") {
      return statement;
    }
    if (end.text == "else") {
      FACET_RETURN_IF_ERROR(ExpectBlockEnd());
      FACET_ASSIGN(statement->otherwise, ParseBody({"endif"}));
      Take();
      return statement;
    }
  }
}

Result<StmtPtr> Parser::ParseSet(Position position) {
  StmtPtr statement = MakeStatement(Stmt::Kind::kSet, position);
  FACET_ASSIGN(Target target, ParseTarget(true, TupleEnd::kTag));
  statement->target = std::make_unique<Target>(std::move(target));
  if (SkipOperator("=")) {
    FACET_ASSIGN(statement->expression, ParseTuple({}));
    return statement;
  }
  statement->kind = Stmt::Kind::kSetBlock;
  const Scoped<bool> hard(is_soft_, false);
  FACET_ASSIGN(statement->expression, ParseFilters(nullptr, false));
  FACET_RETURN_IF_ERROR(ExpectBlockEnd());
  FACET_ASSIGN(statement->body, ParseBody({"endset"}));
  Take();
  return statement;
}

Status Parser::ParseSignature(MacroDefinition& macro) {
  FACET_RETURN_IF_ERROR(ExpectOperator("("));
  while (!Current().IsOperator(")")) {
    if (!macro.parameters.empty()) {
      FACET_RETURN_IF_ERROR(ExpectOperator(","));
    }
    FACET_ASSIGN(const std::string name, ExpectName());
    assigned_.insert(name);
    macro.parameters.emplace_back(SymbolOf(name), name);
    if (SkipOperator("=")) {
      FACET_ASSIGN(ExprPtr value, ParseExpression());
      macro.defaults.push_back(std::move(value));
    } else if (!macro.defaults.empty()) {
      return FailAtCurrent("a default value, as the parameter before has one");
    }
  }
  Take();
  return {};
}

Result<Body> Parser::ParseMacroBody(MacroDefinition& macro, std::string_view end) {
  FACET_RETURN_IF_ERROR(ExpectBlockEnd());
  const Scoped<bool> hard(is_soft_, false);
  const Scoped<int> outside_loops(loop_depth_, 0);
  macros_.push_back(&macro);
  auto body = ParseBody({end});
  macros_.pop_back();
  if (body.ok()) {
    Take();
  }
  return body;
}

Result<StmtPtr> Parser::ParseMacro(Position position) {
  StmtPtr statement = MakeStatement(Stmt::Kind::kMacro, position);
  statement->macro = std::make_unique<MacroDefinition>();
  statement->target = std::make_unique<Target>();
  FACET_ASSIGN(statement->macro->name, ExpectName());
  *statement->target = {Target::Kind::kName, position, SymbolOf(statement->macro->name), {}, {}};
  assigned_.insert(statement->macro->name);
  FACET_RETURN_IF_ERROR(ParseSignature(*statement->macro));
  FACET_ASSIGN(statement->macro->body, ParseMacroBody(*statement->macro, "endmacro"));
  return statement;
}

Result<StmtPtr> Parser::ParseCallBlock(Position position) {
  StmtPtr statement = MakeStatement(Stmt::Kind::kCallBlock, position);
  statement->macro = std::make_unique<MacroDefinition>();
  statement->macro->name = "caller";
  if (Current().IsOperator("(")) {
    FACET_RETURN_IF_ERROR(ParseSignature(*statement->macro));
  }
  const Token start = Current();
  FACET_ASSIGN(statement->expression, ParseExpression());
  if (statement->expression->kind != Expr::Kind::kCall) {
    return Fail(start.position, "an expression that is no call", "a call");
  }
  FACET_ASSIGN(statement->macro->body, ParseMacroBody(*statement->macro, "endcall"));
  return statement;
}

Result<StmtPtr> Parser::ParseGeneration(Position position) {
  // transformers marks what the model wrote; the text itself is rendered as it stands, in a scope
  // of its own.
  StmtPtr statement = MakeStatement(Stmt::Kind::kBlock, position);
  MacroDefinition unused;
  FACET_ASSIGN(statement->body, ParseMacroBody(unused, "endgeneration"));
  return statement;
}

Result<StmtPtr> Parser::ParseFilterBlock(Position position) {
  StmtPtr statement = MakeStatement(Stmt::Kind::kFilterBlock, position);
  const Scoped<bool> hard(is_soft_, false);
  FACET_ASSIGN(statement->expression, ParseFilters(nullptr, true));
  FACET_RETURN_IF_ERROR(ExpectBlockEnd());
  FACET_ASSIGN(statement->body, ParseBody({"endfilter"}));
  Take();
  return statement;
}

Result<StmtPtr> Parser::ParseWith(Position position) {
  StmtPtr statement = MakeStatement(Stmt::Kind::kWith, position);
  while (Current().kind != Token::Kind::kBlockEnd) {
    if (!statement->bindings.empty()) {
      FACET_RETURN_IF_ERROR(ExpectOperator(","));
    }
    FACET_ASSIGN(Target target, ParseSingleTarget(false));
    FACET_RETURN_IF_ERROR(ExpectOperator("="));
    FACET_ASSIGN(ExprPtr value, ParseExpression());
    statement->bindings.emplace_back(std::move(target), std::move(value));
  }
  Take();
  const Scoped<bool> hard(is_soft_, false);
  FACET_ASSIGN(statement->body, ParseBody({"endwith"}));
  Take();
  return statement;
}

Result<StmtPtr> Parser::ParseNamedBlock(Position position) {
  StmtPtr statement = MakeStatement(Stmt::Kind::kBlock, position);
  FACET_ASSIGN(const std::string name, ExpectName());
  if (!blocks_.insert(name).second) {
    return Fail(position, fmt::format("a second block \"{}\"", name), "one block of a name");
  }
  SkipName("scoped");
  SkipName("required");
  FACET_RETURN_IF_ERROR(ExpectBlockEnd());
  const Scoped<bool> hard(is_soft_, false);
  const Scoped<int> outside_loops(loop_depth_, 0);
  FACET_ASSIGN(statement->body, ParseBody({"endblock"}));
  Take();
  SkipName(name);
  return statement;
}

Status Parser::ParsePrint(Body& body, Position position) {
  do {
    StmtPtr statement = MakeStatement(Stmt::Kind::kPrint, position);
    FACET_ASSIGN(statement->expression, ParseExpression());
    body.push_back(std::move(statement));
  } while (SkipOperator(","));
  return {};
}

Result<StmtPtr> Parser::ParseOther(const Token& tag) {
  const std::string& name = tag.text;
  if (name == "break" || name == "continue") {
    if (loop_depth_ == 0) {
      return Fail(tag.position, fmt::format("\"{}\" outside a loop", name),
                  "a loop around it in the same macro");
    }
    return MakeStatement(name == "break" ? Stmt::Kind::kBreak : Stmt::Kind::kContinue,
                         tag.position);
  }
  if (name == "include" || name == "import" || name == "from" || name == "extends") {
    StmtPtr statement = MakeStatement(Stmt::Kind::kUnsupported, tag.position);
    statement->text = Value::String(name, Origin::kTemplate);
    while (Current().kind != Token::Kind::kBlockEnd && Current().kind != Token::Kind::kEnd) {
      Take();
    }
    return statement;
  }
  return Fail(tag.position, fmt::format("unknown tag \"{}\"", name), "a tag that may stand here");
}

Result<Target> Parser::ParseSingleTarget(bool allows_attributes) {
  const DepthGuard guard(depth_, limits_.max_depth);
  if (!guard.ok()) {
    return Fail(Current().position, "an assignment nested too deeply",
                fmt::format("at most {} levels", limits_.max_depth));
  }
  Target target{Target::Kind::kName, Current().position, -1, {}, {}};
  if (SkipOperator("(")) {
    FACET_ASSIGN(target, ParseTarget(allows_attributes, TupleEnd::kTag));
    FACET_RETURN_IF_ERROR(ExpectOperator(")"));
    return target;
  }
  FACET_ASSIGN(const std::string name, ExpectName());
  static constexpr std::string_view kConstants[] = {"true",  "True", "false",
                                                    "False", "none", "None"};
  if (std::find(std::begin(kConstants), std::end(kConstants), name) != std::end(kConstants)) {
    return Fail(target.position, fmt::format("assignment to \"{}\"", name), "a name");
  }
  target.symbol = SymbolOf(name);
  if (allows_attributes && SkipOperator(".")) {
    target.kind = Target::Kind::kAttribute;
    FACET_ASSIGN(target.attribute, ExpectName());
    words_.insert(target.attribute);
  } else {
    assigned_.insert(name);
  }
  return target;
}

Result<Target> Parser::ParseTarget(bool allows_attributes, TupleEnd end) {
  const Position position = Current().position;
  Target tuple{Target::Kind::kTuple, position, -1, {}, {}};
  bool is_tuple = false;
  while (true) {
    if (!tuple.parts.empty()) {
      FACET_RETURN_IF_ERROR(ExpectOperator(","));
    }
    if (IsTupleEnd(end)) {
      break;
    }
    FACET_ASSIGN(Target part, ParseSingleTarget(allows_attributes));
    tuple.parts.push_back(std::move(part));
    if (!Current().IsOperator(",")) {
      break;
    }
    is_tuple = true;
  }
  if (tuple.parts.empty()) {
    return FailAtCurrent("a name");
  }
  if (!is_tuple) {
    Target only = std::move(tuple.parts.front());
    return only;
  }
  return tuple;
}

Token Parser::Take() {
  Token token = tokens_[at_];
  at_ = std::min(at_ + 1, tokens_.size() - 1);
  return token;
}

bool Parser::SkipOperator(std::string_view op) {
  const bool is_there = Current().IsOperator(op);
  if (is_there) {
    Take();
  }
  return is_there;
}

bool Parser::SkipName(std::string_view name) {
  const bool is_there = Current().IsName(name);
  if (is_there) {
    Take();
  }
  return is_there;
}

Status Parser::ExpectOperator(std::string_view op) {
  if (!SkipOperator(op)) {
    return FailAtCurrent(fmt::format("\"{}\"", op));
  }
  return {};
}

Result<std::string> Parser::ExpectName() {
  if (Current().kind != Token::Kind::kName) {
    return FailAtCurrent("a name");
  }
  return Take().text;
}

Status Parser::ExpectBlockEnd() {
  if (Current().kind != Token::Kind::kBlockEnd) {
    return FailAtCurrent("end of statement block");
  }
  Take();
  return {};
}

bool Parser::IsTupleEnd(TupleEnd end) const {
  const Token& token = Current();
  return token.kind == Token::Kind::kVariableEnd || token.kind == Token::Kind::kBlockEnd ||
         token.IsOperator(")") || (end == TupleEnd::kIn && token.IsName("in")) ||
         (end == TupleEnd::kRecursive && token.IsName("recursive"));
}

ExprPtr Parser::Make(Expr::Kind kind, Position position) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->position = position;
  return expr;
}

Status Parser::Adopt(Expr& parent, ExprPtr child) {
  Status status;
  if (child != nullptr) {
    status = Raise(parent, *child);
  }
  parent.operands.push_back(std::move(child));
  return status;
}

Status Parser::Raise(Expr& parent, const Expr& child) const {
  parent.height = std::max(parent.height, child.height + 1);
  if (parent.height > limits_.max_depth) {
    return Fail(parent.position, "an expression nested too deeply",
                fmt::format("at most {} levels", limits_.max_depth));
  }
  return {};
}

int Parser::SymbolOf(const std::string& name) {
  const auto [found, is_new] = symbols_.emplace(name, static_cast<int>(program_.symbols.size()));
  if (is_new) {
    program_.symbols.push_back(name);
    words_.insert(name);
  }
  return found->second;
}

void Parser::NoteLoad(const std::string& name) {
  for (MacroDefinition* macro : macros_) {
    macro->uses_caller = macro->uses_caller || name == "caller";
    macro->uses_varargs = macro->uses_varargs || name == "varargs";
    macro->uses_kwargs = macro->uses_kwargs || name == "kwargs";
  }
}

void Parser::NoteUse(bool is_filter, const std::string& name, Position position) {
  if (is_filter ? FindFilter(name) == nullptr : FindTest(name) == nullptr) {
    unknown_.push_back({position,
                        fmt::format("unknown {} \"{}\"", is_filter ? "filter" : "test", name),
                        is_soft_});
  }
}

Status Parser::CollectFindings() {
  for (const Unknown& unknown : unknown_) {
    if (!unknown.is_soft) {
      return Fail(unknown.position, unknown.text, "one that Jinja has");
    }
    program_.findings.push_back({unknown.position.line, unknown.position.column, unknown.text});
  }
  for (const auto& [name, position] : called_names_) {
    static constexpr std::string_view kGiven[] = {"caller", "loop"};
    const bool is_given = std::find(std::begin(kGiven), std::end(kGiven), name) != std::end(kGiven);
    if (!is_given && assigned_.count(name) == 0 && FindGlobal(name) == nullptr) {
      program_.findings.push_back({position.line, position.column,
                                   fmt::format("call of the unknown function \"{}\"", name)});
    }
  }
  std::stable_sort(program_.findings.begin(), program_.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return std::pair(a.line, a.column) < std::pair(b.line, b.column);
                   });
  return {};
}

Error Parser::Fail(Position position, std::string found, std::string wanted) const {
  return Refuse(PlaceOf(program_.name, position), std::move(found), std::move(wanted));
}

Error Parser::FailAtCurrent(std::string wanted) const {
  return Fail(Current().position, Current().Describe(), std::move(wanted));
}

}  // namespace facet::jinja
