// SPDX-License-Identifier: Apache-2.0
// JSON values as plain data: order of keys kept, numbers exact, depth and size limited. The parser
// is nlohmann's, wrapped in json.cc, so that no other file pays for its header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace facet {

/// One JSON value. Copying is deep. Readers that find another kind than asked for get the neutral
/// value (0, "", empty), so that chains of lookups need no tests; use the is_* functions where the
/// kind matters.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object =
      std::vector<Member>;  ///< in the order of the text; of repeated keys the last one counts
  /// An integer that fits no 64-bit type, as its digits.
  struct BigInteger {
    std::string digits;
    bool operator==(const BigInteger&) const = default;
  };

  // Implicit on purpose: `Json::MakeArray({1, "two", nullptr})`.
  // NOLINTBEGIN(google-explicit-constructor)
  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(int64_t{value}) {}
  Json(int64_t value) : value_(value) {}
  Json(uint64_t value);
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(BigInteger value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  // NOLINTEND(google-explicit-constructor)
  static Json MakeArray(std::initializer_list<Json> items) { return Json(Array(items)); }
  static Json MakeObject(std::initializer_list<Member> members) { return Json(Object(members)); }

  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(value_); }
  /// An integer that fits int64_t.
  [[nodiscard]] bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  [[nodiscard]] bool is_big_integer() const { return std::holds_alternative<BigInteger>(value_); }
  [[nodiscard]] bool is_double() const { return std::holds_alternative<double>(value_); }
  [[nodiscard]] bool is_number() const { return is_integer() || is_double() || is_big_integer(); }
  [[nodiscard]] bool is_string() const { return std::holds_alternative<std::string>(value_); }
  [[nodiscard]] bool is_array() const { return std::holds_alternative<Array>(value_); }
  [[nodiscard]] bool is_object() const { return std::holds_alternative<Object>(value_); }

  [[nodiscard]] bool as_bool(bool otherwise = false) const;
  [[nodiscard]] int64_t as_int(int64_t otherwise = 0) const;  ///< also of a double without fraction
  [[nodiscard]] double as_double(double otherwise = 0) const;
  [[nodiscard]] const std::string& as_string() const;
  [[nodiscard]] const Array& items() const;     ///< empty unless an array
  [[nodiscard]] const Object& members() const;  ///< empty unless an object
  [[nodiscard]] const BigInteger& as_big_integer() const;

  /// The member, or null (a shared null value) when absent or not an object.
  const Json& operator[](std::string_view key) const;
  [[nodiscard]] bool contains(std::string_view key) const { return Find(key) != nullptr; }
  [[nodiscard]] const Json* Find(std::string_view key) const;

  /// Sets or replaces a member; a null value becomes an object first.
  void Set(std::string_view key, Json value);
  /// Appends an item; a null value becomes an array first.
  void Append(Json value);
  Array& mutable_items();
  Object& mutable_members();

  /// Compact text. `indent` > 0 breaks lines. Strings must be valid UTF-8 (broken parts become
  /// U+FFFD).
  [[nodiscard]] std::string Dump(int indent = 0) const;
  /// What an error message says was found: "a string", "an array", ...
  [[nodiscard]] std::string_view KindName() const;

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, BigInteger, std::string, Array, Object>
      value_;
};

struct JsonLimits {
  size_t max_bytes = size_t{64} << 20;
  int max_depth = 200;
};

/// Parses one JSON document in UTF-8. `name` is what errors call it; they give the byte position.
Result<Json> ParseJson(std::string_view text, const std::string& name,
                       const JsonLimits& limits = {});

}  // namespace facet
