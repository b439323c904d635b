// SPDX-License-Identifier: Apache-2.0
// The part of a tool's JSON schema that tells how a value is meant: which types it may have, and
// the schemas of members and items. A schema says more than that; a client checks the rest.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace facet {

/// A place in a schema, with all its alternatives (anyOf, oneOf, allOf, local $ref). Views the
/// schema, which must outlive it.
class ValueSchema {
 public:
  enum Type : uint8_t {
    kString = 1,
    kNumber = 2,  // integers too
    kBoolean = 4,
    kNull = 8,
    kObject = 16,
    kArray = 32,
  };

  /// Allows anything.
  ValueSchema() = default;
  /// `schema` is also where $ref looks.
  explicit ValueSchema(const Json& schema);

  [[nodiscard]] bool Allows(Type type) const { return types_ == 0 || (types_ & type) != 0; }
  /// No other types but these.
  [[nodiscard]] bool IsOnly(int types) const { return types_ != 0 && (types_ & ~types) == 0; }

  /// Names of members are listed.
  [[nodiscard]] bool HasProperties() const;
  [[nodiscard]] bool HasProperty(std::string_view name) const;
  [[nodiscard]] ValueSchema Property(std::string_view name) const;
  [[nodiscard]] ValueSchema Item() const;

 private:
  using Schemas = std::vector<const Json*>;

  ValueSchema(const Json* root, Schemas starts);

  /// Adds a schema that is not among them yet; returns whether more may be added.
  static bool Add(const Json& schema, Schemas* schemas);

  const Json* root_ = nullptr;
  Schemas alternatives_;
  int types_ = 0;  // bits; 0: anything
};

}  // namespace facet
