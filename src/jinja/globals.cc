// SPDX-License-Identifier: Apache-2.0
// The global functions, and how arguments are bound to parameters.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/printing.h"

namespace facet::jinja {
namespace {

Result<Value> Range(Interpreter& interpreter, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("range", arguments, {"start", "stop", "step"}, 1));
  Sequence::Range range;
  FACET_ASSIGN(const int64_t first, bound.Integer(0, 0));
  FACET_ASSIGN(range.stop, bound.Integer(1, first));
  range.start = bound.has(1) ? first : 0;
  FACET_ASSIGN(range.step, bound.Integer(2, 1));
  return MakeRange(range, interpreter.budget());
}

/// The entries of a mapping, or of a list of pairs.
Result<std::vector<Dict::Entry>> EntriesOf(const Value& source, Budget& budget,
                                           std::string_view function) {
  if (source.is_dict()) {
    FACET_RETURN_IF_ERROR(budget.Make(source.as_dict().size() * sizeof(Dict::Entry)));
    return source.as_dict().entries();
  }
  std::vector<Dict::Entry> entries;
  FACET_ASSIGN(const SequencePtr pairs, Iterate(source, budget));
  for (const Value& pair : pairs->items()) {
    FACET_ASSIGN(const SequencePtr parts, Iterate(pair, budget));
    if (parts->size() != 2) {
      return Refuse("", fmt::format("an item of {} values in {}()", parts->size(), function),
                    "pairs");
    }
    entries.emplace_back(parts->items()[0], parts->items()[1]);
  }
  return entries;
}

/// dict(mapping or pairs, name=value, ...)
Result<std::vector<Dict::Entry>> DictEntries(Interpreter& interpreter, const Arguments& arguments,
                                             std::string_view function) {
  if (arguments.positional.size() > 1) {
    return Refuse(
        "", fmt::format("{}() with {} positional arguments", function, arguments.positional.size()),
        "at most 1");
  }
  std::vector<Dict::Entry> entries;
  if (!arguments.positional.empty()) {
    FACET_ASSIGN(entries, EntriesOf(arguments.positional[0], interpreter.budget(), function));
  }
  for (const auto& [name, value] : arguments.keyword) {
    entries.emplace_back(Value::String(name, Origin::kTemplate), value);
  }
  return entries;
}

Result<Value> MakeDictFunction(Interpreter& interpreter, const Arguments& arguments) {
  FACET_ASSIGN(std::vector<Dict::Entry> entries, DictEntries(interpreter, arguments, "dict"));
  return MakeDict(std::move(entries), interpreter.budget());
}

Result<Value> MakeNamespace(Interpreter& interpreter, const Arguments& arguments) {
  FACET_ASSIGN(std::vector<Dict::Entry> entries, DictEntries(interpreter, arguments, "namespace"));
  // Through a dict, so that many names are no slower than few.
  FACET_ASSIGN(const Value unique, MakeDict(std::move(entries), interpreter.budget()));
  FACET_ASSIGN(std::shared_ptr<Namespace> space, interpreter.NewNamespace());
  for (const auto& [key, value] : unique.as_dict().entries()) {
    if (!key.is_string()) {
      return Refuse("", fmt::format("an attribute name of type {} in namespace()", key.TypeName()),
                    "strings");
    }
    if (!key.as_string().empty() && key.as_string().front() == '_') {
      return Refuse("", fmt::format("the attribute \"{}\" of a namespace", key.as_string()),
                    "a name without leading underscore");
    }
    space->attributes.emplace_back(key.as_string(), value);
  }
  return Value::Of(ObjectPtr(std::move(space)));
}

Result<Value> RaiseException(Interpreter& interpreter, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("raise_exception", arguments, {"message"}, 1));
  FACET_ASSIGN(const TextPtr text, ToText(bound[0], interpreter.budget()));
  return Refuse("", text->text());
}

Result<Value> StrftimeNow(Interpreter& interpreter, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("strftime_now", arguments, {"format"}, 1));
  FACET_ASSIGN(const TextPtr format, bound.String(0));
  const std::time_t now = interpreter.now_seconds();
  std::tm parts{};
  if (gmtime_r(&now, &parts) == nullptr) {
    return Refuse("", fmt::format("the time {}", interpreter.now_seconds()), "one that has a date");
  }
  constexpr size_t kMaxSize = 4096;
  if (format->text().size() > kMaxSize / 16) {
    return Refuse("", fmt::format("a time format of {} bytes", format->text().size()),
                  fmt::format("at most {}", kMaxSize / 16));
  }
  // The blank tells an empty result from one that does not fit.
  const std::string padded = format->text() + " ";
  std::string out(kMaxSize, '\0');
  // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): the template chooses the format
  const size_t size = std::strftime(out.data(), out.size(), padded.c_str(), &parts);
  if (size == 0) {
    return Refuse("", "a time format with a long result",
                  fmt::format("at most {} bytes", kMaxSize));
  }
  out.resize(size - 1);
  return Value::String(std::move(out),
                       format->marked.empty() ? Origin::kTemplate : format->marked.OriginAt(0));
}

Result<Value> MakeCycler(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.keyword.empty()) {
    return Refuse("", "cycler() without values", "at least one");
  }
  FACET_ASSIGN(const Value items, MakeList(arguments.positional, interpreter.budget()));
  return Value::Of(ObjectPtr(std::make_shared<Cycler>(items.sequence())));
}

Result<Value> MakeJoiner(Interpreter& interpreter, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("joiner", arguments, {"sep"}, 0));
  const Value separator = bound.has(0) ? bound[0] : Value::String(", ", Origin::kTemplate);
  FACET_ASSIGN(const Value checked, MakeTuple({separator}, interpreter.budget()));
  return Value::Of(ObjectPtr(std::make_shared<Joiner>(separator)));
}

Result<Value> Lipsum(Interpreter&, const Arguments&) {
  return Refuse("", "a call of lipsum()", "a template without random text");
}

}  // namespace

BuiltinFunction FindGlobal(std::string_view name) {
  struct Row {
    std::string_view name;
    BuiltinFunction function;
  };
  static constexpr Row kGlobals[] = {{"range", Range},
                                     {"dict", MakeDictFunction},
                                     {"namespace", MakeNamespace},
                                     {"raise_exception", RaiseException},
                                     {"strftime_now", StrftimeNow},
                                     {"cycler", MakeCycler},
                                     {"joiner", MakeJoiner},
                                     {"lipsum", Lipsum}};
  const auto* found = std::find_if(std::begin(kGlobals), std::end(kGlobals),
                                   [name](const Row& row) { return row.name == name; });
  return found == std::end(kGlobals) ? nullptr : found->function;
}

Result<Bound> Bound::Bind(std::string_view function, const Arguments& arguments,
                          std::initializer_list<std::string_view> names, size_t n_required) {
  Bound bound;
  bound.function_ = std::string(function);
  bound.values_.resize(names.size());
  if (arguments.positional.size() > names.size()) {
    return Refuse("", fmt::format("{}() with {} arguments", function, arguments.positional.size()),
                  fmt::format("at most {}", names.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound.values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.keyword) {
    const auto index =
        static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (index == names.size() || bound.values_[index] != nullptr) {
      return Refuse("", fmt::format("{}() with {}argument '{}'", function,
                                    index == names.size() ? "an unknown " : "a repeated ", name));
    }
    bound.values_[index] = &value;
  }
  for (size_t i = 0; i < n_required; ++i) {
    if (bound.values_[i] == nullptr) {
      return Refuse("", fmt::format("{}() without the argument '{}'", function, names.begin()[i]),
                    "a value for it");
    }
  }
  return bound;
}

const Value& Bound::operator[](size_t i) const {
  static const Value kUndefined;
  return has(i) ? *values_[i] : kUndefined;
}

Result<int64_t> Bound::Integer(size_t i, int64_t otherwise) const {
  if (!has(i)) {
    return otherwise;
  }
  if (!values_[i]->is_integer()) {
    return Refuse("",
                  values_[i]->is_undefined()
                      ? values_[i]->UndefinedReason()
                      : fmt::format("{}() with a {}", function_, values_[i]->TypeName()),
                  "an integer");
  }
  return values_[i]->as_integer();
}

Result<TextPtr> Bound::String(size_t i) const {
  if (!(*this)[i].is_string()) {
    return Refuse("",
                  (*this)[i].is_undefined()
                      ? (*this)[i].UndefinedReason()
                      : fmt::format("{}() with a {}", function_, (*this)[i].TypeName()),
                  "a string");
  }
  return (*this)[i].as_text();
}

}  // namespace facet::jinja
