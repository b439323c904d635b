// SPDX-License-Identifier: Apache-2.0
// The values a template computes with: Python's, as far as templates see them. Strings, lists and
// dicts are immutable and shared, so copying a Value is cheap and values cannot form cycles; the
// one thing that changes, a namespace, is owned by the rendering. Lists and dicts know how deep
// they nest and how much they weigh, which bounds every recursion over them before it starts. Not
// for several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "jinja/limits.h"
#include "jinja/marked_string.h"

namespace facet::jinja {

class Dict;
class Sequence;
struct Object;

/// A string with its length in code points.
struct Text {
  explicit Text(MarkedString marked_text);

  MarkedString marked;
  size_t n_characters;

  [[nodiscard]] const std::string& text() const { return marked.text(); }
  [[nodiscard]] bool is_ascii() const { return n_characters == marked.size(); }
};

using TextPtr = std::shared_ptr<const Text>;
using SequencePtr = std::shared_ptr<const Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using ObjectPtr = std::shared_ptr<Object>;

class Value {
 public:
  /// In the order of the variant below.
  enum class Kind : uint8_t {
    kUndefined,
    kNone,
    kBool,
    kInteger,
    kBigInteger,
    kFloat,
    kString,
    kSequence,
    kDict,
    kObject
  };

  /// Undefined without a reason.
  Value() = default;
  static Value None() { return Value(Data(std::in_place_index<1>)); }
  static Value Bool(bool value) { return Value(Data(value)); }
  static Value Integer(int64_t value) { return Value(Data(value)); }
  static Value Float(double value) { return Value(Data(value)); }
  /// Decimal digits, perhaps with a minus; becomes a plain integer where 64 bits are enough.
  static Value IntegerFromDigits(std::string_view digits);
  static Value String(std::string text, Origin origin) {
    return String(MarkedString(std::move(text), origin));
  }
  static Value String(MarkedString text) {
    return Value(Data(std::make_shared<const Text>(std::move(text))));
  }
  static Value Of(TextPtr text) { return Value(Data(std::move(text))); }
  static Value Of(SequencePtr sequence) { return Value(Data(std::move(sequence))); }
  static Value Of(DictPtr dict) { return Value(Data(std::move(dict))); }
  static Value Of(ObjectPtr object) { return Value(Data(std::move(object))); }
  /// `reason` is the error that using the value gives: "'x' is undefined".
  static Value Undefined(std::string reason);
  /// All strings inside get `origin`, keys too. Refuses nesting above kMaxNesting.
  static Result<Value> FromJson(const Json& json, Origin origin);

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(data_.index()); }
  [[nodiscard]] bool is_undefined() const { return kind() == Kind::kUndefined; }
  [[nodiscard]] bool is_none() const { return kind() == Kind::kNone; }
  [[nodiscard]] bool is_bool() const { return kind() == Kind::kBool; }
  [[nodiscard]] bool is_big_integer() const { return kind() == Kind::kBigInteger; }
  [[nodiscard]] bool is_float() const { return kind() == Kind::kFloat; }
  [[nodiscard]] bool is_string() const { return kind() == Kind::kString; }
  [[nodiscard]] bool is_sequence() const { return kind() == Kind::kSequence; }
  [[nodiscard]] bool is_dict() const { return kind() == Kind::kDict; }
  [[nodiscard]] bool is_object() const { return kind() == Kind::kObject; }
  [[nodiscard]] bool is_plain_integer() const { return kind() == Kind::kInteger; }
  /// Also true and false, which are numbers in Python.
  [[nodiscard]] bool is_integer() const { return is_plain_integer() || is_bool(); }
  [[nodiscard]] bool is_number() const { return is_integer() || is_big_integer() || is_float(); }

  // Each aborts on another kind.
  [[nodiscard]] bool as_bool() const { return std::get<bool>(data_); }
  [[nodiscard]] int64_t as_integer() const {
    return is_bool() ? int64_t{as_bool()} : std::get<int64_t>(data_);
  }
  [[nodiscard]] const std::string& as_digits() const { return std::get<BigInteger>(data_)->digits; }
  [[nodiscard]] double as_double() const;  ///< of every number
  [[nodiscard]] const TextPtr& as_text() const { return std::get<TextPtr>(data_); }
  [[nodiscard]] const std::string& as_string() const { return as_text()->text(); }
  [[nodiscard]] const Sequence& as_sequence() const { return *std::get<SequencePtr>(data_); }
  [[nodiscard]] const SequencePtr& sequence() const { return std::get<SequencePtr>(data_); }
  [[nodiscard]] const Dict& as_dict() const { return *std::get<DictPtr>(data_); }
  [[nodiscard]] const DictPtr& dict() const { return std::get<DictPtr>(data_); }
  [[nodiscard]] Object& as_object() const { return *std::get<ObjectPtr>(data_); }
  [[nodiscard]] const ObjectPtr& object() const { return std::get<ObjectPtr>(data_); }

  /// Python's truth of the value.
  [[nodiscard]] bool IsTrue() const;
  /// Python's name of the type: "str", "NoneType", "dict_items".
  [[nodiscard]] std::string_view TypeName() const;
  /// Why the value is undefined.
  [[nodiscard]] std::string UndefinedReason() const;
  [[nodiscard]] int depth()
      const;  ///< levels of lists and dicts below and with this one; 0 for others
  [[nodiscard]] uint64_t weight()
      const;  ///< values below and with this one, shared ones counted each time; saturates

 private:
  struct Digits {
    std::string digits;
  };
  using BigInteger = std::shared_ptr<const Digits>;
  using Reason = std::shared_ptr<const std::string>;
  using Data = std::variant<Reason, std::monostate, bool, int64_t, BigInteger, double, TextPtr,
                            SequencePtr, DictPtr, ObjectPtr>;

  explicit Value(Data data) : data_(std::move(data)) {}

  Data data_;
};

/// Saturating sum of weights.
uint64_t AddWeights(uint64_t a, uint64_t b);

/// Everything that Python iterates over by position. A generator (what filters like map give) is
/// computed at once but can be walked only once, as in Python.
class Sequence {
 public:
  enum class Kind : uint8_t { kList, kTuple, kGenerator, kRange, kKeys, kValues, kItems };

  /// Only through MakeSequence and MakeRange (they check).
  Sequence(Kind kind, std::vector<Value> items);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is_list() const { return kind_ == Kind::kList; }
  [[nodiscard]] bool is_tuple() const { return kind_ == Kind::kTuple; }
  [[nodiscard]] bool is_generator() const { return kind_ == Kind::kGenerator; }
  [[nodiscard]] bool is_range() const { return kind_ == Kind::kRange; }
  /// len() and [] work.
  [[nodiscard]] bool has_index() const { return is_list() || is_tuple() || is_range(); }
  [[nodiscard]] const std::vector<Value>& items() const { return items_; }
  [[nodiscard]] size_t size() const { return items_.size(); }
  [[nodiscard]] int depth() const { return depth_; }
  [[nodiscard]] uint64_t weight() const { return weight_; }

  /// Position of the next item of a generator. Mutable by nature: walking a generator consumes it.
  [[nodiscard]] size_t consumed() const { return consumed_; }
  void Consume(size_t n) const { consumed_ += n; }

  struct Range {
    int64_t start = 0;
    int64_t stop = 0;
    int64_t step = 1;
  };
  Range range;            ///< of a range: what it was made from
  bool is_group = false;  ///< a tuple (grouper, list) of the filter groupby, whose parts have names

 private:
  Kind kind_;
  std::vector<Value> items_;
  int depth_ = 1;
  uint64_t weight_ = 1;
  mutable size_t consumed_ = 0;
};

/// Keys in the order they were first written. Keys compare as in Python: 1, 1.0 and true are one
/// key.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  /// Of repeated keys the first place and the last value count. Keys must be hashable (MakeDict
  /// checks).
  explicit Dict(std::vector<Entry> entries);

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  /// The value, or null. The key must be hashable.
  [[nodiscard]] const Value* Find(const Value& key) const;
  [[nodiscard]] const Value* Find(std::string_view key) const;
  [[nodiscard]] int depth() const { return depth_; }
  [[nodiscard]] uint64_t weight() const { return weight_; }

 private:
  std::vector<Entry> entries_;
  std::vector<uint32_t> order_;  ///< indices of entries_, ascending by key
  int depth_ = 1;
  uint64_t weight_ = 1;
};

/// What is neither data nor text. Derived kinds stand in objects.h.
struct Object {
  enum class Kind : uint8_t {
    kNamespace,
    kLoop,
    kMacro,
    kFunction,
    kMethod,
    kCycler,
    kJoiner,
    kBytes
  };
  Object(Kind object_kind, int object_depth) : kind(object_kind), depth(object_depth) {}
  virtual ~Object() = default;

  Kind kind;
  int depth;  ///< as Value::depth, through what the object holds
};

// Making compound values: pays from the budget, then checks nesting.
Result<Value> MakeSequence(Sequence::Kind kind, std::vector<Value> items, Budget& budget);
Result<Value> MakeList(std::vector<Value> items, Budget& budget);
Result<Value> MakeTuple(std::vector<Value> items, Budget& budget);
Result<Value> MakeRange(Sequence::Range range, Budget& budget);
Result<Value> MakeDict(std::vector<Dict::Entry> entries, Budget& budget);
Result<Value> MakeString(MarkedString text, Budget& budget);

/// len(value), or an error: "object of type 'int' has no len()".
Result<size_t> LengthOf(const Value& value);

/// An error unless the value can be a dict key.
Status CheckHashable(const Value& key);

/// The items one gets by iterating, or an error: "'int' object is not iterable". Consumes
/// generators.
Result<SequencePtr> Iterate(const Value& value, Budget& budget);

}  // namespace facet::jinja
