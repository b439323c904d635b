// SPDX-License-Identifier: Apache-2.0
// What the tests of the language share: a template rendered with nothing or little around it.
#pragma once

#include <string>
#include <string_view>

#include "jinja/template.h"

namespace facet::jinja {

/// The text, or "error: " and the message. The template is called t, the time is 1700000000.
inline std::string Rendered(std::string_view source, const Json& context) {
  const Result<Template> compiled = Template::Compile(source, "t");
  if (!compiled.ok()) {
    return "error: " + compiled.error().Message();
  }
  const Result<std::vector<Run>> runs = compiled->Render(context, {}, 1'700'000'000);
  return runs.ok() ? JoinRuns(*runs) : "error: " + runs.error().Message();
}

inline std::string Rendered(std::string_view source) {
  return Rendered(source, Json::MakeObject({}));
}

/// The text of {{ expression }}, or the error without its place.
inline std::string Shown(std::string_view expression) {
  const std::string text = Rendered("{{ " + std::string(expression) + " }}");
  const size_t place = text.rfind("error: t, ", 0) == 0 ? text.find(": ", 7) : std::string::npos;
  return place == std::string::npos ? text : text.substr(place + 2);
}

}  // namespace facet::jinja
