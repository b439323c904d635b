// SPDX-License-Identifier: Apache-2.0
#include "jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>

#include "base/utf8.h"
#include "jinja/compare.h"

namespace facet::jinja {

static_assert(sizeof(Value) <= 24);

Text::Text(MarkedString marked_text)
    : marked(std::move(marked_text)), n_characters(CountCodePoints(marked.text())) {}

Value Value::IntegerFromDigits(std::string_view digits) {
  const bool is_negative = !digits.empty() && digits.front() == '-';
  std::string_view magnitude = digits.substr(is_negative ? 1 : 0);
  magnitude.remove_prefix(std::min(magnitude.find_first_not_of('0'), magnitude.size()));
  const std::string canonical =
      fmt::format("{}{}", is_negative ? "-" : "", magnitude.empty() ? "0" : magnitude);
  int64_t value = 0;
  const auto parsed = std::from_chars(canonical.data(), canonical.data() + canonical.size(), value);
  if (parsed.ec == std::errc()) {
    return Integer(value);
  }
  return Value(Data(std::make_shared<const Digits>(Digits{canonical})));
}

Value Value::Undefined(std::string reason) {
  return Value(Data(std::make_shared<const std::string>(std::move(reason))));
}

namespace {

Result<Value> FromJsonAt(const Json& json, Origin origin, int depth) {
  if (depth > kMaxNesting) {
    return Refuse("", "data nested too deeply", fmt::format("at most {} levels", kMaxNesting));
  }
  const auto text = [origin](const std::string& bytes) {
    return Value::String(IsValidUtf8(bytes) ? bytes : RepairUtf8(bytes), origin);
  };
  if (json.is_array()) {
    std::vector<Value> items;
    items.reserve(json.items().size());
    for (const Json& item : json.items()) {
      FACET_ASSIGN(Value value, FromJsonAt(item, origin, depth + 1));
      items.push_back(std::move(value));
    }
    return Value::Of(std::make_shared<const Sequence>(Sequence::Kind::kList, std::move(items)));
  }
  if (json.is_object()) {
    std::vector<Dict::Entry> entries;
    entries.reserve(json.members().size());
    for (const auto& [key, member] : json.members()) {
      FACET_ASSIGN(Value value, FromJsonAt(member, origin, depth + 1));
      entries.emplace_back(text(key), std::move(value));
    }
    return Value::Of(std::make_shared<const Dict>(std::move(entries)));
  }
  if (json.is_string()) {
    return text(json.as_string());
  }
  if (json.is_bool()) {
    return Value::Bool(json.as_bool());
  }
  if (json.is_integer()) {
    return Value::Integer(json.as_int());
  }
  if (json.is_double()) {
    return Value::Float(json.as_double());
  }
  return json.is_big_integer() ? Value::IntegerFromDigits(json.as_big_integer().digits)
                               : Value::None();
}

}  // namespace

Result<Value> Value::FromJson(const Json& json, Origin origin) {
  return FromJsonAt(json, origin, 0);
}

double Value::as_double() const {
  if (is_float()) {
    return std::get<double>(data_);
  }
  return is_big_integer() ? std::strtod(as_digits().c_str(), nullptr)
                          : static_cast<double>(as_integer());
}

bool Value::IsTrue() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInteger:
      return as_integer() != 0;
    case Kind::kFloat:
      return as_double() != 0;
    case Kind::kString:
      return !as_string().empty();
    case Kind::kSequence:
      return as_sequence().is_generator() || as_sequence().size() > 0;
    case Kind::kDict:
      return as_dict().size() > 0;
    case Kind::kBigInteger:
    case Kind::kObject:
      return true;
  }
  return true;
}

std::string_view Value::TypeName() const {
  static constexpr std::string_view kNames[] = {"Undefined", "NoneType", "bool", "int",  "int",
                                                "float",     "str",      "",     "dict", ""};
  static constexpr std::string_view kSequences[] = {
      "list", "tuple", "generator", "range", "dict_keys", "dict_values", "dict_items"};
  static constexpr std::string_view kObjects[] = {"Namespace", "LoopContext", "Macro",  "function",
                                                  "method",    "Cycler",      "Joiner", "bytes"};
  if (is_sequence()) {
    return kSequences[static_cast<size_t>(as_sequence().kind())];
  }
  return is_object() ? kObjects[static_cast<size_t>(as_object().kind)] : kNames[data_.index()];
}

std::string Value::UndefinedReason() const {
  const Reason& reason = std::get<Reason>(data_);
  return reason == nullptr ? "the value is undefined" : *reason;
}

int Value::depth() const {
  switch (kind()) {
    case Kind::kSequence:
      return as_sequence().depth();
    case Kind::kDict:
      return as_dict().depth();
    case Kind::kObject:
      return as_object().depth;
    default:
      return 0;
  }
}

uint64_t Value::weight() const {
  switch (kind()) {
    case Kind::kSequence:
      return as_sequence().weight();
    case Kind::kDict:
      return as_dict().weight();
    case Kind::kString:
      return 1 + as_string().size() / 1024;
    default:
      return 1;
  }
}

uint64_t AddWeights(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

Sequence::Sequence(Kind kind, std::vector<Value> items) : kind_(kind), items_(std::move(items)) {
  for (const Value& item : items_) {
    depth_ = std::max(depth_, item.depth() + 1);
    weight_ = AddWeights(weight_, item.weight());
  }
}

Dict::Dict(std::vector<Entry> entries) : entries_(std::move(entries)) {
  const auto by_key = [this](uint32_t a, uint32_t b) {
    return KeyLess(entries_[a].first, entries_[b].first);
  };
  order_.resize(entries_.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(), by_key);
  std::vector<bool> is_repeated(entries_.size());
  size_t first = 0;
  for (size_t i = 1; i < order_.size(); ++i) {
    if (by_key(order_[first], order_[i])) {
      first = i;
    } else {  // the same key again: the value moves to the key's first place
      entries_[order_[first]].second = entries_[order_[i]].second;
      is_repeated[order_[i]] = true;
    }
  }
  if (std::find(is_repeated.begin(), is_repeated.end(), true) != is_repeated.end()) {
    std::vector<Entry> unique;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!is_repeated[i]) {
        unique.push_back(std::move(entries_[i]));
      }
    }
    entries_ = std::move(unique);
    order_.resize(entries_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(), by_key);
  }
  for (const auto& [key, value] : entries_) {
    depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
    weight_ = AddWeights(weight_, AddWeights(key.weight(), value.weight()));
  }
}

const Value* Dict::Find(const Value& key) const {
  const auto found = std::lower_bound(
      order_.begin(), order_.end(), key,
      [this](uint32_t i, const Value& wanted) { return KeyLess(entries_[i].first, wanted); });
  if (found == order_.end() || KeyLess(key, entries_[*found].first)) {
    return nullptr;
  }
  return &entries_[*found].second;
}

const Value* Dict::Find(std::string_view key) const {
  const auto found = std::lower_bound(
      order_.begin(), order_.end(), key,
      [this](uint32_t i, std::string_view wanted) { return KeyLess(entries_[i].first, wanted); });
  if (found == order_.end() || !entries_[*found].first.is_string() ||
      entries_[*found].first.as_string() != key) {
    return nullptr;
  }
  return &entries_[*found].second;
}

namespace {

Status CheckNesting(int depth) {
  if (depth > kMaxNesting) {
    return Refuse("", "values nested too deeply", fmt::format("at most {} levels", kMaxNesting));
  }
  return {};
}

}  // namespace

Result<Value> MakeSequence(Sequence::Kind kind, std::vector<Value> items, Budget& budget) {
  FACET_RETURN_IF_ERROR(budget.Make(sizeof(Sequence) + items.size() * sizeof(Value)));
  auto sequence = std::make_shared<const Sequence>(kind, std::move(items));
  FACET_RETURN_IF_ERROR(CheckNesting(sequence->depth()));
  return Value::Of(SequencePtr(std::move(sequence)));
}

Result<Value> MakeList(std::vector<Value> items, Budget& budget) {
  return MakeSequence(Sequence::Kind::kList, std::move(items), budget);
}

Result<Value> MakeTuple(std::vector<Value> items, Budget& budget) {
  return MakeSequence(Sequence::Kind::kTuple, std::move(items), budget);
}

Result<Value> MakeRange(Sequence::Range range, Budget& budget) {
  // The sandbox of transformers has the same limit.
  constexpr uint64_t kMaxRange = 100'000;
  if (range.step == 0) {
    return Refuse("", "range() with step 0", "another step");
  }
  const bool is_up = range.step > 0;
  uint64_t count = 0;
  if (is_up ? range.start < range.stop : range.start > range.stop) {
    const uint64_t from = static_cast<uint64_t>(is_up ? range.start : range.stop);
    const uint64_t span = static_cast<uint64_t>(is_up ? range.stop : range.start) - from;
    const uint64_t stride =
        is_up ? static_cast<uint64_t>(range.step) : uint64_t{0} - static_cast<uint64_t>(range.step);
    count = (span - 1) / stride + 1;
  }
  if (count > kMaxRange) {
    return Refuse("", fmt::format("a range of {} numbers", count),
                  fmt::format("at most {}", kMaxRange));
  }
  FACET_RETURN_IF_ERROR(budget.Make(sizeof(Sequence) + count * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    items.push_back(Value::Integer(static_cast<int64_t>(static_cast<uint64_t>(range.start) +
                                                        i * static_cast<uint64_t>(range.step))));
  }
  auto sequence = std::make_shared<Sequence>(Sequence::Kind::kRange, std::move(items));
  sequence->range = range;
  return Value::Of(SequencePtr(std::move(sequence)));
}

Result<Value> MakeDict(std::vector<Dict::Entry> entries, Budget& budget) {
  FACET_RETURN_IF_ERROR(
      budget.Make(sizeof(Dict) + entries.size() * (sizeof(Dict::Entry) + sizeof(uint32_t))));
  uint64_t key_weight = 0;
  for (const auto& [key, value] : entries) {
    FACET_RETURN_IF_ERROR(CheckHashable(key));
    key_weight = std::max(key_weight, key.weight());
  }
  if (key_weight > 1) {  // sorting compares each key some twenty times
    FACET_RETURN_IF_ERROR(
        budget.Step(std::min(key_weight, uint64_t{1} << 32) * entries.size() * 20));
  }
  auto dict = std::make_shared<const Dict>(std::move(entries));
  FACET_RETURN_IF_ERROR(CheckNesting(dict->depth()));
  return Value::Of(DictPtr(std::move(dict)));
}

Result<Value> MakeString(MarkedString text, Budget& budget) {
  FACET_RETURN_IF_ERROR(budget.Make(sizeof(Text) + text.memory()));
  return Value::String(std::move(text));
}

Result<size_t> LengthOf(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return size_t{0};
    case Value::Kind::kString:
      return value.as_text()->n_characters;
    case Value::Kind::kDict:
      return value.as_dict().size();
    case Value::Kind::kSequence:
      if (!value.as_sequence().is_generator()) {
        return value.as_sequence().size();
      }
      break;
    default:
      break;
  }
  return Refuse("", fmt::format("object of type '{}' has no len()", value.TypeName()),
                "a string, a list or a dict");
}

Status CheckHashable(const Value& key) {
  if (key.is_dict() || (key.is_sequence() && key.as_sequence().is_list())) {
    return Refuse("", fmt::format("unhashable type: '{}'", key.TypeName()),
                  "a key that cannot change");
  }
  if (key.is_sequence() && key.as_sequence().is_tuple()) {
    for (const Value& item : key.as_sequence().items()) {
      FACET_RETURN_IF_ERROR(CheckHashable(item));
    }
  }
  return {};
}

namespace {

/// One string per character.
Result<SequencePtr> CharactersOf(const Text& text, Budget& budget) {
  FACET_RETURN_IF_ERROR(budget.Step(text.n_characters));
  FACET_RETURN_IF_ERROR(budget.Make(text.n_characters * (sizeof(Value) + sizeof(Text))));
  std::vector<Value> items;
  items.reserve(text.n_characters);
  for (size_t begin = 0; begin < text.text().size();) {
    const size_t end = begin + static_cast<size_t>(
                                   DecodeUtf8(std::string_view(text.text()).substr(begin, 4)).size);
    items.push_back(Value::String(text.marked.Substring(begin, end)));
    begin = end;
  }
  return std::make_shared<const Sequence>(Sequence::Kind::kList, std::move(items));
}

}  // namespace

Result<SequencePtr> Iterate(const Value& value, Budget& budget) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return std::make_shared<const Sequence>(Sequence::Kind::kList, std::vector<Value>());
    case Value::Kind::kString:
      return CharactersOf(*value.as_text(), budget);
    case Value::Kind::kDict: {
      std::vector<Value> keys;
      for (const auto& [key, unused] : value.as_dict().entries()) {
        keys.push_back(key);
      }
      FACET_RETURN_IF_ERROR(budget.Make(keys.size() * sizeof(Value)));
      return std::make_shared<const Sequence>(Sequence::Kind::kList, std::move(keys));
    }
    case Value::Kind::kSequence: {
      const Sequence& sequence = value.as_sequence();
      if (sequence.consumed() == 0 && !sequence.is_generator()) {
        return value.sequence();
      }
      const auto begin =
          sequence.items().begin() + static_cast<std::ptrdiff_t>(sequence.consumed());
      std::vector<Value> rest(begin, sequence.items().end());
      sequence.Consume(rest.size());
      FACET_RETURN_IF_ERROR(budget.Make(rest.size() * sizeof(Value)));
      return std::make_shared<const Sequence>(Sequence::Kind::kList, std::move(rest));
    }
    default:
      return Refuse("", fmt::format("'{}' object is not iterable", value.TypeName()),
                    "something to iterate over");
  }
}

}  // namespace facet::jinja
