// SPDX-License-Identifier: Apache-2.0
// Cuts a template into tokens, with the white-space rules of an environment that has trim_blocks
// and lstrip_blocks: a tag takes the newline after it, and the blanks before it when it starts its
// line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "jinja/ast.h"

namespace facet::jinja {

struct Token {
  enum class Kind : uint8_t {
    kData,
    kBlockBegin,
    kBlockEnd,
    kVariableBegin,
    kVariableEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind = Kind::kEnd;
  Position position;
  std::string text;  ///< data, name, unescaped string, number without underscores, operator

  [[nodiscard]] bool IsName(std::string_view name) const {
    return kind == Kind::kName && text == name;
  }
  [[nodiscard]] bool IsOperator(std::string_view op) const {
    return kind == Kind::kOperator && text == op;
  }
  /// How errors call it: "end of print statement", the name, the operator.
  [[nodiscard]] std::string Describe() const;
};

/// "NAME, line L, column C".
std::string PlaceOf(const std::string& name, Position position);

/// The tokens, ending with one kEnd. `name` is what errors call the template. `source` must be
/// valid UTF-8.
Result<std::vector<Token>> Tokenize(std::string_view source, const std::string& name);

}  // namespace facet::jinja
