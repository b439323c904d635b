// SPDX-License-Identifier: Apache-2.0
// Python's ==, <, in and the order of dict keys. Origins of strings never matter. Weights of both
// sides are paid before a comparison starts, so shared substructure cannot make one explode.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "jinja/value.h"

namespace facet::jinja {

Result<bool> Equal(const Value& a, const Value& b, Budget& budget);
/// a < b; an error when the two have no order: "'<' not supported between instances of 'int' and
/// 'str'".
Result<bool> Less(const Value& a, const Value& b, Budget& budget);
/// item in container.
Result<bool> Contains(const Value& container, const Value& item, Budget& budget);

/// A total order of hashable values in which exactly the keys that Python takes for equal are
/// equivalent.
bool KeyLess(const Value& a, const Value& b);
bool KeyLess(const Value& a, std::string_view b);

/// The order in which a stable sort puts `keys`: indices.
Result<std::vector<size_t>> SortedOrder(const std::vector<Value>& keys, bool is_reversed,
                                        Budget& budget);

}  // namespace facet::jinja
