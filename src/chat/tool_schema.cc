// SPDX-License-Identifier: Apache-2.0
#include "chat/tool_schema.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace facet {
namespace {

/// Alternatives of one place that are kept. Bounds schemas that refer to themselves.
constexpr size_t kMaxAlternatives = 256;

int TypeNamed(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::pair<std::string_view, ValueSchema::Type> kTypes[] = {
      {"string", ValueSchema::kString}, {"integer", ValueSchema::kNumber},
      {"number", ValueSchema::kNumber}, {"boolean", ValueSchema::kBoolean},
      {"null", ValueSchema::kNull},     {"object", ValueSchema::kObject},
      {"array", ValueSchema::kArray},
  };
  for (const auto& [text, type] : kTypes) {
    if (lower == text) {
      return type;
    }
  }
  return 0;
}

int TypeOf(const Json& value) {
  if (value.is_string()) {
    return ValueSchema::kString;
  }
  if (value.is_number()) {
    return ValueSchema::kNumber;
  }
  if (value.is_bool()) {
    return ValueSchema::kBoolean;
  }
  if (value.is_array()) {
    return ValueSchema::kArray;
  }
  return value.is_object() ? ValueSchema::kObject : ValueSchema::kNull;
}

/// The types that one schema names by itself, without its alternatives.
int TypesOf(const Json& schema) {
  int types = TypeNamed(schema["type"].as_string());
  for (const Json& type : schema["type"].items()) {
    types |= TypeNamed(type.as_string());
  }
  if (types == 0) {
    for (const Json& value : schema["enum"].items()) {
      types |= TypeOf(value);
    }
    types |= schema.contains("const") ? TypeOf(schema["const"]) : 0;
    types |= schema["properties"].is_object() ? ValueSchema::kObject : 0;
    types |= schema["items"].is_object() ? ValueSchema::kArray : 0;
  }
  return types != 0 && schema["nullable"].as_bool() ? types | ValueSchema::kNull : types;
}

/// What "#/$defs/Name" refers to, or null.
const Json* Referred(const Json& root, std::string_view reference) {
  if (!reference.starts_with("#/")) {
    return nullptr;
  }
  const Json* place = &root;
  for (size_t begin = 2; begin <= reference.size();) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    place = place->Find(reference.substr(begin, end - begin));
    if (place == nullptr) {
      return nullptr;
    }
    begin = end + 1;
  }
  return place;
}

}  // namespace

ValueSchema::ValueSchema(const Json& schema) : ValueSchema(&schema, {&schema}) {}

ValueSchema::ValueSchema(const Json* root, Schemas starts)
    : root_(root), alternatives_(std::move(starts)) {
  for (size_t n = 0; n < alternatives_.size(); ++n) {
    const Json& schema = *alternatives_[n];
    types_ |= TypesOf(schema);
    if (const Json* referred = Referred(*root_, schema["$ref"].as_string())) {
      Add(*referred, &alternatives_);
    }
    for (const std::string_view list : {"anyOf", "oneOf", "allOf"}) {
      for (const Json& alternative : schema[list].items()) {
        if (!Add(alternative, &alternatives_)) {
          break;
        }
      }
    }
  }
}

bool ValueSchema::Add(const Json& schema, Schemas* schemas) {
  const bool has_room = schemas->size() < kMaxAlternatives;
  if (has_room && std::find(schemas->begin(), schemas->end(), &schema) == schemas->end()) {
    schemas->push_back(&schema);
  }
  return has_room;
}

bool ValueSchema::HasProperties() const {
  return std::any_of(alternatives_.begin(), alternatives_.end(),
                     [](const Json* schema) { return !(*schema)["properties"].members().empty(); });
}

bool ValueSchema::HasProperty(std::string_view name) const {
  return std::any_of(alternatives_.begin(), alternatives_.end(),
                     [name](const Json* schema) { return (*schema)["properties"].contains(name); });
}

ValueSchema ValueSchema::Property(std::string_view name) const {
  Schemas found;
  for (const Json* schema : alternatives_) {
    const Json* property = (*schema)["properties"].Find(name);
    property = property != nullptr ? property : schema->Find("additionalProperties");
    if (property != nullptr && property->is_object()) {
      Add(*property, &found);
    }
  }
  return found.empty() ? ValueSchema() : ValueSchema(root_, std::move(found));
}

ValueSchema ValueSchema::Item() const {
  Schemas found;
  for (const Json* schema : alternatives_) {
    if ((*schema)["items"].is_object()) {
      Add((*schema)["items"], &found);
    }
  }
  return found.empty() ? ValueSchema() : ValueSchema(root_, std::move(found));
}

}  // namespace facet
