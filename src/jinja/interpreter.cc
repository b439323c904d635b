// SPDX-License-Identifier: Apache-2.0
#include "jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/lexer.h"
#include "jinja/parser_internal.h"
#include "jinja/printing.h"

namespace facet::jinja {
namespace {

int FindSymbol(const Program& program, std::string_view name) {
  const auto found = std::find(program.symbols.begin(), program.symbols.end(), name);
  return found == program.symbols.end() ? -1 : static_cast<int>(found - program.symbols.begin());
}

}  // namespace

const Value* Scope::Find(int symbol) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    for (const auto& [name, value] : scope->variables) {
      if (name == symbol) {
        return &value;
      }
    }
  }
  return nullptr;
}

void Scope::Set(int symbol, Value value) {
  for (auto& [name, old] : variables) {
    if (name == symbol) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(symbol, std::move(value));
}

const Value* Namespace::Find(std::string_view name) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [name](const auto& entry) { return entry.first == name; });
  return found == attributes.end() ? nullptr : &found->second;
}

void Namespace::Set(std::string_view name, Value value) {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [name](const auto& entry) { return entry.first == name; });
  if (found != attributes.end()) {
    found->second = std::move(value);
  } else {
    attributes.emplace_back(std::string(name), std::move(value));
  }
}

Interpreter::ScopeHolder::ScopeHolder(Interpreter& interpreter, Scope* parent)
    : interpreter_(interpreter) {
  if (interpreter.free_scopes_.empty()) {
    interpreter.scopes_.push_back(std::make_unique<Scope>());
    interpreter.free_scopes_.push_back(interpreter.scopes_.back().get());
  }
  scope_ = interpreter.free_scopes_.back();
  interpreter.free_scopes_.pop_back();
  scope_->parent = parent;
}

Interpreter::ScopeHolder::~ScopeHolder() {
  if (!scope_->is_captured) {
    scope_->variables.clear();
    interpreter_.free_scopes_.push_back(scope_);
  }
}

Interpreter::Interpreter(const Program& program, const Limits& limits, const Dict& context,
                         int64_t now_seconds)
    : program_(program),
      budget_(limits),
      now_seconds_(now_seconds),
      loop_symbol_(FindSymbol(program, "loop")),
      caller_symbol_(FindSymbol(program, "caller")),
      varargs_symbol_(FindSymbol(program, "varargs")),
      kwargs_symbol_(FindSymbol(program, "kwargs")) {
  globals_.reserve(program.symbols.size());
  for (const std::string& name : program.symbols) {
    if (const Value* variable = context.Find(name)) {
      globals_.push_back(*variable);
    } else if (const BuiltinFunction function = FindGlobal(name)) {
      globals_.push_back(Value::Of(ObjectPtr(std::make_shared<Function>(function))));
    } else {
      globals_.push_back(Value::Undefined(fmt::format("'{}' is undefined", name)));
    }
  }
}

Interpreter::~Interpreter() {
  // They may hold each other in circles and in long chains; all are still alive here, so emptying
  // one after the other neither leaks nor recurses.
  for (const ObjectPtr& object : changing_) {
    if (object->kind == Object::Kind::kNamespace) {
      static_cast<Namespace&>(*object).attributes.clear();
    } else {
      static_cast<Loop&>(*object).last_changed.clear();
    }
  }
}

Result<MarkedString> Interpreter::Run() {
  MarkedString text;
  out_ = &text;
  ScopeHolder root(*this, nullptr);
  FACET_ASSIGN([[maybe_unused]] const Flow flow, RunBody(program_.body, root.get()));
  return text;
}

Result<std::shared_ptr<Namespace>> Interpreter::NewNamespace() {
  auto space = std::make_shared<Namespace>();
  FACET_RETURN_IF_ERROR(KeepUntilEnd(space));
  return space;
}

Status Interpreter::KeepUntilEnd(ObjectPtr object) {
  FACET_RETURN_IF_ERROR(budget_.Make(std::max(sizeof(Namespace), sizeof(Loop))));
  changing_.push_back(std::move(object));
  return {};
}

Error Interpreter::TooDeep() const {
  return Refuse("", "calls nested too deeply", fmt::format("at most {} levels", MaxLevels()));
}

Error Interpreter::At(Position position, Error error) const {
  if (error.where.empty()) {
    error.where = PlaceOf(program_.name, position);
  }
  return error;
}

Status Interpreter::Write(const MarkedString& text) {
  if (text.size() > budget_.limits().max_output_bytes -
                        std::min(out_->size(), budget_.limits().max_output_bytes)) {
    return Refuse("", "too much output",
                  fmt::format("at most {} bytes", budget_.limits().max_output_bytes));
  }
  FACET_RETURN_IF_ERROR(budget_.Scan(text.size()));
  out_->Append(text);
  return {};
}

Result<Interpreter::Flow> Interpreter::RunBody(const Body& body, Scope* scope) {
  const DepthGuard guard(levels_, MaxLevels());
  if (!guard.ok()) {
    return TooDeep();
  }
  for (const StmtPtr& statement : body) {
    Result<Flow> flow = RunStatement(*statement, scope);
    if (!flow.ok()) {
      return At(statement->position, flow.error());
    }
    if (*flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::RunStatement(const Stmt& statement, Scope* scope) {
  FACET_RETURN_IF_ERROR(budget_.Step());
  switch (statement.kind) {
    case Stmt::Kind::kText:
      FACET_RETURN_IF_ERROR(Write(statement.text.as_text()->marked));
      return Flow::kNext;
    case Stmt::Kind::kPrint:
      FACET_RETURN_IF_ERROR(RunPrint(statement, scope));
      return Flow::kNext;
    case Stmt::Kind::kIf:
      return RunIf(statement, scope);
    case Stmt::Kind::kFor:
      return RunFor(statement, scope);
    case Stmt::Kind::kSet: {
      FACET_ASSIGN(Value value, Evaluate(*statement.expression, scope));
      FACET_RETURN_IF_ERROR(Assign(*statement.target, std::move(value), scope));
      return Flow::kNext;
    }
    case Stmt::Kind::kSetBlock:
    case Stmt::Kind::kFilterBlock:
      return RunFiltered(statement, scope);
    case Stmt::Kind::kMacro:
      scope->Set(statement.target->symbol, Value::Of(NewMacro(*statement.macro, scope)));
      return Flow::kNext;
    case Stmt::Kind::kCallBlock:
      FACET_RETURN_IF_ERROR(RunCallBlock(statement, scope));
      return Flow::kNext;
    case Stmt::Kind::kWith:
      return RunWith(statement, scope);
    case Stmt::Kind::kBlock: {
      ScopeHolder inner(*this, scope);
      return RunBody(statement.body, inner.get());
    }
    case Stmt::Kind::kBreak:
      return Flow::kBreak;
    case Stmt::Kind::kContinue:
      return Flow::kContinue;
    case Stmt::Kind::kUnsupported:
      return Refuse("", fmt::format("the tag \"{}\"", statement.text.as_string()),
                    "a template that needs no other one");
  }
  return Flow::kNext;
}

Status Interpreter::RunPrint(const Stmt& statement, Scope* scope) {
  FACET_ASSIGN(const Value value, Evaluate(*statement.expression, scope));
  FACET_ASSIGN(const TextPtr text, ToText(value, budget_));
  return Write(text->marked);
}

Result<Interpreter::Flow> Interpreter::RunIf(const Stmt& statement, Scope* scope) {
  for (const Branch& branch : statement.branches) {
    FACET_ASSIGN(const Value condition, Evaluate(*branch.condition, scope));
    if (condition.IsTrue()) {
      return RunBody(branch.body, scope);
    }
  }
  return RunBody(statement.otherwise, scope);
}

Result<Interpreter::Flow> Interpreter::RunFor(const Stmt& statement, Scope* scope) {
  FACET_ASSIGN(const Value iterable, Evaluate(*statement.expression, scope));
  return RunLoop(statement, scope, iterable, 0);
}

Result<SequencePtr> Interpreter::SelectItems(const Stmt& statement, Scope* scope,
                                             SequencePtr items) {
  if (statement.condition == nullptr) {
    return items;
  }
  std::vector<Value> selected;
  for (const Value& item : items->items()) {
    ScopeHolder inner(*this, scope);
    FACET_RETURN_IF_ERROR(Assign(*statement.target, item, inner.get()));
    FACET_ASSIGN(const Value condition, Evaluate(*statement.condition, inner.get()));
    if (condition.IsTrue()) {
      selected.push_back(item);
    }
  }
  FACET_RETURN_IF_ERROR(budget_.Make(selected.size() * sizeof(Value)));
  return std::make_shared<const Sequence>(Sequence::Kind::kList, std::move(selected));
}

Result<Interpreter::Flow> Interpreter::RunLoop(const Stmt& statement, Scope* scope,
                                               const Value& iterable, int level) {
  FACET_ASSIGN(SequencePtr all, Iterate(iterable, budget_));
  FACET_ASSIGN(const SequencePtr items, SelectItems(statement, scope, std::move(all)));
  auto loop = std::make_shared<Loop>(items);
  loop->level0 = level;
  if (statement.is_recursive) {
    loop->statement = &statement;
    loop->scope = scope;
    for (Scope* outer = scope; outer != nullptr; outer = outer->parent) {
      outer->is_captured = true;
    }
  }
  bool has_finished_one = false;
  for (size_t i = 0; i < items->size(); ++i) {
    FACET_RETURN_IF_ERROR(budget_.Step());
    loop->index0 = i;
    ScopeHolder inner(*this, scope);
    FACET_RETURN_IF_ERROR(Assign(*statement.target, items->items()[i], inner.get()));
    if (loop_symbol_ >= 0) {
      inner.get()->Set(loop_symbol_, Value::Of(ObjectPtr(loop)));
    }
    FACET_ASSIGN(const Flow flow, RunBody(statement.body, inner.get()));
    if (flow == Flow::kBreak) {
      break;
    }
    has_finished_one = has_finished_one || flow == Flow::kNext;
  }
  if (has_finished_one) {
    return Flow::kNext;
  }
  // As in Jinja: also when every round was left by break or continue.
  ScopeHolder inner(*this, scope);
  return RunBody(statement.otherwise, inner.get());
}

Result<Interpreter::Flow> Interpreter::RunWith(const Stmt& statement, Scope* scope) {
  ScopeHolder inner(*this, scope);
  for (const auto& [target, expr] : statement.bindings) {
    FACET_ASSIGN(Value value, Evaluate(*expr, scope));
    FACET_RETURN_IF_ERROR(Assign(target, std::move(value), inner.get()));
  }
  return RunBody(statement.body, inner.get());
}

Result<Interpreter::Flow> Interpreter::Capture(const Body& body, Scope* scope, MarkedString& text) {
  const Scoped<MarkedString*> redirect(out_, &text);
  FACET_ASSIGN(const Flow flow, RunBody(body, scope));
  FACET_RETURN_IF_ERROR(budget_.Make(text.memory()));
  return flow;
}

Result<Interpreter::Flow> Interpreter::RunFiltered(const Stmt& statement, Scope* scope) {
  MarkedString text;
  Value value;
  {
    ScopeHolder inner(*this, scope);
    FACET_ASSIGN(const Flow flow, Capture(statement.body, inner.get(), text));
    if (flow != Flow::kNext) {
      return flow;
    }
    value = Value::String(std::move(text));
    if (statement.expression != nullptr) {
      FACET_ASSIGN(value, EvaluateFilter(*statement.expression, inner.get(), &value));
    }
  }
  if (statement.kind == Stmt::Kind::kSetBlock) {
    FACET_RETURN_IF_ERROR(Assign(*statement.target, std::move(value), scope));
    return Flow::kNext;
  }
  FACET_ASSIGN(const TextPtr printed, ToText(value, budget_));
  FACET_RETURN_IF_ERROR(Write(printed->marked));
  return Flow::kNext;
}

Status Interpreter::RunCallBlock(const Stmt& statement, Scope* scope) {
  const Value caller = Value::Of(NewMacro(*statement.macro, scope));
  FACET_ASSIGN(const Value value, EvaluateCall(*statement.expression, scope, &caller));
  FACET_ASSIGN(const TextPtr text, ToText(value, budget_));
  return Write(text->marked);
}

Status Interpreter::Assign(const Target& target, Value value, Scope* scope) {
  if (target.kind == Target::Kind::kName) {
    scope->Set(target.symbol, std::move(value));
    return {};
  }
  if (target.kind == Target::Kind::kAttribute) {
    return AssignAttribute(target, std::move(value), scope);
  }
  FACET_ASSIGN(const SequencePtr items, Iterate(value, budget_));
  if (items->size() != target.parts.size()) {
    return At(target.position, Refuse("", fmt::format("{} values to unpack", items->size()),
                                      fmt::format("{}", target.parts.size())));
  }
  for (size_t i = 0; i < items->size(); ++i) {
    FACET_RETURN_IF_ERROR(Assign(target.parts[i], items->items()[i], scope));
  }
  return {};
}

Status Interpreter::AssignAttribute(const Target& target, Value value, Scope* scope) {
  const Value* space = scope->Find(target.symbol);
  if (space == nullptr) {
    space = &globals_[static_cast<size_t>(target.symbol)];
  }
  if (!space->is_object() || space->as_object().kind != Object::Kind::kNamespace) {
    return At(target.position,
              Refuse("", "cannot assign attribute on non-namespace object", "a namespace"));
  }
  if (target.attribute.front() == '_') {
    return At(target.position,
              Refuse("", fmt::format("the attribute \"{}\" of a namespace", target.attribute),
                     "a name without leading underscore"));
  }
  static_cast<Namespace&>(space->as_object()).Set(target.attribute, std::move(value));
  return budget_.Make(sizeof(Value));
}

ObjectPtr Interpreter::NewMacro(const MacroDefinition& definition, Scope* scope) {
  for (Scope* outer = scope; outer != nullptr && !outer->is_captured; outer = outer->parent) {
    outer->is_captured = true;
  }
  return std::make_shared<Macro>(&definition, scope);
}

Result<Value> Interpreter::CallMacro(const Macro& macro, const Arguments& arguments) {
  const DepthGuard guard(calls_, budget_.limits().max_depth);
  if (!guard.ok()) {
    return Refuse("", "calls nested too deeply",
                  fmt::format("at most {}", budget_.limits().max_depth));
  }
  ScopeHolder inner(*this, macro.scope);
  FACET_RETURN_IF_ERROR(budget_.Make(sizeof(Scope)));
  FACET_RETURN_IF_ERROR(BindParameters(macro, arguments, inner.get()));
  MarkedString text;
  FACET_ASSIGN([[maybe_unused]] const Flow flow,
               Capture(macro.definition->body, inner.get(), text));
  return Value::String(std::move(text));
}

Status Interpreter::BindParameters(const Macro& macro, const Arguments& arguments, Scope* scope) {
  const MacroDefinition& definition = *macro.definition;
  const size_t n_parameters = definition.parameters.size();
  std::vector<bool> is_used(arguments.keyword.size());
  const auto take_keyword = [&arguments, &is_used](std::string_view name) -> const Value* {
    for (size_t i = 0; i < arguments.keyword.size(); ++i) {
      if (!is_used[i] && arguments.keyword[i].first == name) {
        is_used[i] = true;
        return &arguments.keyword[i].second;
      }
    }
    return nullptr;
  };
  bool has_caller = false;
  for (size_t i = 0; i < n_parameters; ++i) {
    const auto& [symbol, name] = definition.parameters[i];
    has_caller = has_caller || name == "caller";
    const Value* given =
        i < arguments.positional.size() ? &arguments.positional[i] : take_keyword(name);
    const size_t n_plain = n_parameters - definition.defaults.size();
    if (given != nullptr) {
      scope->Set(symbol, *given);
    } else if (i >= n_plain) {
      FACET_ASSIGN(Value value, Evaluate(*definition.defaults[i - n_plain], scope));
      scope->Set(symbol, std::move(value));
    } else {
      scope->Set(symbol, Value::Undefined(fmt::format("parameter '{}' was not provided", name)));
    }
  }
  if (definition.uses_caller && !has_caller) {
    const Value* caller = take_keyword("caller");
    scope->Set(caller_symbol_, caller != nullptr ? *caller : Value::Undefined("No caller defined"));
  }
  std::vector<Dict::Entry> rest_keyword;
  for (size_t i = 0; i < is_used.size(); ++i) {
    if (!is_used[i]) {
      rest_keyword.emplace_back(Value::String(arguments.keyword[i].first, Origin::kTemplate),
                                arguments.keyword[i].second);
    }
  }
  if (!rest_keyword.empty() && !definition.uses_kwargs) {
    return Refuse("", fmt::format("macro '{}' takes no keyword argument '{}'", definition.name,
                                  rest_keyword.front().first.as_string()));
  }
  if (arguments.positional.size() > n_parameters && !definition.uses_varargs) {
    return Refuse("", fmt::format("macro '{}' takes not more than {} argument(s)", definition.name,
                                  n_parameters));
  }
  if (definition.uses_kwargs) {
    FACET_ASSIGN(Value rest, MakeDict(std::move(rest_keyword), budget_));
    scope->Set(kwargs_symbol_, std::move(rest));
  }
  if (definition.uses_varargs) {
    const auto begin =
        arguments.positional.begin() +
        static_cast<std::ptrdiff_t>(std::min(n_parameters, arguments.positional.size()));
    FACET_ASSIGN(Value rest,
                 MakeTuple(std::vector<Value>(begin, arguments.positional.end()), budget_));
    scope->Set(varargs_symbol_, std::move(rest));
  }
  return {};
}

Result<Value> Interpreter::CallLoop(const Loop& loop, const Arguments& arguments) {
  if (loop.statement == nullptr) {
    return Refuse("", "a call of a loop that is not recursive", "\"recursive\" in the for tag");
  }
  if (arguments.positional.size() != 1 || !arguments.keyword.empty()) {
    return Refuse("",
                  fmt::format("loop() with {} arguments",
                              arguments.positional.size() + arguments.keyword.size()),
                  "1");
  }
  const DepthGuard guard(calls_, budget_.limits().max_depth);
  if (!guard.ok()) {
    return Refuse("", "calls nested too deeply",
                  fmt::format("at most {}", budget_.limits().max_depth));
  }
  MarkedString text;
  const Scoped<MarkedString*> redirect(out_, &text);
  FACET_ASSIGN([[maybe_unused]] const Flow flow,
               RunLoop(*loop.statement, loop.scope, arguments.positional[0], loop.level0 + 1));
  FACET_RETURN_IF_ERROR(budget_.Make(text.memory()));
  return Value::String(std::move(text));
}

}  // namespace facet::jinja
