// SPDX-License-Identifier: Apache-2.0
// The tables of filters, tests, global functions and methods.
#pragma once

#include <string_view>

#include "base/status.h"
#include "jinja/objects.h"
#include "jinja/value.h"

namespace facet::jinja {

using FilterFunction = Result<Value> (*)(Interpreter&, const Value& input, const Arguments&);
using TestFunction = Result<bool> (*)(Interpreter&, const Value& input, const Arguments&);

/// Null when there is no such name.
FilterFunction FindFilter(std::string_view name);
TestFunction FindTest(std::string_view name);
BuiltinFunction FindGlobal(std::string_view name);

/// The filters of filters_text.cc, for FindFilter.
FilterFunction FindTextFilter(std::string_view name);

/// Whether Python's type of `value` has a method of that name that the sandbox lets through.
bool HasMethod(const Value& value, std::string_view name);
/// Whether it has one that the sandbox refuses because it changes the value: list.append.
bool HasUnsafeMethod(const Value& value, std::string_view name);
Result<Value> CallMethod(Interpreter& interpreter, const Value& self, std::string_view name,
                         const Arguments& arguments);
/// str's methods, for CallMethod.
Result<Value> CallStringMethod(Interpreter& interpreter, const Value& self, std::string_view name,
                               const Arguments& arguments);
bool HasStringMethod(std::string_view name);

/// Arguments under the names of their parameters, as a Python function would bind them.
class Bound {
 public:
  /// `names` in order; the first `n_required` must be given. `function` is what errors call it.
  static Result<Bound> Bind(std::string_view function, const Arguments& arguments,
                            std::initializer_list<std::string_view> names, size_t n_required);

  [[nodiscard]] bool has(size_t i) const { return values_[i] != nullptr; }
  /// Undefined when not given.
  [[nodiscard]] const Value& operator[](size_t i) const;
  /// Given and not none.
  [[nodiscard]] bool is_set(size_t i) const { return has(i) && !values_[i]->is_none(); }
  [[nodiscard]] Result<int64_t> Integer(size_t i, int64_t otherwise) const;
  [[nodiscard]] Result<TextPtr> String(size_t i) const;
  [[nodiscard]] bool Bool(size_t i, bool otherwise = false) const {
    return has(i) ? values_[i]->IsTrue() : otherwise;
  }

 private:
  std::string function_;
  std::vector<const Value*> values_;
};

}  // namespace facet::jinja
