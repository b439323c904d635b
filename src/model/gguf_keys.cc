// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_keys.h"

#include <fmt/format.h>

#include <climits>

namespace facet {

std::string GgufKeys::Full(std::string_view key) const {
  return fmt::format("{}.{}", prefix_, key);
}

const gguf::Value* GgufKeys::Find(std::string_view key) const { return metadata_.Find(Full(key)); }

std::string GgufKeys::Where(std::string_view key) const {
  return fmt::format("{}, {}", file_name_, Full(key));
}

Result<int> GgufKeys::Int(std::string_view key, std::optional<int> otherwise) const {
  const gguf::Value* value = Find(key);
  if (value == nullptr) {
    if (!otherwise.has_value()) {
      return Refuse(Where(key), "nothing", "a number");
    }
    return *otherwise;
  }
  return Narrow(key, value->AsInt(), *value);
}

Result<float> GgufKeys::Float(std::string_view key, float otherwise) const {
  const gguf::Value* value = Find(key);
  if (value == nullptr) {
    return otherwise;
  }
  const auto number = value->AsDouble();
  if (!number.has_value()) {
    return Refuse(Where(key), std::string(gguf::NameOf(value->type)), "a number");
  }
  return static_cast<float>(*number);
}

Result<std::vector<int>> GgufKeys::PerLayer(std::string_view key, int n_layers,
                                            std::optional<int> otherwise) const {
  const gguf::Value* value = Find(key);
  if (value == nullptr || !value->is_array()) {
    FACET_ASSIGN(const int scalar, Int(key, otherwise));
    return std::vector<int>(static_cast<size_t>(n_layers), scalar);
  }
  if (value->array_size() != static_cast<size_t>(n_layers)) {
    return Refuse(Where(key), fmt::format("{} entries", value->array_size()),
                  fmt::format("{}, one per layer", n_layers));
  }
  std::vector<int> numbers;
  numbers.reserve(value->array_size());
  for (size_t i = 0; i < value->array_size(); ++i) {
    FACET_ASSIGN(const int number, Narrow(key, value->IntAt(i), *value));
    numbers.push_back(number);
  }
  return numbers;
}

Result<int> GgufKeys::Narrow(std::string_view key, std::optional<int64_t> number,
                             const gguf::Value& value) const {
  if (!number.has_value()) {
    return Refuse(Where(key), std::string(gguf::NameOf(value.type)), "an integer");
  }
  if (*number < INT_MIN || *number > INT_MAX) {
    return Refuse(Where(key), fmt::format("{}", *number), "an integer of 32 bits");
  }
  return static_cast<int>(*number);
}

}  // namespace facet
