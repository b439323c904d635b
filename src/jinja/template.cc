// SPDX-License-Identifier: Apache-2.0
#include "jinja/template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"

namespace facet::jinja {

Template::Template(std::unique_ptr<const Program> program, const Limits& limits)
    : program_(std::move(program)), limits_(limits) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::Compile(std::string_view source, const std::string& name,
                                   const Limits& limits) {
  if (source.size() > limits.max_template_bytes) {
    return Refuse(name, fmt::format("a template of {} bytes", source.size()),
                  fmt::format("at most {}", limits.max_template_bytes));
  }
  if (!IsValidUtf8(source)) {
    return Refuse(name, "a template that is not UTF-8", "UTF-8");
  }
  FACET_ASSIGN(Program program, Parse(source, name, limits));
  return Template(std::make_unique<const Program>(std::move(program)), limits);
}

Result<std::vector<Run>> Template::Render(const Json& context,
                                          const std::vector<std::string>& trusted_keys,
                                          int64_t now_seconds) const {
  if (!context.is_object()) {
    return Refuse(program_->name, fmt::format("a context that is {}", context.KindName()),
                  "an object");
  }
  std::vector<Dict::Entry> variables;
  for (const auto& [key, json] : context.members()) {
    const bool is_trusted =
        std::find(trusted_keys.begin(), trusted_keys.end(), key) != trusted_keys.end();
    Result<Value> value = Value::FromJson(json, is_trusted ? Origin::kTemplate : Origin::kUser);
    if (!value.ok()) {
      return Refuse(fmt::format("{}, variable \"{}\"", program_->name, key), value.error().found,
                    value.error().wanted);
    }
    variables.emplace_back(Value::String(key, Origin::kTemplate), *std::move(value));
  }
  const Dict dict(std::move(variables));
  FACET_ASSIGN(const MarkedString text, Interpreter(*program_, limits_, dict, now_seconds).Run());
  return text.Runs();
}

const std::vector<Finding>& Template::findings() const { return program_->findings; }

bool Template::Mentions(std::string_view word) const {
  return std::binary_search(program_->words.begin(), program_->words.end(), word);
}

}  // namespace facet::jinja
