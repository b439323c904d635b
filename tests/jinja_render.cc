// SPDX-License-Identifier: Apache-2.0
// Renders templates for tools/jinja_diff.py: reads {"template", "context"} objects from stdin, one
// a line, and answers each with a line {"output"} or {"error"}.
#include <iostream>
#include <string>

#include "base/json.h"
#include "jinja/template.h"

namespace {

facet::Result<std::string> Render(const std::string& line) {
  FACET_ASSIGN(const facet::Json request, facet::ParseJson(line, "request"));
  FACET_ASSIGN(const facet::jinja::Template compiled,
               facet::jinja::Template::Compile(request["template"].as_string(), "t"));
  FACET_ASSIGN(const std::vector<facet::jinja::Run> runs,
               compiled.Render(request["context"], {}, 0));
  return facet::jinja::JoinRuns(runs);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const facet::Result<std::string> text = Render(line);
    const facet::Json answer = text.ok()
                                   ? facet::Json::MakeObject({{"output", *text}})
                                   : facet::Json::MakeObject({{"error", text.error().Message()}});
    std::cout << answer.Dump() << std::endl;
  }
  return 0;
}
