// SPDX-License-Identifier: Apache-2.0
// Python's operators on values, and slicing.
#pragma once

#include "base/status.h"
#include "jinja/ast.h"
#include "jinja/value.h"

namespace facet::jinja {

/// a OP b for the arithmetic operators. Integer results beyond 64 bits are refused.
Result<Value> Arithmetic(Operator op, const Value& a, const Value& b, Budget& budget);
Result<Value> Negate(const Value& value);

/// value[start:stop:step]; parts that are none count as absent.
struct SliceParts {
  Value start = Value::None();
  Value stop = Value::None();
  Value step = Value::None();
};
Result<Value> Slice(const Value& value, const SliceParts& parts, Budget& budget);

/// The byte at which character number `index` starts; the size of the text when there are fewer.
size_t ByteOffset(const Text& text, size_t index);
/// The characters [begin, end) as a string.
Result<Value> Characters(const TextPtr& text, size_t begin, size_t end, Budget& budget);
/// The same string `n` times.
Result<MarkedString> Repeat(const MarkedString& text, int64_t n, Budget& budget);

}  // namespace facet::jinja
