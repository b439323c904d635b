// SPDX-License-Identifier: Apache-2.0
#include "format/gguf.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace facet::gguf {
namespace {

constexpr std::string_view kTypeNames[] = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                           "int32",  "float32", "bool",   "string", "array",
                                           "uint64", "int64",   "float64"};

std::optional<int64_t> Signed(uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<int64_t>(value);
}

template <typename Wide, typename Item>
Value ArrayOf(ValueType element_type, const std::vector<Item>& items) {
  return Value{ValueType::kArray, element_type, std::vector<Wide>(items.begin(), items.end())};
}

/// Element i, or null when the array holds another kind or ends before it.
template <typename Item, typename Data>
const Item* ElementAt(const Data& data, size_t i) {
  const auto* items = std::get_if<std::vector<Item>>(&data);
  return items != nullptr && i < items->size() ? &(*items)[i] : nullptr;
}

}  // namespace

std::string_view NameOf(ValueType type) {
  const auto id = static_cast<size_t>(type);
  FACET_CHECK(id < std::size(kTypeNames));
  return kTypeNames[id];
}

Value Value::U32(uint32_t v) { return {ValueType::kUint32, ValueType::kUint32, uint64_t{v}}; }
Value Value::F32(float v) { return {ValueType::kFloat32, ValueType::kUint32, double{v}}; }
Value Value::Bool(bool v) { return {ValueType::kBool, ValueType::kUint32, v}; }
Value Value::String(std::string v) {
  return {ValueType::kString, ValueType::kUint32, std::move(v)};
}
Value Value::Strings(std::vector<std::string> v) {
  return {ValueType::kArray, ValueType::kString, std::move(v)};
}
Value Value::U32s(const std::vector<uint32_t>& v) {
  return ArrayOf<uint64_t>(ValueType::kUint32, v);
}
Value Value::I32s(const std::vector<int32_t>& v) { return ArrayOf<int64_t>(ValueType::kInt32, v); }
Value Value::F32s(const std::vector<float>& v) { return ArrayOf<double>(ValueType::kFloat32, v); }
Value Value::Bools(const std::vector<bool>& v) { return ArrayOf<uint8_t>(ValueType::kBool, v); }

size_t Value::array_size() const {
  return std::visit(
      [](const auto& held) -> size_t {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_arithmetic_v<Held> || std::is_same_v<Held, std::string>) {
          return 0;
        } else {
          return held.size();
        }
      },
      data);
}

std::optional<int64_t> Value::AsInt() const {
  if (const auto* number = std::get_if<int64_t>(&data)) {
    return *number;
  }
  if (const auto* number = std::get_if<uint64_t>(&data)) {
    return Signed(*number);
  }
  if (const auto* flag = std::get_if<bool>(&data)) {
    return *flag ? 1 : 0;
  }
  return std::nullopt;
}

std::optional<double> Value::AsDouble() const {
  if (const auto* number = std::get_if<double>(&data)) {
    return *number;
  }
  if (const auto* number = std::get_if<int64_t>(&data)) {
    return static_cast<double>(*number);
  }
  if (const auto* number = std::get_if<uint64_t>(&data)) {
    return static_cast<double>(*number);
  }
  return std::nullopt;
}

std::optional<bool> Value::AsBool() const {
  const auto* flag = std::get_if<bool>(&data);
  return flag != nullptr ? std::optional<bool>(*flag) : std::nullopt;
}

const std::string* Value::AsString() const { return std::get_if<std::string>(&data); }

const std::vector<std::string>* Value::AsStrings() const {
  return std::get_if<std::vector<std::string>>(&data);
}

std::optional<int64_t> Value::IntAt(size_t i) const {
  if (const auto* number = ElementAt<int64_t>(data, i)) {
    return *number;
  }
  if (const auto* number = ElementAt<uint64_t>(data, i)) {
    return Signed(*number);
  }
  if (const auto* flag = ElementAt<uint8_t>(data, i)) {
    return *flag;
  }
  return std::nullopt;
}

std::optional<double> Value::DoubleAt(size_t i) const {
  if (const auto* number = ElementAt<double>(data, i)) {
    return *number;
  }
  if (const auto* number = ElementAt<int64_t>(data, i)) {
    return static_cast<double>(*number);
  }
  if (const auto* number = ElementAt<uint64_t>(data, i)) {
    return static_cast<double>(*number);
  }
  return std::nullopt;
}

const Value* Metadata::Find(std::string_view key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [key](const auto& entry) { return entry.first == key; });
  return found != entries_.end() ? &found->second : nullptr;
}

void Metadata::Set(std::string key, Value value) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&key](const auto& entry) { return entry.first == key; });
  if (found != entries_.end()) {
    found->second = std::move(value);
  } else {
    entries_.emplace_back(std::move(key), std::move(value));
  }
}

}  // namespace facet::gguf
