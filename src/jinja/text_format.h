// SPDX-License-Identifier: Apache-2.0
// Python's two ways of formatting: "%s" % value and "{}".format(value). What is inserted keeps its
// origin, the rest that of the format string.
#pragma once

#include "base/status.h"
#include "jinja/objects.h"
#include "jinja/value.h"

namespace facet::jinja {

/// format % arguments: a tuple gives several, a dict named ones, anything else one.
Result<Value> FormatPercent(const Text& format, const Value& arguments, Budget& budget);

/// format.format(arguments)
Result<Value> FormatBraces(Interpreter& interpreter, const Text& format,
                           const Arguments& arguments);

/// A fixed number of digits after the point, "%.1f".
std::string FixedDigits(double value, int digits);

}  // namespace facet::jinja
