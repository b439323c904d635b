// SPDX-License-Identifier: Apache-2.0
#include "jinja/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "jinja/text_ops.h"

namespace facet::jinja {
namespace {

/// Both are numbers: -1, 0, 1; 2 when one is not a number (NaN).
int CompareNumbers(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) {
    return a.as_integer() < b.as_integer() ? -1 : (a.as_integer() > b.as_integer() ? 1 : 0);
  }
  if (a.is_big_integer() && b.is_big_integer()) {
    const std::string& x = a.as_digits();
    const std::string& y = b.as_digits();
    const bool x_negative = x.front() == '-';
    if (x_negative != (y.front() == '-')) {
      return x_negative ? -1 : 1;
    }
    const int magnitude = x.size() != y.size() ? (x.size() < y.size() ? -1 : 1) : x.compare(y);
    return (magnitude > 0 ? 1 : (magnitude < 0 ? -1 : 0)) * (x_negative ? -1 : 1);
  }
  const double x = a.as_double();
  const double y = b.as_double();
  if (std::isnan(x) || std::isnan(y)) {
    return 2;
  }
  if (x == y && a.is_integer() && b.is_float() && std::fabs(y) < 0x1p63) {
    const auto exact =
        static_cast<int64_t>(y);  // the rounding of a to double may have hidden a difference
    return a.as_integer() < exact ? -1 : (a.as_integer() > exact ? 1 : 0);
  }
  if (x == y && b.is_integer() && a.is_float()) {
    return -CompareNumbers(b, a);
  }
  return x < y ? -1 : (x > y ? 1 : 0);
}

bool EqualUnpaid(const Value& a, const Value& b);

bool EqualSequences(const Sequence& a, const Sequence& b) {
  if (a.kind() != b.kind() || !a.has_index() || a.size() != b.size()) {
    return false;
  }
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), EqualUnpaid);
}

bool EqualDicts(const Dict& a, const Dict& b) {
  if (a.size() != b.size()) {
    return false;
  }
  return std::all_of(a.entries().begin(), a.entries().end(), [&b](const Dict::Entry& entry) {
    const Value* other = b.Find(entry.first);
    return other != nullptr && EqualUnpaid(entry.second, *other);
  });
}

bool EqualUnpaid(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return CompareNumbers(a, b) == 0;
  }
  if (a.kind() != b.kind()) {
    return false;
  }
  switch (a.kind()) {
    case Value::Kind::kString:
      return a.as_text() == b.as_text() || a.as_string() == b.as_string();
    case Value::Kind::kSequence:
      return a.sequence() == b.sequence() || EqualSequences(a.as_sequence(), b.as_sequence());
    case Value::Kind::kDict:
      return a.dict() == b.dict() || EqualDicts(a.as_dict(), b.as_dict());
    case Value::Kind::kObject:
      return a.object() == b.object();
    default:
      return true;  // undefined, none
  }
}

Result<bool> LessUnpaid(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return CompareNumbers(a, b) == -1;
  }
  if (a.is_undefined() || b.is_undefined()) {
    return Refuse("", (a.is_undefined() ? a : b).UndefinedReason());
  }
  if (a.is_string() && b.is_string()) {
    return a.as_string() < b.as_string();  // the order of UTF-8 bytes is the order of code points
  }
  if (a.is_sequence() && b.is_sequence() && a.as_sequence().kind() == b.as_sequence().kind() &&
      (a.as_sequence().is_list() || a.as_sequence().is_tuple())) {
    const auto& x = a.as_sequence().items();
    const auto& y = b.as_sequence().items();
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!EqualUnpaid(x[i], y[i])) {
        return LessUnpaid(x[i], y[i]);
      }
    }
    return x.size() < y.size();
  }
  return Refuse("",
                fmt::format("'<' not supported between instances of '{}' and '{}'", a.TypeName(),
                            b.TypeName()),
                "values that have an order");
}

/// Kinds that are never equal to each other as keys, in an arbitrary fixed order.
int KeyRank(const Value& key) {
  if (key.is_number()) {
    return 1;
  }
  return key.is_sequence() && !key.as_sequence().is_tuple() ? 100
                                                            : static_cast<int>(key.kind()) + 2;
}

/// Three ways at once: asking "less?" both ways would double the work on each level of nested
/// tuples.
int KeyOrder(const Value& a, const Value& b) {
  const int rank = KeyRank(a);
  if (rank != KeyRank(b)) {
    return rank < KeyRank(b) ? -1 : 1;
  }
  if (a.is_number()) {
    const int order = CompareNumbers(a, b);
    const bool a_is_nan = a.is_float() && std::isnan(a.as_double());
    const bool b_is_nan = b.is_float() && std::isnan(b.as_double());
    return order == 2 ? int{a_is_nan} - int{b_is_nan} : order;  // NaN stands above all numbers
  }
  if (a.is_string()) {
    return a.as_string().compare(b.as_string());
  }
  if (a.is_object() || (a.is_sequence() && !a.as_sequence().is_tuple())) {
    const void* x = a.is_object() ? static_cast<const void*>(a.object().get()) : a.sequence().get();
    const void* y = b.is_object() ? static_cast<const void*>(b.object().get()) : b.sequence().get();
    return x == y ? 0 : (std::less<>()(x, y) ? -1 : 1);
  }
  if (!a.is_sequence() || a.sequence() == b.sequence()) {
    return 0;  // undefined, none
  }
  const auto& x = a.as_sequence().items();
  const auto& y = b.as_sequence().items();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (const int order = KeyOrder(x[i], y[i]); order != 0) {
      return order;
    }
  }
  return x.size() < y.size() ? -1 : (x.size() > y.size() ? 1 : 0);
}

}  // namespace

Result<bool> Equal(const Value& a, const Value& b, Budget& budget) {
  FACET_RETURN_IF_ERROR(budget.Step(std::min(a.weight(), b.weight())));
  return EqualUnpaid(a, b);
}

Result<bool> Less(const Value& a, const Value& b, Budget& budget) {
  // A nested list is walked twice on each level: once for the first difference, once for its order.
  const uint64_t weight = std::min(a.weight(), b.weight());
  const auto levels = static_cast<uint64_t>(1 + std::min(a.depth(), b.depth()));
  FACET_RETURN_IF_ERROR(budget.Step(std::min(weight, uint64_t{1} << 40) * levels));
  return LessUnpaid(a, b);
}

Result<bool> Contains(const Value& container, const Value& item, Budget& budget) {
  if (container.is_string()) {
    if (!item.is_string()) {
      return Refuse(
          "", fmt::format("'in <string>' requires string as left operand, not {}", item.TypeName()),
          "a string");
    }
    FACET_RETURN_IF_ERROR(budget.Scan(container.as_string().size()));
    return FindText(container.as_string(), item.as_string(), 0) != std::string_view::npos;
  }
  if (container.is_dict()) {
    FACET_RETURN_IF_ERROR(CheckHashable(item));
    FACET_RETURN_IF_ERROR(budget.Step(item.weight()));
    return container.as_dict().Find(item) != nullptr;
  }
  if (!container.is_sequence() && !container.is_undefined()) {
    return Refuse("", fmt::format("argument of type '{}' is not iterable", container.TypeName()),
                  "something to search in");
  }
  FACET_ASSIGN(const SequencePtr items, Iterate(container, budget));
  for (const Value& candidate : items->items()) {
    FACET_ASSIGN(const bool is_equal, Equal(candidate, item, budget));
    if (is_equal) {
      return true;
    }
  }
  return false;
}

bool KeyLess(const Value& a, std::string_view b) {
  if (a.is_string()) {
    return a.as_string() < b;
  }
  return KeyRank(a) < static_cast<int>(Value::Kind::kString) + 2;
}

bool KeyLess(const Value& a, const Value& b) { return KeyOrder(a, b) < 0; }

namespace {

/// Merges the sorted ranges [begin, middle) and [middle, end) of `order` into `merged`.
Status Merge(const std::vector<Value>& keys, bool is_reversed, const std::vector<size_t>& order,
             std::array<size_t, 3> range, std::vector<size_t>& merged, Budget& budget) {
  const auto [begin, middle, end] = range;
  size_t left = begin;
  size_t right = middle;
  for (size_t out = begin; out < end; ++out) {
    bool takes_right = left == middle;
    if (!takes_right && right < end) {
      const Value& l = keys[order[left]];
      const Value& r = keys[order[right]];
      FACET_ASSIGN(takes_right, is_reversed ? Less(l, r, budget) : Less(r, l, budget));
    }
    merged[out] = order[takes_right ? right++ : left++];
  }
  return {};
}

}  // namespace

Result<std::vector<size_t>> SortedOrder(const std::vector<Value>& keys, bool is_reversed,
                                        Budget& budget) {
  FACET_RETURN_IF_ERROR(budget.Make(2 * keys.size() * sizeof(size_t)));
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<size_t> merged(keys.size());
  // Merging from short to long, by hand because a comparison can fail.
  for (size_t width = 1; width < keys.size(); width *= 2) {
    for (size_t begin = 0; begin < keys.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, keys.size());
      const size_t end = std::min(begin + 2 * width, keys.size());
      FACET_RETURN_IF_ERROR(Merge(keys, is_reversed, order, {begin, middle, end}, merged, budget));
    }
    order.swap(merged);
  }
  return order;
}

}  // namespace facet::jinja
