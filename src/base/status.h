// SPDX-License-Identifier: Apache-2.0
// Failure of input as a value: where it happened, what was found, what was wanted. No exceptions
// cross our code.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"

namespace facet {

/// Why something was refused. `where` names the place (file, key, tensor, line and column), `found`
/// what stands there, `wanted` what would have been accepted. Any of the three may be empty;
/// `found` is the least that must be set.
struct Error {
  std::string where;
  std::string found;
  std::string wanted;

  /// One line: "WHERE: FOUND, wanted WANTED". Parts that are empty are left out.
  [[nodiscard]] std::string Message() const;
};

/// Shorthand: return Refuse("a.gguf", "magic \"GGML\"", "\"GGUF\"");
inline Error Refuse(std::string where, std::string found, std::string wanted = {}) {
  return Error{std::move(where), std::move(found), std::move(wanted)};
}

/// A value or an Error. Reading the wrong side is a bug and aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose, both ways: `return value;` and `return Refuse(...);`.
  Result(T value) : value_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Error& error() const {
    FACET_CHECK(!ok());
    return error_;
  }
  T& operator*() & {
    FACET_CHECK(ok());
    return *value_;
  }
  const T& operator*() const& {
    FACET_CHECK(ok());
    return *value_;
  }
  T&& operator*() && {
    FACET_CHECK(ok());
    return *std::move(value_);
  }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }

 private:
  std::optional<T> value_;
  Error error_;
};

/// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  [[nodiscard]] const Error& error() const {
    FACET_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace facet

/// Returns the error of a Status or Result expression from the enclosing function, if it has one.
#define FACET_RETURN_IF_ERROR(expression) \
  do {                                    \
    auto facet_status_ = (expression);    \
    if (!facet_status_.ok()) {            \
      return facet_status_.error();       \
    }                                     \
  } while (false)

#define FACET_CONCAT_INNER(a, b) a##b
#define FACET_CONCAT(a, b) FACET_CONCAT_INNER(a, b)

/// FACET_ASSIGN(auto file, Open(path)): declares or assigns the value, or returns the error.
// NOLINTBEGIN(bugprone-macro-parentheses): `target` may be a declaration.
#define FACET_ASSIGN(target, expression)                     \
  auto FACET_CONCAT(facet_result_, __LINE__) = (expression); \
  if (!FACET_CONCAT(facet_result_, __LINE__).ok()) {         \
    return FACET_CONCAT(facet_result_, __LINE__).error();    \
  }                                                          \
  target = *std::move(FACET_CONCAT(facet_result_, __LINE__))
// NOLINTEND(bugprone-macro-parentheses)
