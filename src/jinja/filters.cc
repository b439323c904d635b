// SPDX-License-Identifier: Apache-2.0
// Filters over lists, dicts and numbers, and the table of all filters. Those over text are in
// filters_text.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "jinja/arithmetic.h"
#include "jinja/builtins.h"
#include "jinja/compare.h"
#include "jinja/interpreter.h"
#include "jinja/printing.h"
#include "jinja/text_format.h"
#include "jinja/text_ops.h"

namespace facet::jinja {
namespace {

/// "a.b.0" as the steps "a", "b", 0; an integer as one step; none as no step.
class AttributePath {
 public:
  static Result<AttributePath> Parse(const Value& path) {
    AttributePath parsed;
    if (path.is_none() || path.is_undefined()) {
      return parsed;
    }
    if (!path.is_string()) {
      parsed.steps_.push_back(path);
      return parsed;
    }
    for (const auto& [begin, end] : SplitAt(path.as_string(), ".", -1, false)) {
      const std::string step = path.as_string().substr(begin, end - begin);
      const bool is_number =
          !step.empty() && step.find_first_not_of("0123456789") == std::string::npos;
      parsed.steps_.push_back(is_number ? Value::IntegerFromDigits(step)
                                        : Value::String(step, Origin::kTemplate));
    }
    return parsed;
  }

  /// What the path leads to; `otherwise` in place of undefined steps when it is given and not none.
  Result<Value> Follow(Interpreter& interpreter, Value value,
                       const Value* otherwise = nullptr) const {
    for (const Value& step : steps_) {
      FACET_RETURN_IF_ERROR(interpreter.budget().Step());
      FACET_ASSIGN(value, interpreter.Item(value, step));
      if (otherwise != nullptr && !otherwise->is_none() && value.is_undefined()) {
        value = *otherwise;
      }
    }
    return value;
  }

 private:
  std::vector<Value> steps_;
};

Result<Value> WithoutCase(Interpreter& interpreter, const Value& value, bool is_case_sensitive) {
  if (is_case_sensitive || !value.is_string()) {
    return value;
  }
  return MakeString(Lower(value.as_text()->marked), interpreter.budget());
}

Result<Value> MakeGenerator(std::vector<Value> items, Interpreter& interpreter) {
  return MakeSequence(Sequence::Kind::kGenerator, std::move(items), interpreter.budget());
}

Result<Value> Length(Interpreter&, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("length", arguments, {}, 0));
  FACET_ASSIGN(const size_t size, LengthOf(input));
  return Value::Integer(static_cast<int64_t>(size));
}

Result<Value> List(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("list", arguments, {}, 0));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  return MakeList(items->items(), interpreter.budget());
}

Result<Value> Default(Interpreter&, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind("default", arguments, {"default_value", "boolean"}, 0));
  if (input.is_undefined() || (bound.Bool(1) && !input.IsTrue())) {
    return bound.has(0) ? bound[0] : Value::String("", Origin::kTemplate);
  }
  return input;
}

Result<Value> First(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("first", arguments, {}, 0));
  if (input.is_string() && input.as_text()->n_characters > 0) {
    return Characters(input.as_text(), 0, 1, interpreter.budget());
  }
  if (input.is_sequence() && input.as_sequence().consumed() < input.as_sequence().size()) {
    const Sequence& sequence = input.as_sequence();
    const Value first = sequence.items()[sequence.consumed()];
    if (sequence.is_generator()) {
      sequence.Consume(1);
    }
    return first;
  }
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  return items->size() > 0 ? items->items().front()
                           : Value::Undefined("No first item, sequence was empty.");
}

Result<Value> Last(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("last", arguments, {}, 0));
  if (input.is_sequence() && input.as_sequence().is_generator()) {
    return Refuse("", "'generator' object is not reversible", "a list");
  }
  if (input.is_string() && input.as_text()->n_characters > 0) {
    return Characters(input.as_text(), input.as_text()->n_characters - 1,
                      input.as_text()->n_characters, interpreter.budget());
  }
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  return items->size() > 0 ? items->items().back()
                           : Value::Undefined("No last item, sequence was empty.");
}

Result<Value> Reverse(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("reverse", arguments, {}, 0));
  if (input.is_string()) {
    SliceParts parts;
    parts.step = Value::Integer(-1);
    return Slice(input, parts, interpreter.budget());
  }
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  std::vector<Value> reversed(items->items().rbegin(), items->items().rend());
  return MakeGenerator(std::move(reversed), interpreter);
}

Result<Value> Items(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("items", arguments, {}, 0));
  if (!input.is_dict() && !input.is_undefined()) {
    return Refuse("", "Can only get item pairs from a mapping.", "a dict");
  }
  if (input.is_undefined()) {
    return MakeGenerator({}, interpreter);
  }
  FACET_ASSIGN(const Value pairs, CallMethod(interpreter, input, "items", {}));
  return MakeGenerator(pairs.as_sequence().items(), interpreter);
}

Result<Value> Join(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("join", arguments, {"d", "attribute"}, 0));
  Budget& budget = interpreter.budget();
  FACET_ASSIGN(const AttributePath path, AttributePath::Parse(bound[1]));
  FACET_ASSIGN(const TextPtr separator, ToText(bound[0], budget));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, budget));
  MarkedString out;
  for (size_t i = 0; i < items->size(); ++i) {
    FACET_ASSIGN(const Value item, path.Follow(interpreter, items->items()[i]));
    FACET_ASSIGN(const TextPtr text, ToText(item, budget));
    FACET_RETURN_IF_ERROR(budget.Make(text->marked.memory() + separator->marked.memory()));
    if (i > 0) {
      out.Append(separator->marked);
    }
    out.Append(text->marked);
  }
  return Value::String(std::move(out));
}

Result<Value> Sort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 0));
  std::vector<AttributePath> paths;
  if (bound[2].is_string()) {
    for (const auto& [begin, end] : SplitAt(bound[2].as_string(), ",", -1, false)) {
      FACET_ASSIGN(AttributePath path,
                   AttributePath::Parse(Value::String(
                       bound[2].as_string().substr(begin, end - begin), Origin::kTemplate)));
      paths.push_back(std::move(path));
    }
  } else {
    FACET_ASSIGN(AttributePath path, AttributePath::Parse(bound[2]));
    paths.push_back(std::move(path));
  }
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  std::vector<Value> keys;
  for (const Value& item : items->items()) {
    std::vector<Value> parts;
    for (const AttributePath& path : paths) {
      FACET_ASSIGN(const Value part, path.Follow(interpreter, item));
      FACET_ASSIGN(Value key, WithoutCase(interpreter, part, bound.Bool(1)));
      parts.push_back(std::move(key));
    }
    FACET_ASSIGN(Value key, MakeList(std::move(parts), interpreter.budget()));
    keys.push_back(std::move(key));
  }
  FACET_ASSIGN(const std::vector<size_t> order,
               SortedOrder(keys, bound.Bool(0), interpreter.budget()));
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const size_t i : order) {
    sorted.push_back(items->items()[i]);
  }
  return MakeList(std::move(sorted), interpreter.budget());
}

Result<Value> DictSort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 0));
  if (!input.is_dict()) {
    return Refuse("",
                  input.is_undefined() ? input.UndefinedReason()
                                       : fmt::format("dictsort of a {}", input.TypeName()),
                  "a dict");
  }
  const bool by_value = bound[1].is_string() && bound[1].as_string() == "value";
  if (bound.has(1) && !by_value && !(bound[1].is_string() && bound[1].as_string() == "key")) {
    return Refuse("", "dictsort by something else", "\"key\" or \"value\"");
  }
  std::vector<Value> keys;
  for (const auto& [key, value] : input.as_dict().entries()) {
    FACET_ASSIGN(Value sort_key, WithoutCase(interpreter, by_value ? value : key, bound.Bool(0)));
    keys.push_back(std::move(sort_key));
  }
  FACET_ASSIGN(const std::vector<size_t> order,
               SortedOrder(keys, bound.Bool(2), interpreter.budget()));
  std::vector<Value> sorted;
  for (const size_t i : order) {
    const auto& [key, value] = input.as_dict().entries()[i];
    FACET_ASSIGN(Value pair, MakeTuple({key, value}, interpreter.budget()));
    sorted.push_back(std::move(pair));
  }
  return MakeList(std::move(sorted), interpreter.budget());
}

Result<Value> Unique(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind("unique", arguments, {"case_sensitive", "attribute"}, 0));
  FACET_ASSIGN(const AttributePath path, AttributePath::Parse(bound[1]));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  std::vector<Dict::Entry> seen;
  for (size_t i = items->size(); i > 0;
       --i) {  // backwards, so that the first of equal items is the last one written
    FACET_ASSIGN(const Value part, path.Follow(interpreter, items->items()[i - 1]));
    FACET_ASSIGN(Value key, WithoutCase(interpreter, part, bound.Bool(0)));
    seen.emplace_back(std::move(key), Value::Integer(static_cast<int64_t>(i - 1)));
  }
  FACET_ASSIGN(const Value first_places, MakeDict(std::move(seen), interpreter.budget()));
  std::vector<size_t> places;
  for (const auto& [key, place] : first_places.as_dict().entries()) {
    places.push_back(static_cast<size_t>(place.as_integer()));
  }
  std::sort(places.begin(), places.end());
  std::vector<Value> unique;
  unique.reserve(places.size());
  for (const size_t place : places) {
    unique.push_back(items->items()[place]);
  }
  return MakeGenerator(std::move(unique), interpreter);
}

template <bool kMax>
Result<Value> Extreme(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind(kMax ? "max" : "min", arguments, {"case_sensitive", "attribute"}, 0));
  FACET_ASSIGN(const AttributePath path, AttributePath::Parse(bound[1]));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  const Value* best = nullptr;
  Value best_key;
  for (const Value& item : items->items()) {
    FACET_ASSIGN(const Value part, path.Follow(interpreter, item));
    FACET_ASSIGN(const Value key, WithoutCase(interpreter, part, bound.Bool(0)));
    bool is_better = best == nullptr;
    if (!is_better) {
      FACET_ASSIGN(is_better, kMax ? Less(best_key, key, interpreter.budget())
                                   : Less(key, best_key, interpreter.budget()));
    }
    if (is_better) {
      best = &item;
      best_key = key;
    }
  }
  return best != nullptr ? *best : Value::Undefined("No aggregated item, sequence was empty.");
}

Result<Value> Sum(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("sum", arguments, {"attribute", "start"}, 0));
  FACET_ASSIGN(const AttributePath path, AttributePath::Parse(bound[0]));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  Value sum = bound.has(1) ? bound[1] : Value::Integer(0);
  if (sum.is_string()) {
    return Refuse("", "sum() can't sum strings", "join");
  }
  for (const Value& item : items->items()) {
    FACET_ASSIGN(const Value part, path.Follow(interpreter, item));
    FACET_ASSIGN(sum, Arithmetic(Operator::kAdd, sum, part, interpreter.budget()));
  }
  return sum;
}

/// Arguments from position `from` on, and all the named ones.
Result<Arguments> RestOf(const Arguments& arguments, size_t from, Budget& budget) {
  FACET_RETURN_IF_ERROR(budget.Make(arguments.positional.size() * sizeof(Value)));
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(from),
                         arguments.positional.end());
  rest.keyword = arguments.keyword;
  return rest;
}

Result<Value> Map(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  if (!input.IsTrue()) {
    return MakeGenerator({}, interpreter);
  }
  std::vector<Value> mapped;
  if (arguments.positional.empty()) {
    FACET_ASSIGN(const Bound bound, Bound::Bind("map", arguments, {"attribute", "default"}, 1));
    FACET_ASSIGN(const AttributePath path, AttributePath::Parse(bound[0]));
    FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
    for (const Value& item : items->items()) {
      FACET_ASSIGN(Value value, path.Follow(interpreter, item, bound.has(1) ? &bound[1] : nullptr));
      mapped.push_back(std::move(value));
    }
    return MakeGenerator(std::move(mapped), interpreter);
  }
  FACET_ASSIGN(const TextPtr name, ToText(arguments.positional[0], interpreter.budget()));
  if (FindFilter(name->text()) == nullptr) {
    return Refuse("", fmt::format("unknown filter \"{}\"", name->text()), "one that Jinja has");
  }
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  FACET_ASSIGN(const Arguments rest, RestOf(arguments, 1, interpreter.budget()));
  for (const Value& item : items->items()) {
    FACET_ASSIGN(Value value, interpreter.Filter(name->text(), item, rest));
    mapped.push_back(std::move(value));
  }
  return MakeGenerator(std::move(mapped), interpreter);
}

/// select, reject, selectattr, rejectattr
template <bool kWanted, bool kByAttribute>
Result<Value> Select(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  if (!input.IsTrue()) {
    return MakeGenerator({}, interpreter);
  }
  size_t n_used = 0;
  AttributePath path;
  if (kByAttribute) {
    if (arguments.positional.empty()) {
      return Refuse("", "Missing parameter for attribute name");
    }
    FACET_ASSIGN(path, AttributePath::Parse(arguments.positional[n_used++]));
  }
  TestFunction test = nullptr;
  if (arguments.positional.size() > n_used) {
    FACET_ASSIGN(const TextPtr name, ToText(arguments.positional[n_used++], interpreter.budget()));
    test = FindTest(name->text());
    if (test == nullptr) {
      return Refuse("", fmt::format("unknown test \"{}\"", name->text()), "one that Jinja has");
    }
  }
  FACET_ASSIGN(const Arguments rest, RestOf(arguments, n_used, interpreter.budget()));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  std::vector<Value> selected;
  for (const Value& item : items->items()) {
    FACET_RETURN_IF_ERROR(interpreter.budget().Step());
    FACET_ASSIGN(const Value value, path.Follow(interpreter, item));
    FACET_ASSIGN(const bool holds,
                 test == nullptr ? Result<bool>(value.IsTrue()) : test(interpreter, value, rest));
    if (holds == kWanted) {
      selected.push_back(item);
    }
  }
  return MakeGenerator(std::move(selected), interpreter);
}

Result<Value> GroupBy(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound,
               Bound::Bind("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1));
  Budget& budget = interpreter.budget();
  FACET_ASSIGN(const AttributePath path, AttributePath::Parse(bound[0]));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, budget));
  std::vector<Value> plain_keys;
  std::vector<Value> keys;
  for (const Value& item : items->items()) {
    FACET_ASSIGN(Value key, path.Follow(interpreter, item, bound.has(1) ? &bound[1] : nullptr));
    FACET_ASSIGN(Value sort_key, WithoutCase(interpreter, key, bound.Bool(2)));
    plain_keys.push_back(std::move(key));
    keys.push_back(std::move(sort_key));
  }
  FACET_ASSIGN(const std::vector<size_t> order, SortedOrder(keys, false, budget));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < order.size();) {
    std::vector<Value> members = {items->items()[order[begin]]};
    size_t end = begin + 1;
    for (; end < order.size(); ++end) {
      const Result<bool> is_same = Equal(keys[order[begin]], keys[order[end]], budget);
      if (!is_same.ok() || !*is_same) {
        FACET_RETURN_IF_ERROR(is_same.ok() ? Status() : Status(is_same.error()));
        break;
      }
      members.push_back(items->items()[order[end]]);
    }
    FACET_ASSIGN(Value list, MakeList(std::move(members), budget));
    FACET_RETURN_IF_ERROR(budget.Make(sizeof(Sequence)));
    auto group = std::make_shared<Sequence>(
        Sequence::Kind::kTuple, std::vector<Value>{plain_keys[order[begin]], std::move(list)});
    group->is_group = true;
    groups.push_back(Value::Of(SequencePtr(std::move(group))));
    begin = end;
  }
  return MakeList(std::move(groups), budget);
}

Result<Value> Batch(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("batch", arguments, {"linecount", "fill_with"}, 1));
  FACET_ASSIGN(const int64_t count, bound.Integer(0, 0));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  // As many values have no place in any budget.
  const size_t n_most = interpreter.budget().limits().max_value_bytes / sizeof(Value) + 1;
  // Without a positive size the one batch is never full.
  const size_t size = count < 1 ? items->size() : static_cast<size_t>(count);
  std::vector<Value> batches;
  if (count == 0 && items->size() > 0) {  // before the first item it is full
    FACET_ASSIGN(Value empty, MakeList({}, interpreter.budget()));
    batches.push_back(std::move(empty));
  }
  for (size_t begin = 0; begin < items->size(); begin += std::min(size, items->size() - begin)) {
    const size_t end = begin + std::min(size, items->size() - begin);
    std::vector<Value> batch(items->items().begin() + static_cast<std::ptrdiff_t>(begin),
                             items->items().begin() + static_cast<std::ptrdiff_t>(end));
    const bool is_filled = bound.is_set(1);
    FACET_RETURN_IF_ERROR(
        interpreter.budget().Make(is_filled ? std::min(size, n_most) * sizeof(Value) : 0));
    batch.resize(is_filled ? size : batch.size(), bound[1]);
    FACET_ASSIGN(Value list, MakeList(std::move(batch), interpreter.budget()));
    batches.push_back(std::move(list));
  }
  return MakeGenerator(std::move(batches), interpreter);
}

Result<Value> SliceFilter(Interpreter& interpreter, const Value& input,
                          const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("slice", arguments, {"slices", "fill_with"}, 1));
  FACET_ASSIGN(const int64_t n_slices, bound.Integer(0, 0));
  FACET_ASSIGN(const SequencePtr items, Iterate(input, interpreter.budget()));
  if (n_slices == 0) {
    return Refuse("", "slice(0)", "another number");
  }
  if (n_slices < 0) {
    return MakeGenerator({}, interpreter);
  }
  FACET_RETURN_IF_ERROR(interpreter.budget().Step(static_cast<uint64_t>(n_slices)));
  const size_t size = items->size() / static_cast<size_t>(n_slices);
  const size_t n_longer = items->size() % static_cast<size_t>(n_slices);
  std::vector<Value> slices;
  auto at = items->items().begin();
  for (size_t i = 0; i < static_cast<size_t>(n_slices); ++i) {
    const auto end = at + static_cast<std::ptrdiff_t>(size + (i < n_longer ? 1 : 0));
    std::vector<Value> slice(at, end);
    at = end;
    if (bound.is_set(1) && i >= n_longer) {
      slice.push_back(bound[1]);
    }
    FACET_ASSIGN(Value list, MakeList(std::move(slice), interpreter.budget()));
    slices.push_back(std::move(list));
  }
  return MakeGenerator(std::move(slices), interpreter);
}

Result<Value> Attr(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("attr", arguments, {"name"}, 1));
  FACET_ASSIGN(const TextPtr name, bound.String(0));
  if (input.is_dict() && !HasMethod(input, name->text()) && !HasUnsafeMethod(input, name->text())) {
    return Value::Undefined(fmt::format("'dict object' has no attribute '{}'", name->text()));
  }
  return interpreter.Attribute(input, name->text());
}

Result<Value> Absolute(Interpreter&, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN([[maybe_unused]] const Bound none, Bound::Bind("abs", arguments, {}, 0));
  if (!input.is_number()) {
    return Refuse("",
                  input.is_undefined()
                      ? input.UndefinedReason()
                      : fmt::format("bad operand type for abs(): '{}'", input.TypeName()),
                  "a number");
  }
  if (input.is_float()) {
    return Value::Float(std::fabs(input.as_double()));
  }
  const bool is_negative =
      input.is_big_integer() ? input.as_digits().front() == '-' : input.as_integer() < 0;
  return is_negative ? Negate(input)
                     : (input.is_bool() ? Value::Integer(input.as_integer()) : input);
}

Result<Value> FloatToInteger(double value, const Value& otherwise) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? otherwise
                             : Result<Value>(Refuse("", "cannot convert float infinity to integer",
                                                    "a finite number"));
  }
  return Value::IntegerFromDigits(fmt::format("{:.0f}", std::trunc(value)));
}

Result<Value> Int(Interpreter&, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("int", arguments, {"default", "base"}, 0));
  FACET_ASSIGN(const int64_t base, bound.Integer(1, 10));
  const Value otherwise = bound.has(0) ? bound[0] : Value::Integer(0);
  if (input.is_undefined()) {
    return Refuse("", input.UndefinedReason(), "a value");
  }
  if (input.is_string()) {
    if (const std::optional<Value> integer = ParseInteger(input.as_string(), base)) {
      return *integer;
    }
    const std::optional<double> number = ParseFloat(input.as_string());
    return number.has_value() && std::isfinite(*number) ? FloatToInteger(*number, otherwise)
                                                        : otherwise;
  }
  if (input.is_float()) {
    return FloatToInteger(input.as_double(), otherwise);
  }
  return input.is_bool() ? Value::Integer(input.as_integer())
                         : (input.is_number() ? input : otherwise);
}

Result<Value> FloatFilter(Interpreter&, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("float", arguments, {"default"}, 0));
  if (input.is_undefined()) {
    return Refuse("", input.UndefinedReason(), "a value");
  }
  if (input.is_number()) {
    return Value::Float(input.as_double());
  }
  const std::optional<double> number =
      input.is_string() ? ParseFloat(input.as_string()) : std::nullopt;
  return number.has_value() ? Value::Float(*number) : (bound.has(0) ? bound[0] : Value::Float(0));
}

Result<Value> Round(Interpreter&, const Value& input, const Arguments& arguments) {
  FACET_ASSIGN(const Bound bound, Bound::Bind("round", arguments, {"precision", "method"}, 0));
  FACET_ASSIGN(const int64_t precision, bound.Integer(0, 0));
  const std::string method =
      bound[1].is_string() ? bound[1].as_string() : (bound.has(1) ? "" : "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    return Refuse("", "another method of rounding", "\"common\", \"ceil\" or \"floor\"");
  }
  if (!input.is_number()) {
    return Refuse("",
                  input.is_undefined() ? input.UndefinedReason()
                                       : fmt::format("round of a {}", input.TypeName()),
                  "a number");
  }
  constexpr int64_t kMaxPrecision = 300;
  if (precision > kMaxPrecision || precision < -kMaxPrecision) {
    return Refuse("", fmt::format("a precision of {}", precision),
                  fmt::format("at most {}", kMaxPrecision));
  }
  const double value = input.as_double();
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method != "common") {
    return Value::Float((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) /
                        scale);
  }
  if (!input.is_float() && precision >= 0) {
    return input.is_bool() ? Value::Integer(input.as_integer()) : input;
  }
  if (precision < 0) {
    const double rounded = std::nearbyint(value * scale) / scale;
    return input.is_float() ? Value::Float(rounded) : FloatToInteger(rounded, Value::Integer(0));
  }
  // Printing rounds the exact binary value, half to even, as Python does.
  return Value::Float(
      std::isfinite(value)
          ? std::strtod(FixedDigits(value, static_cast<int>(precision)).c_str(), nullptr)
          : value);
}

Result<Value> Unavailable(Interpreter&, const Value&, const Arguments&) {
  return Refuse("", "a filter that Facet does not have (random, urlize, wordwrap)", "another one");
}

}  // namespace

FilterFunction FindFilter(std::string_view name) {
  struct Row {
    std::string_view name;
    FilterFunction filter;
  };
  static constexpr Row kFilters[] = {
      {"abs", Absolute},
      {"attr", Attr},
      {"batch", Batch},
      {"count", Length},
      {"d", Default},
      {"default", Default},
      {"dictsort", DictSort},
      {"first", First},
      {"float", FloatFilter},
      {"groupby", GroupBy},
      {"int", Int},
      {"items", Items},
      {"join", Join},
      {"last", Last},
      {"length", Length},
      {"list", List},
      {"map", Map},
      {"max", Extreme<true>},
      {"min", Extreme<false>},
      {"random", Unavailable},
      {"reject", Select<false, false>},
      {"rejectattr", Select<false, true>},
      {"reverse", Reverse},
      {"round", Round},
      {"select", Select<true, false>},
      {"selectattr", Select<true, true>},
      {"slice", SliceFilter},
      {"sort", Sort},
      {"sum", Sum},
      {"unique", Unique},
      {"urlize", Unavailable},
      {"wordwrap", Unavailable},
  };
  const auto* found =
      std::lower_bound(std::begin(kFilters), std::end(kFilters), name,
                       [](const Row& row, std::string_view wanted) { return row.name < wanted; });
  return found != std::end(kFilters) && found->name == name ? found->filter : FindTextFilter(name);
}

}  // namespace facet::jinja
