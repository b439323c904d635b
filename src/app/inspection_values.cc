// SPDX-License-Identifier: Apache-2.0
#include "app/inspection_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

#include "app/text_width.h"
#include "base/utf8.h"

namespace facet {
namespace {

/// Texts longer than this are cut before they are made fit for a line.
constexpr size_t kMaxTextBytes = 1024;

std::string QuotedText(const std::string& text) {
  return Json(RepairUtf8(std::string_view(text).substr(0, kMaxTextBytes))).Dump();
}

/// Numbers that were stored as float32 are shown with its digits, not with those of a double.
std::string NumberText(double number, gguf::ValueType type) {
  return type == gguf::ValueType::kFloat32 ? fmt::format("{}", static_cast<float>(number))
                                           : fmt::format("{}", number);
}

template <typename T>
constexpr bool kIsVector = false;
template <typename T>
constexpr bool kIsVector<std::vector<T>> = true;

}  // namespace

std::string TypeText(const gguf::Value& value) {
  return value.is_array() ? fmt::format("[{}]", gguf::NameOf(value.element_type))
                          : std::string(gguf::NameOf(value.type));
}

Json ValueJson(const gguf::Value& value, size_t max_items) {
  return std::visit(
      [&](const auto& data) {
        using Data = std::decay_t<decltype(data)>;
        if constexpr (kIsVector<Data>) {
          Json items = Json(Json::Array());
          for (size_t i = 0; i < std::min(max_items, data.size()); ++i) {
            if constexpr (std::is_same_v<Data, std::vector<uint8_t>>) {
              items.Append(data[i] != 0);
            } else {
              items.Append(data[i]);
            }
          }
          return items;
        } else {
          return Json(data);
        }
      },
      value.data);
}

std::string ItemText(const gguf::Value& value, size_t i) {
  if (const auto* strings = value.AsStrings()) {
    return QuotedText((*strings)[i]);
  }
  if (const auto* doubles = std::get_if<std::vector<double>>(&value.data)) {
    return NumberText((*doubles)[i], value.element_type);
  }
  if (const auto* flags = std::get_if<std::vector<uint8_t>>(&value.data)) {
    return (*flags)[i] != 0 ? "true" : "false";
  }
  if (const auto* numbers = std::get_if<std::vector<uint64_t>>(&value.data)) {
    return fmt::format("{}", (*numbers)[i]);
  }
  return fmt::format("{}", std::get<std::vector<int64_t>>(value.data)[i]);
}

std::string ValueText(const gguf::Value& value, size_t max_items) {
  if (const std::string* text = value.AsString()) {
    return QuotedText(*text);
  }
  if (const auto* number = std::get_if<double>(&value.data)) {
    return NumberText(*number, value.type);
  }
  if (!value.is_array()) {
    return ValueJson(value, 0).Dump();
  }
  std::string out = fmt::format("[{}]", value.array_size());
  for (size_t i = 0; i < std::min(max_items, value.array_size()); ++i) {
    out += fmt::format("{} {}", i == 0 ? "" : ",", ItemText(value, i));
  }
  return out + (value.array_size() > max_items ? ", ..." : "");
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

std::string CutText(std::string_view text, int n_columns) {
  constexpr std::string_view kDots = "...";
  std::string shown = ShownText(RepairUtf8(text));
  int width = 0;
  size_t end_with_dots = 0;
  for (size_t pos = 0; pos < shown.size();) {
    const size_t next = NextGrapheme(shown, pos);
    width += GraphemeWidth(std::string_view(shown).substr(pos, next - pos));
    if (width > n_columns) {
      return shown.substr(0, end_with_dots) + std::string(kDots);
    }
    if (width <= n_columns - static_cast<int>(kDots.size())) {
      end_with_dots = next;
    }
    pos = next;
  }
  return shown;
}

}  // namespace facet
