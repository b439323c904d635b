// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace facet {
namespace {

/// Builds our values from nlohmann's events, so that depth and big integers are under our control.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(Json* root, int max_depth) : root_(root), max_depth_(max_depth) {}

  bool null() override { return Put(Json()); }
  bool boolean(bool value) override { return Put(Json(value)); }
  bool number_integer(int64_t value) override { return Put(Json(value)); }
  bool number_unsigned(uint64_t value) override { return Put(Json(value)); }
  bool number_float(double value, const std::string& text) override {
    // nlohmann hands integers that fit no 64-bit type over as floats, with their text.
    if (text.find_first_of(".eE") == std::string::npos) {
      return Put(Json(Json::BigInteger{text}));
    }
    return Put(Json(value));
  }
  bool string(std::string& value) override { return Put(Json(std::move(value))); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(Json(Json::Object())); }
  bool key(std::string& value) override {
    key_ = std::move(value);
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(Json(Json::Array())); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    error_position_ = position;
    return false;
  }

  [[nodiscard]] bool too_deep() const { return too_deep_; }
  [[nodiscard]] size_t error_position() const { return error_position_; }

 private:
  Json* Place(Json value) {
    if (stack_.empty()) {
      *root_ = std::move(value);
      return root_;
    }
    Json* parent = stack_.back();
    if (parent->is_array()) {
      parent->mutable_items().push_back(std::move(value));
      return &parent->mutable_items().back();
    }
    parent->mutable_members().emplace_back(std::move(key_), std::move(value));
    return &parent->mutable_members().back().second;
  }
  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(Json value) {
    if (static_cast<int>(stack_.size()) >= max_depth_) {
      too_deep_ = true;
      return false;
    }
    stack_.push_back(Place(std::move(value)));
    return true;
  }
  bool Close() {
    stack_.pop_back();
    return true;
  }

  Json* root_;
  int max_depth_;
  std::vector<Json*> stack_;
  std::string key_;
  bool too_deep_ = false;
  size_t error_position_ = 0;
};

void AppendEscaped(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<int>(c));
        } else {
          out.push_back(c);
        }
    }
  }
  out.push_back('"');
}

void BreakLine(std::string& out, int indent, int depth) {
  if (indent > 0) {
    out.push_back('\n');
    out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
  }
}

void DumpTo(std::string& out, const Json& json, int indent, int depth) {
  if (json.is_null()) {
    out += "null";
  } else if (json.is_bool()) {
    out += json.as_bool() ? "true" : "false";
  } else if (json.is_integer()) {
    out += fmt::format("{}", json.as_int());
  } else if (json.is_big_integer()) {
    out += json.as_big_integer().digits;
  } else if (json.is_double()) {
    // JSON has no infinities; fmt prints the shortest digits that read back as the same number.
    std::string digits =
        std::isfinite(json.as_double()) ? fmt::format("{}", json.as_double()) : "null";
    if (digits.find_first_of(".en") == std::string::npos) {
      digits += ".0";  // a number with a fraction point stays one when read again
    }
    out += digits;
  } else if (json.is_string()) {
    AppendEscaped(out,
                  IsValidUtf8(json.as_string()) ? json.as_string() : RepairUtf8(json.as_string()));
  } else if (json.is_array()) {
    out.push_back('[');
    bool first = true;
    for (const Json& item : json.items()) {
      out += first ? "" : ",";
      first = false;
      BreakLine(out, indent, depth + 1);
      DumpTo(out, item, indent, depth + 1);
    }
    if (!first) {
      BreakLine(out, indent, depth);
    }
    out.push_back(']');
  } else {
    out.push_back('{');
    bool first = true;
    for (const auto& [key, value] : json.members()) {
      out += first ? "" : ",";
      first = false;
      BreakLine(out, indent, depth + 1);
      AppendEscaped(out, IsValidUtf8(key) ? key : RepairUtf8(key));
      out += indent > 0 ? ": " : ":";
      DumpTo(out, value, indent, depth + 1);
    }
    if (!first) {
      BreakLine(out, indent, depth);
    }
    out.push_back('}');
  }
}

}  // namespace

Json::Json(uint64_t value) {
  if (value <= static_cast<uint64_t>(INT64_MAX)) {
    value_ = static_cast<int64_t>(value);
  } else {
    value_ = BigInteger{fmt::format("{}", value)};
  }
}

bool Json::as_bool(bool otherwise) const {
  const auto* value = std::get_if<bool>(&value_);
  return value != nullptr ? *value : otherwise;
}

int64_t Json::as_int(int64_t otherwise) const {
  if (const auto* value = std::get_if<int64_t>(&value_)) {
    return *value;
  }
  if (const auto* value = std::get_if<double>(&value_)) {
    if (std::floor(*value) == *value && std::fabs(*value) < 0x1p53) {
      return static_cast<int64_t>(*value);
    }
  }
  return otherwise;
}

double Json::as_double(double otherwise) const {
  if (const auto* value = std::get_if<double>(&value_)) {
    return *value;
  }
  if (const auto* value = std::get_if<int64_t>(&value_)) {
    return static_cast<double>(*value);
  }
  if (const auto* value = std::get_if<BigInteger>(&value_)) {
    return std::strtod(value->digits.c_str(), nullptr);
  }
  return otherwise;
}

const std::string& Json::as_string() const {
  static const std::string kEmpty;
  const auto* value = std::get_if<std::string>(&value_);
  return value != nullptr ? *value : kEmpty;
}

const Json::Array& Json::items() const {
  static const Array kEmpty;
  const auto* value = std::get_if<Array>(&value_);
  return value != nullptr ? *value : kEmpty;
}

const Json::Object& Json::members() const {
  static const Object kEmpty;
  const auto* value = std::get_if<Object>(&value_);
  return value != nullptr ? *value : kEmpty;
}

const Json::BigInteger& Json::as_big_integer() const {
  static const BigInteger kZero{"0"};
  const auto* value = std::get_if<BigInteger>(&value_);
  return value != nullptr ? *value : kZero;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json kNull;
  const Json* found = Find(key);
  return found != nullptr ? *found : kNull;
}

const Json* Json::Find(std::string_view key) const {
  const Object& all = members();
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (it->first == key) {
      return &it->second;
    }
  }
  return nullptr;
}

void Json::Set(std::string_view key, Json value) {
  if (Json* old = const_cast<Json*>(Find(key))) {
    *old = std::move(value);
    return;
  }
  mutable_members().emplace_back(std::string(key), std::move(value));
}

void Json::Append(Json value) { mutable_items().push_back(std::move(value)); }

Json::Array& Json::mutable_items() {
  if (is_null()) {
    value_ = Array();
  }
  FACET_CHECK(is_array());
  return std::get<Array>(value_);
}

Json::Object& Json::mutable_members() {
  if (is_null()) {
    value_ = Object();
  }
  FACET_CHECK(is_object());
  return std::get<Object>(value_);
}

std::string Json::Dump(int indent) const {
  std::string out;
  DumpTo(out, *this, indent, 0);
  return out;
}

std::string_view Json::KindName() const {
  static constexpr std::string_view kNames[] = {"null",     "true or false", "an integer",
                                                "a number", "an integer",    "a string",
                                                "an array", "an object"};
  return kNames[value_.index()];
}

Result<Json> ParseJson(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return Refuse(name, fmt::format("{} bytes of JSON", text.size()),
                  fmt::format("at most {}", limits.max_bytes));
  }
  Json root;
  Builder builder(&root, limits.max_depth);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    if (builder.too_deep()) {
      return Refuse(name, "JSON nested too deeply",
                    fmt::format("at most {} levels", limits.max_depth));
    }
    return Refuse(fmt::format("{}, byte {}", name, builder.error_position()), "broken JSON",
                  "valid JSON");
  }
  return root;
}

}  // namespace facet
