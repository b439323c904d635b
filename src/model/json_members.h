// SPDX-License-Identifier: Apache-2.0
// Typed access to the members of one JSON object, with errors that name file and key. For the
// readers of config.json; a member that is null counts as absent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/status.h"

namespace facet {

class JsonMembers {
 public:
  /// `json` must outlive the members. `name` is what errors call it: "config.json, text_config".
  JsonMembers(const Json& json, std::string name) : json_(json), name_(std::move(name)) {}

  [[nodiscard]] const Json& operator[](std::string_view key) const { return json_[key]; }
  [[nodiscard]] std::string Where(std::string_view key) const;
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Refused where the member is missing, unless `otherwise` says what that means.
  Result<int> Int(std::string_view key, std::optional<int> otherwise) const;
  Result<float> Float(std::string_view key, float otherwise) const;

 private:
  const Json& json_;
  std::string name_;
};

}  // namespace facet
