// SPDX-License-Identifier: Apache-2.0
// Values as text, the way Python prints them: str(), repr() and json.dumps(). Text inside keeps its
// origin; brackets, quotes, numbers and escapes' punctuation count as the template's.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "jinja/value.h"

namespace facet::jinja {

/// str(value): a string as it is, undefined as nothing.
Result<TextPtr> ToText(const Value& value, Budget& budget);

/// repr(value), appended.
Status AppendRepr(MarkedString& out, const Value& value, Budget& budget);

/// repr(1e16) is "1e+16", repr(100.0) is "100.0": the shortest digits that read back as the same
/// number.
std::string FloatRepr(double value);

struct JsonStyle {
  bool is_ascii = false;
  bool has_sorted_keys = false;
  std::optional<MarkedString> indent;  ///< of one level; line breaks only when set
  MarkedString item_separator{", ", Origin::kTemplate};
  MarkedString key_separator{": ", Origin::kTemplate};
};
Result<MarkedString> ToJson(const Value& value, const JsonStyle& style, Budget& budget);

}  // namespace facet::jinja
