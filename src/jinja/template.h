// SPDX-License-Identifier: Apache-2.0
// Chat templates: Jinja2 as Hugging Face transformers sets it up, for templates out of model files
// that nobody has checked. What of the language there is, what the marks mean and what the limits
// are stands in docs/jinja.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "jinja/limits.h"
#include "jinja/marked_string.h"

namespace facet::jinja {

struct Program;

/// A compiled template. Cheap to move; rendering is const and may run in several threads at once.
class Template {
 public:
  /// Finds syntax errors, unknown filters and unknown tests. `name` is what errors call the
  /// template; their place is "NAME, line L, column C", here and in Render.
  static Result<Template> Compile(std::string_view source, const std::string& name,
                                  const Limits& limits = {});
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  /// `context` is an object with the variables. Its strings count as the user's, except those below
  /// the keys of `trusted_keys`, which count as the template's. `now_seconds` (Unix time, shown as
  /// UTC) is what strftime_now sees.
  [[nodiscard]] Result<std::vector<Run>> Render(const Json& context,
                                                const std::vector<std::string>& trusted_keys,
                                                int64_t now_seconds) const;

  /// What is wrong but may never be reached: unknown filters and tests in a branch, calls of
  /// unknown functions.
  [[nodiscard]] const std::vector<Finding>& findings() const;

  /// Whether an identifier, an attribute name or a whole string literal of the template is `word`.
  [[nodiscard]] bool Mentions(std::string_view word) const;

 private:
  Template(std::unique_ptr<const Program> program, const Limits& limits);

  std::unique_ptr<const Program> program_;
  Limits limits_;
};

}  // namespace facet::jinja
