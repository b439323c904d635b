// SPDX-License-Identifier: Apache-2.0
#include "jinja/limits.h"

#include <fmt/format.h>

namespace facet::jinja {

Error Budget::TooManySteps() const {
  return Refuse("", "the template takes too many steps",
                fmt::format("at most {}", limits_.max_steps));
}

Error Budget::TooManyBytes() const {
  return Refuse("", "the template makes too many values",
                fmt::format("at most {} bytes", limits_.max_value_bytes));
}

}  // namespace facet::jinja
